"""Entity tags of RPs: the version of the descriptor, and a digest of the local members. Pure.

    "3-5wq7tnbdcxy2m"

`audience` and `watch` belong to one domain: they are not in the signed descriptor, and their change makes no version. Without
the digest, two operators who read the same rules would both replace them with If-Match, and the second would discard the
change of the first (decision 74). The digest is of content: rules that are restored have the tag that they had before.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from eventing.core.ids import canonical_json

_DIGEST_BYTES = 8  # 13 characters; distinguishes the states of one RP, and is no proof of them


def entity_tag(version: int, audience: list[dict[str, Any]], watch: list[dict[str, Any]]) -> str:
    """Make the entity tag, without quotes. `audience` and `watch` are in their normal forms."""
    digest = hashlib.sha256(canonical_json([audience, watch])).digest()[:_DIGEST_BYTES]
    return f"{version}-{base64.b32encode(digest).decode().rstrip('=').lower()}"


def tag_matches(expected: frozenset[str], tag: str) -> bool:
    """Return True if `expected` names `tag`, or only its version: `3` disregards the local members."""
    return tag in expected or tag.partition("-")[0] in expected
