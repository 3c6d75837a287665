"""Outcomes of attempts, on their way to the stores: acknowledged positions and attempts to Redis, standings to SQL.

Everything that gathers during one round trip is in the next one. A position or standing replaces an older one that waits,
so a store that is away costs a bound of memory; attempts beyond a bound are not recorded.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from eventing.core.errors import Unavailable
from eventing.core.events.cursors import Cursor
from eventing.log.reader import LogReader
from eventing.sql.threads import in_database
from eventing.store.errors import RedisError
from eventing.store.push_attempts import PushAttempt, attempt_commands
from eventing.subscriptions.push.process.course import Course
from eventing.subscriptions.push.process.shared_courses import SharedCourses
from eventing.subscriptions.push.services.outcomes import StandingFound, standings_save
from eventing.subscriptions.push.services.warnings import WARNED_OF

GATHER_S = 0.005
PAUSE_S = 0.5
# The thread of a transaction keeps the interpreter from the event loop: failures by the hundred are gathered meanwhile.
SQL_REST_S = (
    0.25  # bound: seconds to the next transaction with standings, if there were many; further ones are in that one
)
MANY_PER_S = 20  # bound: standings of a second that are written at once; further ones are gathered
ATTEMPTS_WAITING_MAX = 10_000  # bound: attempts that wait for Redis; further ones are not recorded
log = logging.getLogger(__name__)


class Recorder:
    """The stores of one deliverer."""

    def __init__(self, reader: LogReader, shared: SharedCourses) -> None:
        self._reader = reader
        self._shared = shared
        self._settled: dict[str, tuple[Course, int]] = {}
        self._acknowledged: dict[tuple[str, str], Cursor] = {}
        self._attempts: dict[tuple[str, str], list[PushAttempt]] = {}
        self._attempts_count = 0
        self._standings: dict[str, StandingFound] = {}
        self._to_redis, self._to_sql = asyncio.Event(), asyncio.Event()
        self._second, self._in_second = 0, 0
        self.paused = asyncio.Event()
        """Set when a standing was stored of which owners are warned."""

    def start(self) -> list[asyncio.Task[None]]:
        """Start the writers; the caller cancels them, after `flush`."""
        loop = asyncio.get_running_loop()
        return [
            loop.create_task(self._write(self._to_redis, self._redis_once)),
            loop.create_task(self._write(self._to_sql, self._sql_once)),
        ]

    def settled(self, course: Course, cursor: Cursor) -> None:
        """Store the position up to which everything of a course is settled."""
        self.acknowledged(course.feed.rp, course.id, cursor)
        if course.is_shared:
            self._settled[course.id] = (course, cursor.offset)

    def acknowledged(self, rp: str, subscription: str, cursor: Cursor) -> None:
        """Store the acknowledged position of a subscription."""
        self._acknowledged[rp, subscription] = cursor
        self._to_redis.set()

    def attempted(self, rp: str, subscription: str, attempt: PushAttempt) -> None:
        """Record an attempt."""
        if self._attempts_count < ATTEMPTS_WAITING_MAX:
            self._attempts_count += 1
            self._attempts.setdefault((rp, subscription), []).append(attempt)
            self._to_redis.set()

    def stands(self, found: StandingFound) -> None:
        """Store the standing of an endpoint."""
        self._standings[found.subscription] = found
        self._to_sql.set()

    async def flush(self) -> None:
        """Store everything that waits, once."""
        for write in (self._redis_once, self._sql_once):
            try:
                await write()
            except (RedisError, OSError, Unavailable) as error:
                log.warning(
                    "push: at the end some outcomes could not be stored; their events are sent again: %s", error
                )

    async def _write(self, wanted: asyncio.Event, write: Callable[[], Awaitable[None]]) -> None:
        while True:
            await wanted.wait()
            await asyncio.sleep(GATHER_S)
            wanted.clear()
            try:
                await write()
            except (RedisError, OSError, Unavailable) as error:
                log.warning("push: outcomes cannot be stored yet: %s", error)
                wanted.set()
                await asyncio.sleep(PAUSE_S)

    async def _redis_once(self) -> None:
        acknowledged, self._acknowledged = self._acknowledged, {}
        try:
            await self._reader.acknowledge_each([(*place, cursor) for place, cursor in acknowledged.items()])
        except BaseException:
            self._acknowledged = {**acknowledged, **self._acknowledged}
            raise
        settled, self._settled = self._settled, {}
        try:
            for course, offset in settled.values():
                await self._shared.settled(course, offset)
        except BaseException:
            self._settled = {**settled, **self._settled}
            raise
        attempts, self._attempts, self._attempts_count = self._attempts, {}, 0
        await self._reader.ask([one for place, some in attempts.items() for one in attempt_commands(*place, some)])

    async def _sql_once(self) -> None:
        standings, self._standings = self._standings, {}
        if not standings:
            return
        try:
            await in_database(standings_save)(list(standings.values()))
        except BaseException:
            self._standings = {**standings, **self._standings}
            raise
        if any(one.standing.state in WARNED_OF for one in standings.values()):
            self.paused.set()
        await self._rest(len(standings))

    async def _rest(self, written: int) -> None:
        """Wait after many standings: an owner who looks sees a single one at once."""
        second = int(time.monotonic())
        self._in_second = written + (self._in_second if second == self._second else 0)
        self._second = second
        if self._in_second > MANY_PER_S:
            await asyncio.sleep(SQL_REST_S)
