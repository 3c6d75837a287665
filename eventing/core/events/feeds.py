"""Feeds: what one origin domain published at one RP, in its order. Pure.

A feed is named by its origin's domain and epoch, the life of the origin's numbering of that RP. Within one RP its key,
a short hash of both, stands for it in logs, vectors and cursors; a seal says which origin and epoch a key is of.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from typing import NamedTuple

KEY_CHARS = 16  # 80 bits: who can choose its own name and epochs still cannot hit another feed's key
KEY_PATTERN = re.compile(r"[a-z2-7]{16}", re.ASCII)
FEEDS_MAX = 64  # of one RP: domains that have published there within its history, with the epochs they went through
ORIGIN_FEEDS_MAX = 8  # of one origin at one RP: it lost its numbers, or left and came again, seven times (decision 35)


class Feed(NamedTuple):
    """One origin domain's publications at one RP in one life of its numbering. Sequences count from 1, without holes."""

    origin: str
    epoch: str

    @property
    def key(self) -> str:
        """16 characters of base32 that stand for the feed within its RP."""
        return _key(self.origin, self.epoch)


@lru_cache(maxsize=16_384)  # of the feeds in use: an exchange asks for each several times; ~300 bytes each
def _key(origin: str, epoch: str) -> str:
    digest = hashlib.sha256(f"{origin}\n{epoch}".encode()).digest()
    return base64.b32encode(digest[:10]).decode().lower()
