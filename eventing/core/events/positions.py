"""Start positions of readers: which events are recovered and which are a gap, decided in one place for every binding.

A log is (epoch, first, next): events `first .. next-1` are held. A reader asks for *now*, *earliest*, *last*, a time or
a cursor, and gets the offset of the first event to be sent, whether everything it asked for is held, and if not, the
offsets that are missing. Recovery is never silently partial: an unknown epoch or a cursor beyond the log's end is never
recovered.

A cursor with a version vector may stem from another replica of the RP: then the vector's coverage of this log's feeds
decides, not the offset.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from eventing.core.errors import InvalidCursor
from eventing.core.events.cursors import OFFSET_MAX, Cursor
from eventing.core.events.lineage import Rewound, root_epoch
from eventing.core.events.vectors import Vector, covers, lacking, merged

NamedPosition = Literal["now", "earliest", "last"]
NAMED_POSITIONS: tuple[NamedPosition, ...] = ("now", "earliest", "last")
TIME_PREFIX = "time:"
TIME_PATTERN = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})"  # RFC 3339
)
TIME_MS_MAX = 253_402_300_799_999  # bound: Unix milliseconds, the end of the year 9999; `invalid-cursor`
_TIME = re.compile(TIME_PATTERN)


@dataclass(frozen=True, slots=True)
class LogState:
    """Extent of a log: epoch of its cursors, oldest offset held, offset of the next event, bytes held.

    `foreign` counts the events of other domains that the log ever received.
    """

    epoch: str
    first: int
    next: int
    bytes: int = 0
    foreign: int = 0

    @property
    def root(self) -> str:
        """Epoch of the own feed (core/events/lineage.py)."""
        return root_epoch(self.epoch)


@dataclass(frozen=True, slots=True)
class OffsetGap:
    """Offsets that a reader asked for and cannot get, both ends included.

    After a change of epoch, `epoch` is the new one, `start` is 1, and the events missed of the old epoch are unknown.

    Attributes:
        feeds: where feeds are known, exactly the lost events: per feed the first and the last sequence. The offsets of
            a reader from another replica are then only as many, the last ones before its new position; none where a
            feed has a hole that no offset has.
        cursor: position after the gap, with a vector where one is known.
        rewound: events that the reader has been given and that were withdrawn. `start` is then the first offset after what
            the log continues of their epoch; a gap of no length means that nothing else is missing.
    """

    epoch: str
    start: int
    end: int
    feeds: Mapping[str, tuple[int, int]] | None = None
    cursor: str = ""
    rewound: Rewound | None = None


@dataclass(frozen=True, slots=True)
class StoredTime:
    """A position by time: before the first event that this log stored at `ms` or later.

    Attributes:
        ms: Unix milliseconds by the clock of the log's Redis.
    """

    ms: int


Position = NamedPosition | Cursor | StoredTime
"""Start that a reader asks for."""


@dataclass(frozen=True, slots=True)
class Start:
    """Start of a reader: the next offset to be sent, and the loss before it.

    `held`, where feeds are known, is the vector of the reader at that point: events that it covers beyond `next` are
    not sent again.
    """

    epoch: str
    next: int
    recovered: bool
    gap: OffsetGap | None = None
    held: Vector | None = None

    @property
    def cursor(self) -> Cursor:
        """Cursor of the reader's position."""
        return Cursor(self.epoch, self.next - 1, self.held)


def parse_from(text: Any) -> Position:
    """Parse a `from`: a word, a cursor, {"epoch", "offset"} as in event frames, `time:TIME` or {"time": TIME}.

    Raises InvalidCursor.
    """
    if isinstance(text, str):
        if text.startswith(TIME_PREFIX):
            return _stored_time(text.removeprefix(TIME_PREFIX))
        for place in NAMED_POSITIONS:
            if text == place:
                return place
        return Cursor.parse(text)
    if isinstance(text, dict) and set(text) == {"time"}:
        return _stored_time(text["time"])
    if isinstance(text, dict):
        epoch, offset = text.get("epoch"), text.get("offset")
        if isinstance(epoch, str) and type(offset) is int and 0 <= offset <= OFFSET_MAX:
            return Cursor.parse(f"{epoch}:{offset}")
    raise InvalidCursor('from is "now", "earliest", "last", a time or a cursor.')


