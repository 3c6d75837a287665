"""Cursors: what a reader holds to continue. Opaque to clients; here the pair (epoch, offset).

The offset is that of the last event the reader has. A cursor at offset 0 stands before the first event.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from eventing.core.errors import InvalidCursor

CURSOR_CHARS_MAX = 64
OFFSET_MAX = 2**53 - 1  # exact in every JSON reader
_PATTERN = re.compile(r"([a-z2-7]{1,26}):(0|[1-9][0-9]{0,15})", re.ASCII)


class Cursor(NamedTuple):
    """Place in one domain's log of one RP: everything up to and including `offset` of `epoch` is held."""

    epoch: str
    offset: int

    def __str__(self) -> str:
        return f"{self.epoch}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """Read what `str()` wrote. Raises InvalidCursor on anything else."""
        match = _PATTERN.fullmatch(text) if len(text) <= CURSOR_CHARS_MAX else None
        if match is None or int(match[2]) > OFFSET_MAX:
            raise InvalidCursor("Use a cursor exactly as an earlier answer gave it.")
        return cls(match[1], int(match[2]))
