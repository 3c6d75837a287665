"""Courses of subscriptions that several domains hold: delivered here while this domain has the delivery lease.

    watch -> the lease is here under a new term: the place is computed from the acknowledged vector, and events are sent
          -> the lease expired, or is elsewhere: nothing more is sent; what is in flight is acknowledged when it is settled

Events that another holder delivered meanwhile are covered by the acknowledged vector, and not sent again. What is settled
here is joined to that vector; the sweep of sharing sends it to the other holders.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from eventing.conf import config
from eventing.core.events import positions
from eventing.core.events.feeds import Feed
from eventing.core.events.lineage import root_epoch
from eventing.core.events.positions import LogState, Start
from eventing.log.reader import LogReader
from eventing.log.scripts import OWN, NoLog
from eventing.log.shared_subscriptions import KEPT_S, Kept, SubscriptionKey, acknowledge, kept_of
from eventing.overlay import takeover
from eventing.store.connection import AsyncRedis
from eventing.store.errors import RedisError
from eventing.subscriptions.push.process.course import Course

WATCH_S = 0.5
"""Seconds between two reads of the standings: the longest for which two holders in reach of each other deliver."""
log = logging.getLogger(__name__)


class SharedCourses:
    """The shared courses of one deliverer.

    Args:
        gained: called with courses that are delivered here from now on; their places are not known yet.
    """

    def __init__(self, redis: AsyncRedis, reader: LogReader, gained: Callable[[list[Course]], None]) -> None:
        self._redis = redis
        self._reader = reader
        self._gained = gained
        self._courses: dict[str, Course] = {}
        self._added = asyncio.Event()

    def add(self, course: Course) -> None:
        """Watch the standing of a course."""
        self._courses[course.id] = course
        self._added.set()

    def remove(self, subscription: str) -> None:
        """Watch it no longer."""
        self._courses.pop(subscription, None)

    async def watch_forever(self) -> None:
        """Read the standings of all courses from time to time."""
        while True:
            await self._added.wait()
            await asyncio.sleep(WATCH_S)
            if not self._courses:
                self._added.clear()
                continue
            try:
                await self._watch(list(self._courses.values()))
            except (RedisError, OSError) as error:
                log.warning("push: the delivering domains of shared subscriptions are not known: %s", error)

    async def _watch(self, courses: Sequence[Course]) -> None:
        found = await kept_of(self._redis, [_place(course) for course in courses])
        begun = [course for course, kept in zip(courses, found, strict=True) if _taken(course, kept)]
        if begun:
            self._gained(begun)

    async def start_of(self, course: Course, state: LogState) -> Start:
        """Compute where a course continues in the log here, and note what other holders delivered. Raises NoLog, RedisError."""
        rp = course.feed.rp
        (kept,) = await kept_of(self._redis, [_place(course)])
        own = Feed(config().domain, state.root).key
        before = _with_own(await self._reader.vector_at(rp, state.first - 1) or {}, own)
        lacking = await self._reader.first_lacking(rp, positions.believed(kept.acked, state, own), own)
        start = positions.resume(kept.acked, state, own, before, lacking)
        course.covered = start.held or {}
        return positions.raised(start, await self._reader.oldest_granted(rp, course.history))

    async def settled(self, course: Course, offset: int) -> None:
        """Join everything up to an offset of the log here to the acknowledged vector. Raises RedisError, OSError."""
        try:
            vector = await self._reader.vector_at(course.feed.rp, offset)
        except NoLog:
            return
        if vector is None:  # the log is another one, or the place left the history: its events are sent again
            return
        joined = _with_own(vector, Feed(config().domain, root_epoch(course.feed.epoch)).key)
        await acknowledge(self._redis, _place(course), [joined], max(0, int(course.expires_at - time.time())) + KEPT_S)


def _taken(course: Course, kept: Kept) -> bool:
    """Apply what is stored to a course. Returns True if it is delivered here under another term than before."""
    standing, now_ms = kept.standing, int(time.time() * 1000)
    if standing is None or not takeover.delivers(standing, config().domain, now_ms):
        course.delivers_until = 0.0
        return False
    course.delivers_until = standing.until_ms / 1000
    if standing.term == course.term:
        course.covered = {**course.covered, **_grown(course.covered, kept.acked)}
        return False
    course.term, course.window = standing.term, None
    return True


def _grown(held: Mapping[str, int], acked: Mapping[str, int]) -> dict[str, int]:
    """Return the feeds of other domains that grew: another holder delivered them during a partition."""
    return {feed: last for feed, last in acked.items() if last > held.get(feed, 0)}


def _with_own(vector: Mapping[str, int], own: str) -> dict[str, int]:
    held = dict(vector)
    held[own] = held.pop(OWN, 0)
    return held


def _place(course: Course) -> SubscriptionKey:
    return SubscriptionKey(course.feed.rp, course.id)
