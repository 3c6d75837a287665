"""Feeds: the publications of one origin domain at one RP, in the origin's order. Pure.

A feed is identified by its origin's domain and epoch, the life of the origin's numbering of that RP. Within one RP its
key, a short hash of both, denotes the feed in logs, vectors and cursors; a seal states the origin and epoch of a key.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import NamedTuple

from eventing.core.container import memoized

KEY_CHARS = 16  # 80 bits: a domain that chooses its own name and epochs still cannot make another feed's key
KEY_PATTERN = re.compile(r"[a-z2-7]{16}", re.ASCII)
# Domains that published at the RP within its history, with the epochs of their numbering.
FEEDS_MAX = 64  # bound: feeds of an RP, including those of ended epochs; a new feed is refused; the others continue
# An origin that lost its numbers, or left and returned, seven times (decision 35).
ORIGIN_FEEDS_MAX = 8  # bound: feeds of one origin at an RP; a new feed is refused: `oversize`


class Feed(NamedTuple):
    """Publications of one origin domain at one RP during one life of its numbering. Sequences count from 1, without holes."""

    origin: str
    epoch: str

    @property
    def key(self) -> str:
        """Key of the feed within its RP: 16 characters of base32."""
        return _key(self.origin, self.epoch)


@memoized(maxsize=16_384)  # feeds in use, ~300 bytes each; an exchange needs each several times
def _key(origin: str, epoch: str) -> str:
    digest = hashlib.sha256(f"{origin}\n{epoch}".encode()).digest()
    return base64.b32encode(digest[:10]).decode().lower()
