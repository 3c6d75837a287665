"""The chain of audit entries: each is sealed together with the seal of the one before it.

A seal is an HMAC-SHA-256 under a key that is not in SQL (it is derived from the domain's secret key). So a change,
removal or insertion of an entry by a writer of the database without that key is detected by a check. A plain hash would
not suffice: it could be recomputed over the whole table. Each seal names its key, which distinguishes entries sealed
before a change of the secret key from forged ones.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from eventing.core.ids import canonical_json

FIRST = ""
"""Previous seal of the first entry."""

KEY_ID_CHARS = 8
SEAL_CHARS = KEY_ID_CHARS + 1 + 64


class ChainKey:
    """The key of the chain.

    Args:
        secret: the domain's secret key, from which the chain's own key is derived.
    """

    def __init__(self, secret: str) -> None:
        self._key = hmac.digest(secret.encode(), b"herald audit chain", "sha256")
        self.id = hashlib.sha256(self._key).hexdigest()[:KEY_ID_CHARS]

    def seal(self, previous: str, content: Mapping[str, Any]) -> str:
        """Compute the seal of an entry with this content (JSON) after one sealed `previous`: `KEY.HEX`, SEAL_CHARS characters."""
        text = canonical_json({"previous": previous, **content})
        return f"{self.id}.{hmac.digest(self._key, text, 'sha256').hex()}"

    def holds(self, seal: str, previous: str, content: Mapping[str, Any]) -> bool:
        """Return True if `seal` is that of this content after `previous`."""
        return hmac.compare_digest(seal, self.seal(previous, content))
