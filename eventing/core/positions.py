"""Where a reader starts: the one place that decides what is recovered and what is a gap, for every binding.

A log is (epoch, first, next): events `first .. next-1` are held. A reader asks for *now*, *earliest*, *last* or a
cursor, and gets the offset of the first event it will be sent, whether everything it asked for is there, and if not,
which offsets are not. Never silently partial: an unknown epoch or a cursor beyond the log's end is never recovered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from eventing.core.cursors import OFFSET_MAX, Cursor
from eventing.core.errors import InvalidCursor

Place = Literal["now", "earliest", "last"]
PLACES: tuple[Place, ...] = ("now", "earliest", "last")


@dataclass(frozen=True, slots=True)
class LogState:
    """The extent of a log: life of its numbering, oldest offset held, offset that the next event will get, bytes held."""

    epoch: str
    first: int
    next: int
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets that a reader asked for and cannot have, both ends included.

    After a change of epoch `epoch` is the new one, `start` is 1, and what the reader missed of the old epoch is unknown.
    """

    epoch: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Start:
    """Where a reader begins: the next offset it is sent, and what it lost."""

    epoch: str
    next: int
    recovered: bool
    gap: Gap | None = None


def parse_from(text: Any) -> Place | Cursor:
    """Read a `from`: a word, a cursor, or {"epoch", "offset"} as event frames carry them. Raises InvalidCursor."""
    if isinstance(text, str):
        for place in PLACES:
            if text == place:
                return place
        return Cursor.parse(text)
    if isinstance(text, dict):
        epoch, offset = text.get("epoch"), text.get("offset")
        if isinstance(epoch, str) and type(offset) is int and 0 <= offset <= OFFSET_MAX:
            return Cursor.parse(f"{epoch}:{offset}")
    raise InvalidCursor('from is "now", "earliest", "last" or a cursor.')


def resolve(wanted: Place | Cursor, log: LogState) -> Start:
    """The start for `wanted` in `log`."""
    if isinstance(wanted, Cursor):
        return _resume(wanted, log)
    if wanted == "now":
        return Start(log.epoch, log.next, True)
    if wanted == "earliest":
        return Start(log.epoch, log.first, True)
    return Start(log.epoch, max(log.first, log.next - 1), True)


def _resume(wanted: Cursor, log: LogState) -> Start:
    following = wanted.offset + 1
    if wanted.epoch != log.epoch or following > log.next:
        return Start(log.epoch, log.first, False, Gap(log.epoch, 1, log.first - 1))
    if following < log.first:
        return Start(log.epoch, log.first, False, Gap(log.epoch, following, log.first - 1))
    return Start(log.epoch, following, True)


def raised(start: Start, floor: int) -> Start:
    """`start` moved up to `floor`, the oldest offset that a durable subscription's own bounds grant; the rest is a gap."""
    if start.next >= floor:
        return start
    begin = start.gap.start if start.gap else start.next
    return Start(start.epoch, floor, False, Gap(start.epoch, begin, floor - 1))
