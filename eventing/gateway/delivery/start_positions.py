"""Where a reader begins in an RP's log, for every binding: core/events/positions.py decides, this asks the log what it needs.

Without a version vector all is in the log's extent. A cursor from another replica takes two reads more: what the events
before the oldest one held were of each feed, and the first event that the cursor's vector does not cover.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from eventing.conf import config
from eventing.core.errors import Unavailable
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.events.positions import LogState, Place, Start, by_vector, fits, raised, resolve, resume
from eventing.core.events.progress import Place as FeedPlace
from eventing.core.events.progress import feed_places
from eventing.core.events.vectors import Vector, merged
from eventing.log.reader import LogReader
from eventing.log.scripts import OWN, Run

OWN_CACHED = 10_000
LOOKS = 3  # at a log that is trimmed or made anew while we look


class LookAgain(Exception):
    """The log was trimmed or made anew between two reads."""


@lru_cache(maxsize=OWN_CACHED)
def own_feed(epoch: str) -> str:
    """The key of what this domain publishes at an RP whose log has this epoch."""
    return Feed(config().domain, epoch).key


async def start_of(
    reader: LogReader, rp: str, wanted: Place | Cursor, log: LogState, *, floor: int = 0, replicated: bool = False
) -> Start:
    """The start for `wanted` in the log whose extent is `log`.

    Args:
        floor: the oldest offset that a durable subscription's own bounds grant.
        replicated: whether cursors have vectors here although the log has no event of another domain yet.

    Raises NoLog, Unavailable and redis' errors.
    """
    for _ in range(LOOKS):
        try:
            return await _start_of(reader, rp, wanted, log, floor, replicated)
        except LookAgain:
            log = await reader.state(rp)
    raise Unavailable("The event log changes faster than it can be read. Try again in a moment.", retry_after_s=1)


async def _start_of(
    reader: LogReader, rp: str, wanted: Place | Cursor, log: LogState, floor: int, replicated: bool
) -> Start:
    before: tuple[int, Vector] | None = None  # what stands before an offset
    if not isinstance(wanted, Cursor) or wanted.vector is None:
        start = resolve(wanted, log)
        if not replicated and not log.foreign:
            return raised(start, floor)
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
    start = raised(start, floor)
    if before is None or before[0] != start.next:
        before = start.next, await vector_before(reader, rp, log, start.next)
    start = replace(start, held=merged(before[1], start.held or {}))
    return start if start.gap is None else replace(start, gap=replace(start.gap, cursor=str(start.cursor)))


async def vector_before(reader: LogReader, rp: str, log: LogState, offset: int) -> Vector:
    """What the events before `offset`, which is held or the next one, are of each feed, the own one by its key.

    Raises LookAgain if the log is another by now.
    """
    if not log.foreign:
        return {own_feed(log.epoch): offset - 1}
    vector = await reader.vector_at(rp, offset - 1)
    if vector is None:
        raise LookAgain
    return _with_own(vector, log.epoch)


async def first_lacking(reader: LogReader, rp: str, log: LogState, vector: Vector) -> int:
    """The offset of the first event held that `vector` does not cover; what follows may be covered all the same."""
    own = own_feed(log.epoch)
    if not log.foreign:
        return max(log.first, vector.get(own, 0) + 1)
    return max(log.first, await reader.first_lacking(rp, vector, own))


def places_of(run: Run, count: int) -> list[FeedPlace]:
    """The feeds and sequences of the first `count` events of a run."""
    own = own_feed(run.state.epoch)
    if not run.places:
        return feed_places(own, run.first, count)
    ends = [part.begin for part in run.places[1:]] + [len(run.events)]
    places: list[FeedPlace] = []
    for part, end in zip(run.places, ends, strict=True):
        places += feed_places(part.feed or own, part.sequence, end - part.begin)
    return places[:count]


def vector_of(run: Run) -> Vector:
    """What the events before a run are of each feed."""
    if not run.state.foreign:
        return {own_feed(run.state.epoch): run.first - 1}
    return _with_own(run.before, run.state.epoch)


def _with_own(vector: Vector, epoch: str) -> Vector:
    """A log's vector, in which the own feed has no name, with its key."""
    held = dict(vector)
    held[own_feed(epoch)] = held.pop(OWN, 0)
    return held
