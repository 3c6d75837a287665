"""The chain of audit entries: each is sealed together with the seal of the one before it.

A seal is HMAC-SHA-256 under a key that is not in SQL (it comes from the domain's secret key). So whoever can write to
the database, but does not hold that key, can change, remove or insert an entry only in a way that a check finds. A plain
hash would not do: it could be computed anew over the whole table. Each seal names its key, so that entries sealed before
the secret key was changed are told from forged ones.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from eventing.core.ids import canonical_json

FIRST = ""
"""What stands as the seal before the first entry."""

KEY_ID_CHARS = 8
SEAL_CHARS = KEY_ID_CHARS + 1 + 64


class ChainKey:
    """The key of the chain.

    Args:
        secret: the domain's secret key; the chain's own key is derived from it.
    """

    def __init__(self, secret: str) -> None:
        self._key = hmac.digest(secret.encode(), b"herald audit chain", "sha256")
        self.id = hashlib.sha256(self._key).hexdigest()[:KEY_ID_CHARS]

    def seal(self, previous: str, content: Mapping[str, Any]) -> str:
        """The seal of an entry with this content (JSON) after one sealed `previous`: `KEY.HEX`, SEAL_CHARS characters."""
        text = canonical_json({"previous": previous, **content})
        return f"{self.id}.{hmac.digest(self._key, text, 'sha256').hex()}"

    def holds(self, seal: str, previous: str, content: Mapping[str, Any]) -> bool:
        """Whether `seal` is that of this content after `previous`."""
        return hmac.compare_digest(seal, self.seal(previous, content))