def _stored_time(text: Any) -> StoredTime:
    """Parse a time by RFC 3339, rounded up to the millisecond: an event stored before it is not read. Raises InvalidCursor."""
    found = _TIME.fullmatch(text) if isinstance(text, str) else None
    if found is not None:
        fraction, zone = found[1] or "", found[2]
        try:
            whole = datetime.fromisoformat(text[:19] + zone.replace("Z", "+00:00"))
            ms = round(whole.timestamp()) * 1000 + -(-int(fraction[1:].ljust(9, "0")) // 10**6)
            if ms <= TIME_MS_MAX:
                return StoredTime(max(0, ms))
        except (ValueError, OverflowError):
            pass
    raise InvalidCursor(
        "A time is one of RFC 3339, such as time:2026-11-24T02:50:00Z; in an address write the + of a zone as %2B."
    )


def resolve(wanted: NamedPosition | Cursor, log: LogState) -> Start:
    """Compute the start for `wanted` in `log`."""
    if isinstance(wanted, Cursor):
        return _resume(wanted, log)
    if wanted == "now":
        return Start(log.epoch, log.next, True)
    if wanted == "earliest":
        return Start(log.epoch, log.first, True)
    return Start(log.epoch, max(log.first, log.next - 1), True)


def begun_at(offset: int, future: bool, log: LogState) -> Start:
    """Compute the start at a time.

    Events that have left the history have left their times too: where reading begins at the oldest event held and others
    were before it, they may be of that time or later, and are a gap.

    Args:
        offset: of the first event held that was stored at that time or later; `log.next` or more: none.
        future: whether the time is in the future: the start is then that of `now`.
    """
    begin = log.next if future else min(max(offset, log.first), log.next)
    if future or begin > log.first or log.first == 1:
        return Start(log.epoch, begin, True)
    return Start(log.epoch, begin, False, OffsetGap(log.epoch, 1, log.first - 1))


def _resume(wanted: Cursor, log: LogState) -> Start:
    following = wanted.offset + 1
    if wanted.epoch != log.epoch or following > log.next:
        return Start(log.epoch, log.first, False, OffsetGap(log.epoch, 1, log.first - 1))
    if following < log.first:
        return Start(log.epoch, log.first, False, OffsetGap(log.epoch, following, log.first - 1))
    return Start(log.epoch, following, True)


def by_vector(wanted: Cursor, log: LogState) -> bool:
    """Return True if the vector of `wanted` decides the start (`resume`) whatever the log holds; else `fits` decides."""
    return wanted.vector is not None and (wanted.epoch != log.epoch or not log.first <= wanted.offset + 1 <= log.next)


def believed(vector: Vector, log: LogState, own: str) -> Vector:
    """Return the part of a cursor's vector that can be true in `log`.

    A vector that claims more of the own feed than was published proves that the log was restored from a copy, or that
    the vector was forged. It is then unknown which own sequences still denote the same events, so the own feed is left
    out. Feeds of other origins are numbered by these origins and stay.
    """
    return {feed: last for feed, last in vector.items() if feed != own} if _overclaims(vector, log, own) else vector


def fits(vector: Vector, log: LogState, own: str, before: Vector) -> bool:
    """Return True if the offset of a cursor of this log's epoch may be trusted, given its vector.

    After the log was restored from a copy, other events may have the offsets that readers know. A reader holds at least
    the events up to its offset; if its vector does not cover them, its offset belongs to the log before the
    restoration.

    Args:
        own: key of the log's own feed.
        before: vector of `log` up to the cursor's offset.
    """
    return not _overclaims(vector, log, own) and covers(vector, before)


def _overclaims(vector: Vector, log: LogState, own: str) -> bool:
    return vector.get(own, 0) > log.next - 1 - log.foreign


def resume(vector: Vector, log: LogState, own: str, before: Vector, first_lacking: int) -> Start:
    """Compute the start of a reader that holds `vector`, from whichever replica.

    A vector that claims more of the own feed than exists is ignored for that feed, like a cursor beyond the log's end:
    reading begins at the oldest event, and events of other feeds that the vector covers are not sent again.

    Args:
        own: key of the log's own feed.
        before: vector of the events before the oldest one held.
        first_lacking: offset of the first event held that `vector` does not cover; `log.next` if it covers all.
    """
    if _overclaims(vector, log, own):
        held = merged(believed(vector, log, own), before)
        return Start(log.epoch, log.first, False, OffsetGap(log.epoch, 1, log.first - 1), held)
    begin = max(log.first, first_lacking)
    held = merged(vector, before)
    lost = lacking(vector, before)
    if not lost:
        return Start(log.epoch, begin, True, None, held)
    count = sum(last - first + 1 for first, last in lost.values())
    return Start(log.epoch, begin, False, OffsetGap(log.epoch, max(1, begin - count), begin - 1, lost), held)


def raised(start: Start, oldest_granted: int) -> Start:
    """Raise `start` to `oldest_granted`, the oldest offset that a durable subscription's own bounds grant; skipped events are a gap."""
    if start.next >= oldest_granted:
        return start
    begin, rewound = (start.gap.start, start.gap.rewound) if start.gap else (start.next, None)
    gap = OffsetGap(start.epoch, begin, oldest_granted - 1, rewound=rewound)
    return Start(start.epoch, oldest_granted, False, gap, start.held)


def rewound_to(start: Start, rewound: Rewound) -> Start:
    """Add to the start of a reader after the end of an epoch that it holds events beyond, which were withdrawn."""
    gap = start.gap or OffsetGap(start.epoch, start.next, start.next - 1)
    return replace(start, recovered=False, gap=replace(gap, rewound=rewound))
