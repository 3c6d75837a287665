"""Start positions of readers in an RP's log, for every binding: core/events/positions.py decides, this module reads the
log.

Without a version vector the log's extent suffices. A cursor from another replica takes two more reads: the vector
before the oldest event held, and the first event that the cursor's vector does not cover.
"""

from __future__ import annotations

from dataclasses import replace

from eventing.conf import config
from eventing.core.container import memoized
from eventing.core.errors import Unavailable
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.events.lineage import Rewound, root_epoch
from eventing.core.events.positions import (
    LogState,
    Position,
    Start,
    StoredTime,
    begun_at,
    by_vector,
    fits,
    raised,
    resolve,
    resume,
    rewound_to,
)
from eventing.core.events.progress import FeedPosition as FeedPlace
from eventing.core.events.progress import feed_positions
from eventing.core.events.vectors import Vector, merged
from eventing.log.reader import LogReader
from eventing.log.scripts import OWN, LogRun

OWN_CACHED = 10_000
ATTEMPTS = 3  # attempts on a log that is trimmed or replaced meanwhile


class LogChanged(Exception):
    """The log was trimmed or replaced between two reads."""


@memoized(maxsize=OWN_CACHED)
def own_feed(epoch: str) -> str:
    """Return the key of this domain's feed at an RP whose log has this epoch in cursors."""
    return Feed(config().domain, root_epoch(epoch)).key


async def start_of(
    reader: LogReader,
    rp: str,
    wanted: Position,
    log: LogState,
    *,
    oldest_granted: int = 0,
    replicated: bool = False,
) -> Start:
    """Compute the start for `wanted` in the log whose extent is `log`.

    Args:
        oldest_granted: the oldest offset that a durable subscription's own bounds grant.
        replicated: whether cursors have vectors here although the log has no event of another domain yet.

    Raises NoLog, Unavailable and redis' errors.
    """
    for _ in range(ATTEMPTS):
        try:
            return await _start_of(reader, rp, wanted, log, oldest_granted, replicated)
        except LogChanged:
            log = await reader.state(rp)
    raise Unavailable("The event log changes faster than it can be read. Try again in a moment.", retry_after_s=1)


async def _start_of(
    reader: LogReader, rp: str, wanted: Position, log: LogState, oldest_granted: int, replicated: bool
) -> Start:
    before: tuple[int, Vector] | None = None  # offset, and the vector before it
    rewound: Rewound | None = None
    if isinstance(wanted, Cursor) and (wanted.epoch != log.epoch or wanted.offset >= log.next):
        wanted, rewound = await _continued(reader, rp, wanted, log)
    if not isinstance(wanted, Cursor) or wanted.vector is None:
        start = await _begun_at(reader, rp, wanted, log) if isinstance(wanted, StoredTime) else resolve(wanted, log)
        if not replicated and not log.foreign:
            return raised(start if rewound is None else rewound_to(start, rewound), oldest_granted)
    else:
        start = replace(resolve(wanted.place, log), held=wanted.vector)
        own = own_feed(log.epoch)
        trusted = not by_vector(wanted, log)
        if trusted:
            before = start.next, await vector_before(reader, rp, log, start.next)
            trusted = fits(wanted.vector, log, own, before[1])
        if not trusted:
            oldest = await vector_before(reader, rp, log, log.first)
            start = resume(wanted.vector, log, own, oldest, await first_lacking(reader, rp, log, wanted.vector))
    start = raised(start if rewound is None else rewound_to(start, rewound), oldest_granted)
    if before is None or before[0] != start.next:
        before = start.next, await vector_before(reader, rp, log, start.next)
    start = replace(start, held=merged(before[1], start.held or {}))
    return start if start.gap is None else replace(start, gap=replace(start.gap, cursor=str(start.cursor)))


async def _continued(reader: LogReader, rp: str, wanted: Cursor, log: LogState) -> tuple[Cursor, Rewound | None]:
    """Return the position that a cursor of another epoch, or beyond the log's end, denotes now; and what was withdrawn."""
    lineage = await reader.lineage(rp)
    if lineage.epoch != log.epoch:
        raise LogChanged
    place, rewound = lineage.continued(wanted)
    if rewound is not None and place.vector is not None:
        before = await vector_before(reader, rp, log, max(place.offset + 1, log.first))
        place = place._replace(vector=without_rewound(place.vector, before, own_feed(log.epoch)))
    return place, rewound


def without_rewound(vector: Vector, before: Vector, own: str) -> Vector:
    """Return a reader's vector without the events of the own feed that were withdrawn.

    Args:
        before: vector of the log up to where it continues the reader's epoch.
    """
    return {**vector, own: min(vector.get(own, 0), before.get(own, 0))}


async def _begun_at(reader: LogReader, rp: str, wanted: StoredTime, log: LogState) -> Start:
    found = await reader.offset_at(rp, wanted.ms)
    if found.epoch != log.epoch:
        raise LogChanged
    return begun_at(found.offset, found.future, log)


async def vector_before(reader: LogReader, rp: str, log: LogState, offset: int) -> Vector:
    """Return the vector before `offset`, which is held or the next one, with the own feed by its key.

    Raises LogChanged if the log was replaced.
    """
    if not log.foreign:
        return {own_feed(log.epoch): offset - 1}
    vector = await reader.vector_at(rp, offset - 1)
    if vector is None:
        raise LogChanged
    return _with_own(vector, log.epoch)


async def first_lacking(reader: LogReader, rp: str, log: LogState, vector: Vector) -> int:
    """Return the offset of the first event held that `vector` does not cover; later events may be covered all the same."""
    own = own_feed(log.epoch)
    if not log.foreign:
        return max(log.first, vector.get(own, 0) + 1)
    return max(log.first, await reader.first_lacking(rp, vector, own))


def feed_positions_of(run: LogRun, count: int) -> list[FeedPlace]:
    """Return the feeds and sequences of the first `count` events of a run."""
    own = own_feed(run.state.epoch)
    if not run.places:
        return feed_positions(own, run.first, count)
    ends = [part.begin for part in run.places[1:]] + [len(run.events)]
    places: list[FeedPlace] = []
    for part, end in zip(run.places, ends, strict=True):
        places += feed_positions(part.feed or own, part.sequence, end - part.begin)
    return places[:count]


def vector_of(run: LogRun) -> Vector:
    """Return the vector before a run."""
    if not run.state.foreign:
        return {own_feed(run.state.epoch): run.first - 1}
    return _with_own(run.before, run.state.epoch)


def _with_own(vector: Vector, epoch: str) -> Vector:
    """Add the key of the own feed to a log's vector, which has no name for it."""
    held = dict(vector)
    held[own_feed(epoch)] = held.pop(OWN, 0)
    return held
