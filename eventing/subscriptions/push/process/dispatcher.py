"""The dispatcher: which subscription is sent what and when, on one event loop.

A course (one subscription) that has work stands in line for a place (places.py), makes one request, and stands in line
again: fair turns, whatever backlog a subscription has. A failed attempt sets its endpoint's next time by the retry
schedule; until then the course is in no line. What an attempt means is decided by pure rules.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from eventing.conf import config
from eventing.core.errors import Unavailable
from eventing.core.events.cursors import Cursor
from eventing.core.events.feeds import Feed
from eventing.core.events.lineage import root_epoch
from eventing.log.scripts import NoLog
from eventing.sql.threads import in_database
from eventing.store.errors import RedisError
from eventing.store.push_attempts import PushAttempt
from eventing.subscriptions.push.modes import StoredEvent
from eventing.subscriptions.push.process.access_records import PushAccessRecords
from eventing.subscriptions.push.process.course import Course
from eventing.subscriptions.push.process.places import FAILING_EVERY_S, RequestPlace, RequestPlaces
from eventing.subscriptions.push.process.recorder import Recorder
from eventing.subscriptions.push.process.side_requests import SideRequests
from eventing.subscriptions.push.rules.delivery_window import DeliveryWindow, Part
from eventing.subscriptions.push.rules.endpoint_states import (
    DEAD_LETTERS_FULL,
    EndpointStanding,
    EndpointState,
    after_verdict,
    paused,
)
from eventing.subscriptions.push.rules.retries import retry_after_s, schedule_parse
from eventing.subscriptions.push.rules.verdicts import EXCERPT_BYTES_MAX, AttemptVerdict, PushAnswer
from eventing.subscriptions.push.services.outcomes import GivenUp, StandingFound, given_up_note
from eventing.subscriptions.push.wire.client import PushClient
from eventing.telemetry import metrics

BATCH_BYTES_MAX = 1024 * 1024  # bound: bytes of the events of one request; the others are in the next one
AGAIN_S = 1.0
"""Pause of a course whose log or database does not answer."""
TRIMMED = "history-trimmed"
log = logging.getLogger(__name__)


class Dispatcher:
    """The courses of one deliverer.

    Args:
        held: whether this process still has the lease; nothing is sent without it.
        place: finds the places of courses in their logs, and has them sent to.
    """

    def __init__(
        self,
        client: PushClient,
        recorder: Recorder,
        records: PushAccessRecords,
        held: Callable[[], bool],
        place: Callable[[list[Course]], None],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._records = records
        self._held = held
        self._place = place
        self._places = RequestPlaces()
        self._again: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.began = asyncio.Event()
        """Set while requests are in flight, or wait for others; `part_slow_ones` is to be called then."""
        self._schedule = schedule_parse(config().push_retries_s)
        self._chance = random.SystemRandom()
        self._side = SideRequests(self)
        self.consents = self._side.budget

    def ready(self, course: Course) -> None:
        """Have a course take its turn if it has work, now or when its endpoint may be called again."""
        if course.queued or not course.has_work:
            return
        wait_s = course.wait_s(time.time())
        if wait_s > 0:
            if course.timer is None:
                course.timer = asyncio.get_running_loop().call_later(wait_s, self._due, course)
            return
        self._places.stand_in_line(course)
        self._pump()

    def ready_all(self, courses: list[Course]) -> None:
        """Have several courses take their turns."""
        for course in courses:
            self.ready(course)

    async def stop(self) -> None:
        """End the requests in flight; what they bring is not known, so their events are sent again."""
        if self._again is not None:
            self._again.cancel()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def later(self, course: Course, after_s: float) -> None:
        """Look at a course again."""
        if course.timer is None and not course.stopped:
            course.timer = asyncio.get_running_loop().call_later(after_s, self._due, course)

    def _due(self, course: Course) -> None:
        course.timer = None
        self.ready(course)

    def _pump(self) -> None:
        loop = asyncio.get_running_loop()
        while self._held() and (found := self._places.next(loop.time())) is not None:
            task = loop.create_task(self._turn(*found))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            self.began.set()
        if self._again is None and self._places.failing_wait:
            self._again = loop.call_later(FAILING_EVERY_S, self._pump_again)

    def _pump_again(self) -> None:
        self._again = None
        self._pump()

    def part_slow_ones(self) -> None:
        """Free the places of requests that take long, and state how many are taken; to be called several times a second."""
        for kind, count in self._places.in_flight().items():
            metrics.PUSH_IN_FLIGHT.labels(kind).set(count)
        metrics.PUSH_WAITING.set(self._places.waiting)
        if self._places.part_slow_ones(asyncio.get_running_loop().time()):
            self._pump()
        if not self._tasks and not self._places.waiting:
            self.began.clear()  # the metrics say so already

    async def _turn(self, course: Course, place: RequestPlace) -> None:
        try:
            now = time.time()
            if course.has_work and course.wait_s(now) <= 0:
                if course.standing.state is EndpointState.UNVERIFIED:
                    await self._side.consent(course)
                    return
                course.spaced(now)
                if course.test_id and not course.busy:
                    await self._side.test(course)
                elif course.replays and not course.busy:
                    await self._side.replay(course)
                elif course.window is not None:
                    await self._deliver(course, course.window)
        except (RedisError, OSError, NoLog, Unavailable) as error:
            log.warning("push: %s waits for its log: %s", course.id, type(error).__name__)
            self.later(course, AGAIN_S)
        except Exception:
            log.exception("A delivery of %s failed by an error of ours; it is tried again", course.id)
            self.later(course, 30 * AGAIN_S)
        finally:
            self._places.leave(place)
            self.ready(course)
            self._pump()

    async def _deliver(self, course: Course, window: DeliveryWindow) -> None:
        """Send the next part of a subscription."""
        feed, epoch = course.feed, course.feed.epoch
        part = window.wanted(feed.end, course.target.batch)
        if part is None:
            return
        attempt = window.take(part)
        taken = feed.peek(part[0], part[1] - part[0] + 1)
        if taken is None:
            try:
                taken = await feed.take(part[0], part[1] - part[0] + 1)
            except BaseException:
                window.give_back(part, uncounted=True)
                raise
        if course.window is not window or feed.epoch != epoch or not taken.bodies:
            window.give_back(part, uncounted=True)
            return
        if taken.first > part[0]:
            await self._trimmed(course, window, part, taken.first)
            return
        bodies = _bounded(taken.bodies)
        if len(bodies) <= part[1] - part[0]:  # the rest of the part is sent next
            part = window.shorten(part, part[0] + len(bodies) - 1)
        events = [StoredEvent(epoch, part[0] + index, body) for index, body in enumerate(bodies)]
        if course.is_shared:
            events = _uncovered(course, events)
            if not events:
                self._settle(course, window, part, epoch)
                return
        began = time.time()
        request = course.mode.request(course.target, events, int(began))
        if not self._held() or not course.delivers:
            window.give_back(part, uncounted=True)
            return
        try:
            answer = await self.send(course, request)
        except BaseException:
            window.give_back(part, uncounted=True)
            raise
        verdict = course.mode.verdict(answer)
        self.record(course, "event", verdict, answer, began, (epoch, *part), attempt, _message(request.headers))
        if verdict is AttemptVerdict.DELIVERED:
            metrics.PUSHED.inc(len(events))
            self.count(course, events)
            self._settle(course, window, part, epoch)
            if course.standing.state is not EndpointState.ACTIVE or course.standing.failures:
                self.stand(course, EndpointStanding(EndpointState.ACTIVE, verified=True))
            return
        if verdict is not AttemptVerdict.GONE and course.max_attempts is not None and attempt >= course.max_attempts:
            if await self.give_up(course, epoch, part, answer.reason, attempt):
                self._settle(course, window, part, epoch)
            else:
                window.give_back(part)
                return
        else:
            window.give_back(part)
        self.failed(course, verdict, answer, began)

    def failed(self, course: Course, verdict: AttemptVerdict, answer: PushAnswer, began: float) -> None:
        """Take a failed attempt into account; one that began before the last failure is the same failure."""
        if began < course.failed_at or course.stopped:
            return
        now = time.time()
        course.failed_at = now
        asked = retry_after_s(answer.header("retry-after"), now) if answer.header("retry-after") else None
        found = after_verdict(
            course.standing,
            verdict,
            answer.reason,
            self._schedule,
            now=now,
            jitter=self._chance.random(),
            asked_s=asked,
        )
        self.stand(course, found)

    def stand(self, course: Course, standing: EndpointStanding) -> None:
        """Give an endpoint another standing, and store it."""
        consented = course.standing.verified
        course.standing = standing
        self._recorder.stands(StandingFound(course.id, course.generation, standing, consented))

    def count(self, course: Course, events: Sequence[StoredEvent]) -> None:
        """Count events that an endpoint accepted, for the access records."""
        size = sum(len(event.body) for event in events)
        self._records.delivered(course.feed.rp, course.owner, course.id, len(events), size)

    def record(
        self,
        course: Course,
        what: str,
        verdict: AttemptVerdict,
        answer: PushAnswer,
        began: float,
        place: tuple[str, int, int] = ("", 0, 0),
        number: int = 1,
        message: str = "",
    ) -> None:
        """Record an attempt."""
        metrics.PUSH_ATTEMPTS.labels(verdict.value).inc()
        metrics.PUSH_DURATION.observe(answer.took_ms / 1000)
        excerpt = answer.excerpt[:EXCERPT_BYTES_MAX]
        attempt = PushAttempt(
            round(began * 1000), what, *place, number, verdict.value, answer.reason, answer.took_ms, answer.address, excerpt, message,
        )  # fmt: skip
        self._recorder.attempted(course.feed.rp, course.id, attempt)

    def placed(self, course: Course) -> None:
        """Find the place of a course whose endpoint has consented."""
        if course.window is None:
            self._place([course])

    async def send(self, course: Course, request: Any) -> PushAnswer:
        """Send a request to the endpoint of a course."""
        return await self._client.send(course.target.url, request, course.target.identity)

    async def give_up(self, course: Course, epoch: str, part: Part, reason: str, attempts: int) -> bool:
        """Note a dead letter; False if the subscription may have no further one, and its endpoint is paused."""
        given_up = GivenUp(course.id, epoch, part[0], part[1], reason, attempts)
        if await in_database(given_up_note)(given_up):
            metrics.PUSH_GIVEN_UP.inc(part[1] - part[0] + 1)
            return True
        self.stand(course, paused(course.standing, DEAD_LETTERS_FULL))
        return False

    def _settle(self, course: Course, window: DeliveryWindow, part: Part, epoch: str) -> None:
        if window.settle(part) and course.window is window:
            self._recorder.settled(course, Cursor(epoch, window.acknowledged))

    async def _trimmed(self, course: Course, window: DeliveryWindow, part: Part, first: int) -> None:
        """Note events that the log no longer has as given up, and go on after them."""
        lost = window.shorten(part, first - 1) if part[1] >= first else window.lengthen(part, first - 1)
        epoch = course.feed.epoch
        try:
            await in_database(given_up_note)(GivenUp(course.id, epoch, *lost, TRIMMED, 0), bounded=False)
        except BaseException:
            window.give_back(lost, uncounted=True)
            raise
        self._settle(course, window, lost, epoch)


def _uncovered(course: Course, events: list[StoredEvent]) -> list[StoredEvent]:
    """Return the events of a shared subscription that no other holder has delivered."""
    origins = course.feed.origins(events[0].offset, len(events))
    if len(origins) < len(events):
        return events  # not kept any more: they are sent again, rather than not at all
    own = Feed(course.target.origin, root_epoch(course.feed.epoch)).key
    return [
        event
        for event, (feed, sequence) in zip(events, origins, strict=True)
        if sequence > course.covered.get(feed or own, 0)
    ]


def _bounded(bodies: list[bytes]) -> list[bytes]:
    size = 0
    for index, body in enumerate(bodies):
        size += len(body)
        if size > BATCH_BYTES_MAX and index:
            return bodies[:index]
    return bodies


def _message(headers: tuple[tuple[str, str], ...]) -> str:
    return next((value for name, value in headers if name == "webhook-id"), "")
