"""The deliverer: one process of the domain at a time sends to all endpoints, on one event loop.

    lease -> endpoints from SQL, places from Redis -> notifications of logs and of changes -> dispatcher -> ... -> lease lost

The lease (store/lease.py) has an expiry: where this process dies or stalls, another one continues at the acknowledged
positions. A process that stalled finds out before it sends anything more, and what it still acknowledges can only move
positions forward to what was delivered.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable

from eventing.conf import config
from eventing.core.errors import ApplicationError, Unavailable
from eventing.core.events import positions
from eventing.core.events.cursors import Cursor
from eventing.core.events.history import HistoryBounds
from eventing.core.events.positions import LogState
from eventing.log.reader import LogReader
from eventing.log.routed_notifications import notification_channels
from eventing.log.scripts import NoLog, parse_notification
from eventing.sql.threads import in_database
from eventing.store.connection import async_client
from eventing.store.errors import RedisError
from eventing.store.hub_requests import HUB_NOTICE
from eventing.store.keys import PUSH_CHANNEL, notification_channel
from eventing.store.push_attempts import push_lease
from eventing.subscriptions.push.process.access_records import PushAccessRecords
from eventing.subscriptions.push.process.backlog import backlog_measure
from eventing.subscriptions.push.process.course import Course
from eventing.subscriptions.push.process.dispatcher import AGAIN_S, TRIMMED, Dispatcher
from eventing.subscriptions.push.process.endings import EndingSender
from eventing.subscriptions.push.process.hub_requests import HubRequests
from eventing.subscriptions.push.process.owner_warnings import OwnerWarnings
from eventing.subscriptions.push.process.recorder import Recorder
from eventing.subscriptions.push.process.rp_feeds import KeptBytes, RpFeed
from eventing.subscriptions.push.process.shared_courses import SharedCourses
from eventing.subscriptions.push.rules.delivery_window import DeliveryWindow
from eventing.subscriptions.push.rules.endpoint_states import paused
from eventing.subscriptions.push.selectors import (
    REPLAYS_MAX,
    EndpointRow,
    endpoints_named,
    endpoints_page,
    generations,
    replays_waiting,
    states_count,
)
from eventing.subscriptions.push.services.outcomes import GivenUp, StandingFound, given_up_note
from eventing.subscriptions.push.services.vault import SecretsNotOpened
from eventing.subscriptions.push.wire.client import PushClient, PushNetwork
from eventing.subscriptions.push.wire.tls import TlsContexts
from eventing.telemetry import metrics

HELD_S = 4.0
"""Lease of the deliverer; another process takes over after it."""
RENEW_S = 1.0
PLACE_S = 5.0
"""Longest wait until Redis has confirmed a subscription to a notification channel; the sweep tries again."""
SWEEP_S = 10.0
"""Seconds between two comparisons with what is stored, and with the ends of logs."""
TURN_S = 0.25
"""Seconds between two looks whether the process ends, and whether records are due."""
EMPTY_TURN_S = 1.0
"""The same while there is no endpoint."""
PART_S = 0.1
NOT_OPENED = "secrets-not-opened"
log = logging.getLogger(__name__)


class Deliverer:
    """One run, from the lease to its end.

    Args:
        stopping: whether the process ends.
    """

    def __init__(self, stopping: Callable[[], bool]) -> None:
        self._stopping = stopping
        self._lease = push_lease(os.urandom(8).hex(), int(HELD_S * 1000))
        self._held_until = 0.0
        self._feeds: dict[str, RpFeed] = {}
        self._courses: dict[str, Course] = {}
        self._at: dict[str, dict[str, Course]] = {}  # by RP
        self._kept = KeptBytes()
        self._noted: set[str] = set()
        self._wanted = asyncio.Event()

    async def run(self) -> bool:
        """Deliver until the end. Returns False at once if another process has the lease. Raises RedisError, OSError, Unavailable."""
        self._redis = async_client(config().effective_redis_url)
        try:
            if not await self._lease.acquire(self._redis):
                return False
            self._renewed()
            await self._run()
            return True
        finally:
            await self._redis.aclose()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        self._reader = LogReader(self._redis, fenced=config().fenced)
        self._channels = notification_channels(self._redis, self._notified, self._restored)
        self._client = PushClient(_network())
        self._shared = SharedCourses(self._redis, self._reader, self._place_soon)
        self._records = PushAccessRecords(config())
        self._recorder = Recorder(self._reader, self._shared)
        self._dispatcher = Dispatcher(self._client, self._recorder, self._records, self._held, self._place_soon)
        self._hub = HubRequests(self._redis, self._client, self._held)
        self._endings = EndingSender(self._redis, self._client, self._held)
        self._tasks: set[asyncio.Task[None]] = set()
        self._channels.start()
        writers = self._recorder.start()
        loops = (self._keep_lease(), self._part_slow_ones(), self._shared.watch_forever(), self._endings.run())
        keepers = [loop.create_task(one) for one in loops]
        try:
            await self._channels.subscribe(PUSH_CHANNEL)
            keepers.append(loop.create_task(self._hub.run()))
            warnings = OwnerWarnings(self._client, self._recorder, self._dispatcher.consents)
            keepers.append(loop.create_task(warnings.run()))
            await self._read_all()
            await self._sweeps()
        finally:
            for task in (*keepers, *self._tasks):
                task.cancel()
            await self._dispatcher.stop()
            for course in self._courses.values():
                course.stop()
            for task in writers:
                task.cancel()
            await asyncio.gather(*keepers, *writers, *self._tasks, return_exceptions=True)
            await self._recorder.flush()
            await asyncio.to_thread(self._records.close)
            self._client.close()
            await self._channels.close()
            self._reader.close()
            if self._held():
                await self._lease.release(self._redis)

    # The lease

    def _held(self) -> bool:
        return asyncio.get_running_loop().time() < self._held_until

    def _renewed(self) -> None:
        self._held_until = asyncio.get_running_loop().time() + HELD_S - RENEW_S / 2

    async def _keep_lease(self) -> None:
        while True:
            await asyncio.sleep(RENEW_S)
            try:
                if not await self._lease.renew(self._redis):
                    self._held_until = 0.0
                    return
                self._renewed()
            except (RedisError, OSError) as error:
                log.warning("push: the lease could not be renewed yet: %s", error)

    async def _part_slow_ones(self) -> None:
        """Free places of requests that take long, whatever else this process waits for."""
        while True:
            await self._dispatcher.began.wait()
            await asyncio.sleep(PART_S)
            self._dispatcher.part_slow_ones()

    # What is stored

    async def _read_all(self) -> None:
        after: str | None = ""
        while after is not None:
            rows, after = await in_database(endpoints_page)(after)
            self._take(rows)
            courses = [self._courses[row.id] for row in rows if row.id in self._courses]
            await self._place(courses)
            self._dispatcher.ready_all(courses)
        await self._replays()

    async def _sweeps(self) -> None:
        """Take changes as they are noted, and compare with what is stored from time to time."""
        loop = asyncio.get_running_loop()
        next_at = loop.time() + SWEEP_S
        while self._held() and not self._stopping():
            try:
                async with asyncio.timeout(TURN_S if self._courses else EMPTY_TURN_S):
                    await self._wanted.wait()
            except TimeoutError:
                pass
            self._wanted.clear()
            if self._noted:
                noted, self._noted = self._noted, set()
                await self._changed(noted)
            self._records.flush_if_due()
            if loop.time() >= next_at:
                next_at = loop.time() + SWEEP_S
                await self._sweep()

    async def _sweep(self) -> None:
        stored = await in_database(generations)()
        await self._changed(
            {one for one in {**stored, **self._courses} if self._generation(one) != stored.get(one)}
            | {course.id for course in self._courses.values() if course.is_stale}
        )
        self._client.tidy()
        for state, count in (await in_database(states_count)()).items():
            metrics.PUSH_ENDPOINTS.labels(state).set(count)
        await self._follow_all()
        await backlog_measure(self._courses.values(), self._reader)
        self._dispatcher.ready_all(list(self._courses.values()))

    def _generation(self, subscription: str) -> int | None:
        course = self._courses.get(subscription)
        return None if course is None else course.generation

    async def _changed(self, ids: Iterable[str]) -> None:
        """Read these subscriptions again; those that are no longer wanted end."""
        wanted = sorted(ids)
        found = await in_database(endpoints_named)(wanted) if wanted else {}
        for one in wanted:
            if one not in found:
                self._end(one)
        self._take(found.values())
        await self._place([course for one in found if (course := self._courses.get(one)) and course.window is None])
        await self._replays()
        self._dispatcher.ready_all([self._courses[one] for one in found if one in self._courses])

    async def _replays(self) -> None:
        held = [replay.id for course in self._courses.values() for replay in course.replays]
        if len(held) >= REPLAYS_MAX:
            return
        for replay in await in_database(replays_waiting)(held, REPLAYS_MAX - len(held)):
            course = self._courses.get(replay.subscription)
            if course is not None:
                course.replays.append(replay)
                self._dispatcher.ready(course)

    def _take(self, rows: Iterable[EndpointRow]) -> None:
        for row in rows:
            course = self._courses.get(row.id)
            try:
                if course is not None:
                    course.update(row)
                    continue
                feed = self._feeds.get(row.rp)
                if feed is None:
                    feed = self._feeds[row.rp] = RpFeed(row.rp, self._reader, self._kept)
                    self._channels.subscribe(notification_channel(row.rp))
                course = self._courses[row.id] = self._at.setdefault(row.rp, {})[row.id] = Course(row, feed)
                if course.is_shared:
                    self._shared.add(course)
            except (SecretsNotOpened, ApplicationError) as error:
                self._refuse(row, error)

    def _refuse(self, row: EndpointRow, error: SecretsNotOpened | ApplicationError) -> None:
        """Pause an endpoint that cannot be called: its secrets were sealed with another key, or settings changed."""
        reason = NOT_OPENED if isinstance(error, SecretsNotOpened) else str(error)
        self._recorder.stands(StandingFound(row.id, row.generation, paused(row.standing, reason)))
        self._end(row.id)

    def _end(self, subscription: str) -> None:
        course = self._courses.pop(subscription, None)
        if course is None:
            return
        course.stop()
        self._shared.remove(subscription)
        rp = course.feed.rp
        others = self._at[rp]
        del others[subscription]
        if not others:
            del self._at[rp]
            self._feeds.pop(rp).drop()
            self._kept.feeds.pop(rp, None)
            self._channels.unsubscribe(notification_channel(rp))

    # Places in logs

    def _place_soon(self, courses: list[Course]) -> None:
        task = asyncio.get_running_loop().create_task(self._place_and_send(courses))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _place_and_send(self, courses: list[Course]) -> None:
        await self._place(courses)
        self._dispatcher.ready_all(courses)

    async def _place(self, courses: list[Course]) -> None:
        """Find the places of these courses in their logs. Those that find none are tried again by the sweep."""
        by_rp: dict[str, list[Course]] = {}
        for course in courses:
            by_rp.setdefault(course.feed.rp, []).append(course)
        for rp, some in by_rp.items():
            try:
                await self._place_at(rp, some)
            except (NoLog, RedisError, OSError, Unavailable) as error:
                log.warning("push: places at %s are not known yet: %s", rp, type(error).__name__)

    async def _place_at(self, rp: str, courses: list[Course]) -> None:
        feed = courses[0].feed
        async with asyncio.timeout(PLACE_S):
            await self._channels.subscribe(notification_channel(rp))  # before the extent is read: nothing is missed
        state = await self._reader.state(rp)
        changed = feed.follow(state)
        if feed.was_notified_early:  # the extent may have been read before, and its answer have arrived after
            feed.was_notified_early = False
            state = await self._reader.state(rp)
            changed = feed.follow(state) or changed
        if changed:
            courses = list(self._at.get(rp, {}).values())
            for course in courses:
                course.window = None
        for course in courses:
            if course.is_shared and course.delivers and course.window is None:
                await self._place_shared(course, state)
        courses = [course for course in courses if not course.is_shared]
        cursors = await self._reader.subscription_cursors(rp, [course.id for course in courses])
        granted: dict[HistoryBounds, int] = {}
        for course, cursor in zip(courses, cursors, strict=True):
            if course.window is not None:  # placed meanwhile
                continue
            held = (cursor or Cursor.parse(course.start)).place
            if held.epoch != state.epoch or held.offset >= state.next:
                lineage = await self._reader.lineage(rp)
                held, rewound = lineage.continued(held)
                if lineage.epoch != state.epoch:
                    continue  # the log goes on in another epoch: placed when its extent is read again
                if rewound is not None:
                    log.warning("push: %s had %s, which was withdrawn", course.id, rewound)
            start = positions.resolve(held, state)
            begin = start.next
            if begin < state.next:
                if course.history not in granted:
                    granted[course.history] = await self._reader.oldest_granted(rp, course.history)
                begin = max(begin, granted[course.history])
            lost_from = held.offset + 1 if held.epoch == state.epoch else 1
            if begin > lost_from:
                lost = GivenUp(course.id, state.epoch, lost_from, begin - 1, TRIMMED, 0)
                await in_database(given_up_note)(lost, bounded=False)
            if begin - 1 != held.offset or held.epoch != state.epoch:
                self._recorder.acknowledged(rp, course.id, Cursor(state.epoch, begin - 1))
            if course.window is None:
                course.window = DeliveryWindow(begin - 1, course.in_flight)

    async def _place_shared(self, course: Course, state: LogState) -> None:
        """Continue where the holder stopped that delivered before."""
        start = await self._shared.start_of(course, state)
        if start.gap is not None and start.gap.end >= start.gap.start:
            lost = GivenUp(course.id, state.epoch, start.gap.start, start.gap.end, TRIMMED, 0)
            await in_database(given_up_note)(lost, bounded=False)
        if course.window is None:
            course.window = DeliveryWindow(start.next - 1, course.in_flight)

    async def _follow_all(self) -> None:
        """Read the ends of all logs: a notification may have been lost, a log replaced."""
        rps = list(self._feeds)
        for begin in range(0, len(rps), 500):
            some = rps[begin : begin + 500]
            for rp, state in zip(some, await self._reader.states(some), strict=True):
                feed = self._feeds.get(rp)
                if feed is None or isinstance(state, Exception):
                    continue
                if feed.follow(state):
                    for course in self._at[rp].values():
                        course.window = None
                await self._place([course for course in self._at.get(rp, {}).values() if course.window is None])

    # Notifications

    def _notified(self, channel: str, message: bytes) -> None:
        if channel == PUSH_CHANNEL:
            if message == HUB_NOTICE.encode():
                self._hub.notified()
                return
            self._endings.notified()
            self._noted.add(message.decode(errors="replace"))
            self._wanted.set()
            return
        found = parse_notification(message)
        rp = channel.removeprefix("herald:{").removesuffix("}:bell")
        feed = self._feeds.get(rp)
        if feed is None:
            return
        if not feed.epoch:
            feed.was_notified_early = True
            return
        if feed.notified(found):
            self._dispatcher.ready_all(list(self._at[rp].values()))
        else:
            self._restored()

    def _restored(self) -> None:
        """Read the ends of all logs: notifications were missed."""
        task = asyncio.get_running_loop().create_task(self._catch_up())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _catch_up(self) -> None:
        try:
            await self._follow_all()
        except (RedisError, OSError) as error:
            log.warning("push: the ends of logs are not known yet: %s", error)
            return
        self._dispatcher.ready_all(list(self._courses.values()))


def _network() -> PushNetwork:
    settings = config()
    return PushNetwork(settings.push_private, settings.port, settings.push_proxy, TlsContexts(settings.push_ca_file))


async def deliver(stopping: Callable[[], bool]) -> None:
    """Deliver whenever this process has the lease, until `stopping`."""
    while not stopping():
        try:
            await Deliverer(stopping).run()
        except (RedisError, OSError, Unavailable) as error:
            log.warning("push: ended, and begins again: %s", error)
        except Exception:
            log.exception("The deliverer failed, and begins again")
        if not stopping():
            await asyncio.sleep(AGAIN_S)
