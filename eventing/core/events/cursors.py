"""Cursors: what a reader holds to continue. Opaque to clients.

`EPOCH:OFFSET` is a place in one domain's log of one RP, the offset being that of the last event the reader has; offset
0 stands before the first event. Where an RP has replicas, `~FEED=SEQUENCE.FEED=SEQUENCE` follows, the reader's version
vector as of that place with the domain's own feed in it: by it the cursor is good at every replica.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from eventing.core.errors import InvalidCursor
from eventing.core.events.feeds import FEEDS_MAX
from eventing.core.events.vectors import SEQUENCE_MAX

OFFSET_MAX = 2**53 - 1  # exact in every JSON reader
PLACE_CHARS_MAX = 64  # of a cursor without a vector
VECTOR_FEEDS_MAX = FEEDS_MAX + 1  # foreign feeds, and the own one
CURSOR_CHARS_MAX = PLACE_CHARS_MAX + VECTOR_FEEDS_MAX * 34  # each feed: key, =, 16 digits, a dot or the ~
_NUMBER = "(?:0|[1-9][0-9]{0,15})"
_FEED = f"[a-z2-7]{{16}}={_NUMBER}"
_PATTERN = re.compile(
    rf"([a-z2-7]{{1,26}}):({_NUMBER})(?:~({_FEED}(?:\.{_FEED}){{0,{VECTOR_FEEDS_MAX - 1}}}))?", re.ASCII
)


class Cursor(NamedTuple):
    """Place in one domain's log of one RP: everything up to and including `offset` of `epoch` is held.

    `vector`, unless it is None, is all that the reader holds of each feed: at least what stands up to that place, and
    more where the reader has come from another replica.
    """

    epoch: str
    offset: int
    vector: Mapping[str, int] | None = None

    @property
    def place(self) -> Cursor:
        """The same without its vector: good in the log of its epoch only."""
        return Cursor(self.epoch, self.offset)

    def __str__(self) -> str:
        return f"{self.epoch}:{self.offset}{vector_text(self.vector) if self.vector else ''}"

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read what `str()` wrote. Raises InvalidCursor on anything else."""
        match = _PATTERN.fullmatch(text) if len(text) <= CURSOR_CHARS_MAX else None
        if match is None or int(match[2]) > OFFSET_MAX:
            raise _not_ours()
        return cls(match[1], int(match[2]), _vector(match[3]) if match[3] else None)


def vector_text(vector: Mapping[str, int]) -> str:
    """What follows the place: `~`, then the feeds in the order of their keys."""
    return "~" + ".".join([f"{feed}={vector[feed]}" for feed in sorted(vector)])


def _vector(text: str) -> dict[str, int]:
    pairs = [part.split("=") for part in text.split(".")]
    vector = {feed: int(sequence) for feed, sequence in pairs}
    if [feed for feed, _ in pairs] != sorted(vector) or max(vector.values()) > SEQUENCE_MAX:
        raise _not_ours()  # feeds out of order or named twice, or a number that nobody counts to
    return vector


def _not_ours() -> InvalidCursor:
    return InvalidCursor("Use a cursor exactly as an earlier answer gave it.")
