"""Where a reader starts: the one place that decides what is recovered and what is a gap, for every binding.

A log is (epoch, first, next): events `first .. next-1` are held. A reader asks for *now*, *earliest*, *last* or a
cursor, and gets the offset of the first event it will be sent, whether everything it asked for is there, and if not,
which offsets are not. Never silently partial: an unknown epoch or a cursor beyond the log's end is never recovered.

A cursor with a version vector may come from another replica of the RP: then it is not its offset that counts, but what
of this log's feeds its vector covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from eventing.core.errors import InvalidCursor
from eventing.core.events.cursors import OFFSET_MAX, Cursor
from eventing.core.events.vectors import Vector, covers, lacking, merged

Place = Literal["now", "earliest", "last"]
PLACES: tuple[Place, ...] = ("now", "earliest", "last")


@dataclass(frozen=True, slots=True)
class LogState:
    """The extent of a log: life of its numbering, oldest offset held, offset that the next event will get, bytes held.

    `foreign` is how many events of other domains it was ever given.
    """

    epoch: str
    first: int
    next: int
    bytes: int = 0
    foreign: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets that a reader asked for and cannot have, both ends included.

    After a change of epoch `epoch` is the new one, `start` is 1, and what the reader missed of the old epoch is unknown.

    Attributes:
        feeds: where feeds are known, exactly what is lost: per feed the first and the last sequence. The offsets of a
            reader that comes from another replica are then only as many, the last ones before the place where it goes on;
            none where a feed has a hole that no offset has.
        cursor: the place behind the gap, where it has a vector.
    """

    epoch: str
    start: int
    end: int
    feeds: Mapping[str, tuple[int, int]] | None = None
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a reader begins: the next offset it is sent, and what it lost.

    `held`, where feeds are known, is all that the reader has by then: what of it is ahead of `next` is not sent again.
    """

    epoch: str
    next: int
    recovered: bool
    gap: Gap | None = None
    held: Vector | None = None

    @property
    def cursor(self) -> Cursor:
        """The place where the reader stands."""
        return Cursor(self.epoch, self.next - 1, self.held)


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


def by_vector(wanted: Cursor, log: LogState) -> bool:
    """Whether the vector of `wanted`, not its offset, decides where its reader begins (`resume`), without a look at the log: `fits`
    decides where this is false."""
    return wanted.vector is not None and (wanted.epoch != log.epoch or not log.first <= wanted.offset + 1 <= log.next)


def believed(vector: Vector, log: LogState, own: str) -> Vector:
    """The part of a cursor's vector that can be true in `log`.

    A vector that claims more of the own feed than was published shows that the log was put back from a copy, or that the vector
    was forged. Which of the own sequences name the same events as before is then unknown, so the own feed is left out. Feeds of
    other origins are numbered by these origins, whatever happened here: what the vector claims of them stays.
    """
    return {feed: last for feed, last in vector.items() if feed != own} if _overclaims(vector, log, own) else vector


def fits(vector: Vector, log: LogState, own: str, before: Vector) -> bool:
    """Whether the offset of a cursor of this log's epoch may be trusted, given its vector.

    After the log was put back from a copy, other events may have got the offsets that its readers know. A reader holds at least
    what stands up to its offset; where its vector does not cover that, its offset is of the log before.

    Args:
        own: the key of the log's own feed.
        before: the vector of `log` up to the cursor's offset.
    """
    return not _overclaims(vector, log, own) and covers(vector, before)


def _overclaims(vector: Vector, log: LogState, own: str) -> bool:
    return vector.get(own, 0) > log.next - 1 - log.foreign


def resume(vector: Vector, log: LogState, own: str, before: Vector, first_lacking: int) -> Start:
    """The start of a reader that holds `vector`, wherever it got it.

    A vector that claims more of the own feed than there is of it is not believed as to that feed, like a cursor beyond the log's
    end: reading begins at the oldest event, and what the vector covers of other feeds is not sent again.

    Args:
        own: the key of the log's own feed.
        before: what the events before the oldest one held were of each feed.
        first_lacking: offset of the first event held that `vector` does not cover; `log.next` if it covers all.
    """
    if _overclaims(vector, log, own):
        held = merged(believed(vector, log, own), before)
        return Start(log.epoch, log.first, False, Gap(log.epoch, 1, log.first - 1), held)
    begin = max(log.first, first_lacking)
    held = merged(vector, before)
    lost = lacking(vector, before)
    if not lost:
        return Start(log.epoch, begin, True, None, held)
    count = sum(last - first + 1 for first, last in lost.values())
    return Start(log.epoch, begin, False, Gap(log.epoch, max(1, begin - count), begin - 1, lost), held)


def raised(start: Start, floor: int) -> Start:
    """`start` moved up to `floor`, the oldest offset that a durable subscription's own bounds grant; the rest is a gap."""
    if start.next >= floor:
        return start
    begin = start.gap.start if start.gap else start.next
    return Start(start.epoch, floor, False, Gap(start.epoch, begin, floor - 1), start.held)
