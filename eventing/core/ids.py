"""Identifiers: self-certifying RP ids, and the ids of administrative RPs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

RP_ID_CHARS = 26  # 130 bits of SHA-256
RP_ID_PATTERN = re.compile(r"[a-z2-7]{26}")
ADMIN_SUFFIX = ".admin"
DOMAIN_ADMIN = "domain.admin"
OVERLAY_ADMIN = "overlay.admin"
DOMAIN_ADMINS = (DOMAIN_ADMIN, OVERLAY_ADMIN)
"""Administrative RPs of the domain itself: they belong to no RP."""


def canonical_json(value: Any) -> bytes:
    """Encode a JSON value in the one byte form that is compared, hashed and signed: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def same_json(one: Any, other: Any) -> bool:
    """Return True if two JSON values are equal, with numbers compared as written. Clients' documents are compared only
    by this.

    Python's == does not decide this: 1, 1.0 and True are equal there, but in a policy they are three values.
    """
    return canonical_json(one) == canonical_json(other)


def members_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Names of the members of `after` whose JSON value differs in `before`, in the order of `after`."""
    return [name for name, value in after.items() if not same_json(before[name], value)]


def rp_id(genesis: Mapping[str, Any]) -> str:
    """Compute the id of the RP that `genesis` defines: base32 of the SHA-256 of its canonical JSON, first 26
    characters.

    Anyone who holds the genesis descriptor can verify the id; nobody can make another descriptor with the same id.
    """
    digest = hashlib.sha256(canonical_json(genesis)).digest()
    return base64.b32encode(digest).decode().lower()[:RP_ID_CHARS]


def admin_id(rp: str) -> str:
    """Return the id of the administrative RP of `rp`. Raises ValueError for an administrative RP, which has none."""
    if is_admin(rp):
        raise ValueError("administrative RPs have no administrative RP")
    return rp + ADMIN_SUFFIX


def is_admin(rp: str) -> bool:
    """Return True if `rp` is an administrative RP (of an RP or of the domain)."""
    return rp.endswith(ADMIN_SUFFIX)
