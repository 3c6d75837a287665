"""Cursors: positions from which readers continue. Opaque to clients.

`EPOCH:OFFSET` is a position in one domain's log of one RP: the offset of the last event that the reader holds; offset 0
is before the first event. Where an RP has replicas, `~FEED=SEQUENCE.FEED=SEQUENCE` follows: the reader's version vector
at that position, including the domain's own feed. With the vector a cursor is valid at every replica.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from eventing.core.errors import InvalidCursor
from eventing.core.events.feeds import FEEDS_MAX
from eventing.core.events.vectors import SEQUENCE_MAX

OFFSET_MAX = 2**53 - 1  # bound: offset in a cursor; `invalid-cursor`; no log reaches it
POSITION_CHARS_MAX = 64  # bound: characters of a cursor without a vector; `invalid-cursor`
VECTOR_FEEDS_MAX = FEEDS_MAX + 1  # foreign feeds, and the own one
CURSOR_CHARS_MAX = POSITION_CHARS_MAX + VECTOR_FEEDS_MAX * 34  # each feed: key, =, 16 digits, a dot or the ~
_NUMBER = "(?:0|[1-9][0-9]{0,15})"
_FEED = f"[a-z2-7]{{16}}={_NUMBER}"
_PATTERN = re.compile(
    rf"([a-z2-7]{{1,26}}):({_NUMBER})(?:~({_FEED}(?:\.{_FEED}){{0,{VECTOR_FEEDS_MAX - 1}}}))?", re.ASCII
)


class Cursor(NamedTuple):
    """Position in one domain's log of one RP: the reader holds everything up to and including `offset` of `epoch`.

    `vector`, unless it is None, states all that the reader holds of each feed: at least the events up to that position,
    and more if the reader read from another replica before.
    """

    epoch: str
    offset: int
    vector: Mapping[str, int] | None = None

    @property
    def place(self) -> Cursor:
        """The same position without its vector, valid only in the log of its epoch."""
        return Cursor(self.epoch, self.offset)

    def __str__(self) -> str:
        return f"{self.epoch}:{self.offset}{vector_text(self.vector) if self.vector else ''}"

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Parse the output of `str()`. Raises InvalidCursor for anything else."""
        match = _PATTERN.fullmatch(text) if len(text) <= CURSOR_CHARS_MAX else None
        if match is None or int(match[2]) > OFFSET_MAX:
            raise _not_ours()
        return cls(match[1], int(match[2]), _vector(match[3]) if match[3] else None)


def vector_text(vector: Mapping[str, int]) -> str:
    """Format the part of a cursor after the position: `~`, then the feeds in the order of their keys."""
    return "~" + ".".join([f"{feed}={vector[feed]}" for feed in sorted(vector)])


def _vector(text: str) -> dict[str, int]:
    pairs = [part.split("=") for part in text.split(".")]
    vector = {feed: int(sequence) for feed, sequence in pairs}
    if [feed for feed, _ in pairs] != sorted(vector) or max(vector.values()) > SEQUENCE_MAX:
        raise _not_ours()  # feeds out of order or repeated, or a number out of range
    return vector


def _not_ours() -> InvalidCursor:
    return InvalidCursor("Use a cursor exactly as an earlier answer gave it.")
