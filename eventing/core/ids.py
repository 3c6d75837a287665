"""Identifiers: self-certifying RP ids, and the ids that belong to an RP's administrative RP."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

RP_ID_CHARS = 26  # 130 bits of SHA-256 (DESIGN section 8)
RP_ID_PATTERN = re.compile(r"[a-z2-7]{26}")
ADMIN_SUFFIX = ".admin"
DOMAIN_ADMIN = "domain.admin"


def canonical_json(value: Any) -> bytes:
    """The one byte form of a JSON value that is compared, hashed and signed: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same, number by number as written. Documents of clients are compared by this only.

    Python's == is no such comparison: 1, 1.0 and True are equal there, in a policy they are three values.
    """
    return canonical_json(one) == canonical_json(other)


def members_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The names of the members of `after` whose JSON value is another one in `before`, in the order of `after`."""
    return [name for name, value in after.items() if not same_json(before[name], value)]


def rp_id(genesis: Mapping[str, Any]) -> str:
    """The id of the RP that `genesis` defines: base32 of the SHA-256 of its canonical JSON, first 26 characters.

    Anyone who holds the genesis descriptor can check the id; nobody can make another descriptor with the same id.
    """
    digest = hashlib.sha256(canonical_json(genesis)).digest()
    return base64.b32encode(digest).decode().lower()[:RP_ID_CHARS]


def admin_id(rp: str) -> str:
    """The id of the administrative RP of `rp`. Administrative RPs have none themselves: ValueError."""
    if is_admin(rp):
        raise ValueError("administrative RPs have no administrative RP")
    return rp + ADMIN_SUFFIX


def is_admin(rp: str) -> bool:
    """Whether `rp` is an administrative RP (of an RP or of the domain)."""
    return rp.endswith(ADMIN_SUFFIX)
