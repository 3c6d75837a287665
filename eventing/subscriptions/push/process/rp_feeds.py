"""Events of RPs for all of their push subscriptions: notifications, and reads that subscriptions at the same place share.

A feed keeps the last runs of its log within a bound of bytes. Subscriptions that keep up are served from notifications
without a read; those that were away cost one read for all that continue at the same place.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import NamedTuple

from eventing.core.events.positions import LogState
from eventing.log.reader import LogReader
from eventing.log.scripts import OWN, Notification, Part

RUNS_BYTES_MAX = 1024 * 1024  # bound: bytes of events that a feed keeps; the oldest run is dropped, and read if needed
ALL_BYTES_MAX = 16 * 1024 * 1024  # bound: bytes that all feeds keep; the feed that was used longest ago drops its runs
READ_EVENTS = 500
READ_BYTES = 512 * 1024


Origin = tuple[str, int]
"""Key of an event's feed (OWN: this log's), and its sequence there."""


class _Kept(NamedTuple):
    """Consecutive events, their bytes in all, and their parts of one feed; () for own events numbered by their offset."""

    bodies: list[bytes]
    size: int
    parts: tuple[Part, ...]


class FeedSlice(NamedTuple):
    """Consecutive events from the offset `first` on; empty where the log has none there."""

    first: int
    bodies: list[bytes]


class KeptBytes:
    """Bytes that all feeds keep together."""

    def __init__(self) -> None:
        self.total = 0
        self.feeds: OrderedDict[str, RpFeed] = OrderedDict()

    def used(self, feed: RpFeed) -> None:
        """Note a use, and have feeds that were used longest ago drop their runs."""
        self.feeds[feed.rp] = feed
        self.feeds.move_to_end(feed.rp)
        while self.total > ALL_BYTES_MAX and len(self.feeds) > 1:
            self.feeds.popitem(last=False)[1].drop()


class RpFeed:
    """The log of one RP as its push subscriptions need it.

    Attributes:
        epoch: of the log; empty before the first `follow`.
        end: offset of the next event.
        first: oldest offset held, as last read.
        was_notified_early: whether a notification arrived before the epoch was known.
    """

    def __init__(self, rp: str, reader: LogReader, kept: KeptBytes) -> None:
        self.rp = rp
        self.epoch = ""
        self.end = 1
        self.first = 1
        self.was_notified_early = False
        self._reader = reader
        self._kept = kept
        self._runs: OrderedDict[int, _Kept] = OrderedDict()  # by first offset
        self._bytes = 0
        self._reads: dict[int, asyncio.Task[None]] = {}

    def follow(self, state: LogState) -> bool:
        """Take the extent of the log. Returns True if its epoch is another one than before."""
        changed = bool(self.epoch) and state.epoch != self.epoch
        if state.epoch != self.epoch:
            self.drop()
            self.epoch, self.end = state.epoch, state.next
        self.first, self.end = state.first, max(self.end, state.next)
        return changed

    def notified(self, found: Notification) -> bool:
        """Take a notification. Returns False if it does not continue what is known: the extent must be read."""
        if found.epoch != self.epoch or found.first > self.end:
            return False
        if found.first + len(found.events) > self.end:
            self.end = found.first + len(found.events)
            self._add(found.first, found.events, (Part(0, found.feed, found.sequence),))
            self._kept.used(self)
        return True

    def peek(self, offset: int, count: int) -> FeedSlice | None:
        """Return up to `count` kept events from this offset on; None if a read is needed."""
        for first in reversed(self._runs):
            bodies = self._runs[first].bodies
            if first <= offset < first + len(bodies):
                return FeedSlice(offset, bodies[offset - first : offset - first + count])
        return None

    def origins(self, offset: int, count: int) -> list[Origin]:
        """Return the feeds and sequences of up to `count` kept events from this offset on; [] if they are not kept."""
        for first in reversed(self._runs):
            run = self._runs[first]
            if not first <= offset < first + len(run.bodies):
                continue
            if not run.parts:
                return [(OWN, at) for at in range(offset, min(offset + count, first + len(run.bodies)))]
            ends = [part.begin for part in run.parts[1:]] + [len(run.bodies)]
            found: list[Origin] = []
            for part, end in zip(run.parts, ends, strict=True):
                found += [(part.feed, part.sequence + index) for index in range(end - part.begin)]
            return found[offset - first : offset - first + count]
        return []

    async def take(self, offset: int, count: int) -> FeedSlice:
        """Return up to `count` events from this offset on, or from the oldest held. Raises NoLog, redis.RedisError, OSError."""
        found = self.peek(offset, count)
        if found is None:
            reading = self._reads.get(offset)
            if reading is None:
                reading = self._reads[offset] = asyncio.get_running_loop().create_task(self._read(offset))
                reading.add_done_callback(
                    lambda done: self._reads.pop(offset, None) and (done.cancelled() or done.exception())
                )
            await asyncio.shield(reading)
            found = self.peek(offset, count) or self.peek(max(offset, self.first), count)
        self._kept.used(self)
        return found or FeedSlice(self.end, [])

    def drop(self) -> None:
        """Drop all kept events."""
        self._kept.total -= self._bytes
        self._runs.clear()
        self._bytes = 0

    async def _read(self, offset: int) -> None:
        run = await self._reader.read(self.rp, offset, READ_EVENTS, READ_BYTES)
        self.follow(run.state)
        if run.events:
            self._add(run.first, run.events, run.places)

    def _add(self, first: int, bodies: list[bytes], parts: tuple[Part, ...]) -> None:
        size = sum(map(len, bodies))
        if first in self._runs:
            self._discard(first)
        self._runs[first] = _Kept(bodies, size, parts)
        self._bytes += size
        self._kept.total += size
        while self._bytes > RUNS_BYTES_MAX and len(self._runs) > 1:
            self._discard(next(iter(self._runs)))

    def _discard(self, first: int) -> None:
        size = self._runs.pop(first).size
        self._bytes -= size
        self._kept.total -= size
