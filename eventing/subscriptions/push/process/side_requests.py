"""Requests beside a subscription's order: for an endpoint's consent, test events, and replays. One at a time each."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any, Protocol

from eventing.sql.threads import in_database
from eventing.subscriptions.push.modes import PushRequest, StoredEvent
from eventing.subscriptions.push.process.consent_budget import ConsentBudget
from eventing.subscriptions.push.process.course import Course
from eventing.subscriptions.push.rules.endpoint_states import EndpointStanding, EndpointState, after_verdict
from eventing.subscriptions.push.rules.retries import RetrySchedule
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict, PushAnswer
from eventing.subscriptions.push.selectors import Replay
from eventing.subscriptions.push.services.outcomes import (
    allowed_rate_save,
    replay_done,
    replay_failed,
    replay_progressed,
    test_done,
)
from eventing.subscriptions.push.webhook.handshake import handshake_rate
from eventing.subscriptions.push.webhook.mode import TEST_KIND, made_event

CONSENT_SCHEDULE = RetrySchedule((10, 60, 600))
"""Pauses between requests for consent; after the last one the endpoint is paused."""
NO_CONSENT = "no-consent"
_REPLAY_ATTEMPTS = 2


class Outcomes(Protocol):
    """Services of the dispatcher for side requests."""

    async def send(self, course: Course, request: Any) -> PushAnswer:
        """Send a request."""

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

    def count(self, course: Course, events: Sequence[StoredEvent]) -> None:
        """Count events that an endpoint accepted."""

    def stand(self, course: Course, standing: EndpointStanding) -> None:
        """Give an endpoint another standing."""

    def later(self, course: Course, after_s: float) -> None:
        """Look at a course again."""

    def placed(self, course: Course) -> None:
        """Find the place of a course in its log, whose endpoint has consented."""


class SideRequests:
    """The side requests of one dispatcher."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes
        self.budget = ConsentBudget()

    async def consent(self, course: Course) -> None:
        """Ask an endpoint for its consent; nothing else is sent to it before."""
        if not self.budget.takes(course.host[0], course.owner):
            self._outcomes.later(course, 10.0)
            return
        token = secrets.token_urlsafe(24)
        answer, began = await self._sent(course, course.mode.consent_request(course.target, token, int(time.time())))
        if course.mode.consents(course.target, token, answer):
            self._outcomes.record(course, "consent", AttemptVerdict.DELIVERED, answer, began)
            await self._pace(course, handshake_rate(answer))
            self._outcomes.stand(course, EndpointStanding(EndpointState.ACTIVE, verified=True))
            self._outcomes.placed(course)
            return
        verdict = course.mode.verdict(answer)
        reason = answer.reason if verdict is not AttemptVerdict.DELIVERED else NO_CONSENT
        verdict = AttemptVerdict.GONE if verdict is AttemptVerdict.GONE else AttemptVerdict.FAILED
        self._outcomes.record(course, "consent", verdict, answer, began)
        found = after_verdict(course.standing, verdict, reason, CONSENT_SCHEDULE, now=time.time(), jitter=0.5)
        self._outcomes.stand(course, found)

    async def _pace(self, course: Course, rate: int | None) -> None:
        """Keep to the rate that an endpoint allows, after a restart too."""
        course.pace(rate)
        await in_database(allowed_rate_save)(course.id, course.generation, rate)

    async def test(self, course: Course) -> None:
        """Send the test event that the owner asked for; its outcome changes nothing but the list of attempts."""
        test_id, course.test_id = course.test_id, ""
        event = made_event(course.target, TEST_KIND, test_id, {"test": test_id})
        request = course.mode.request(course.target, [StoredEvent("test", 0, event)], int(time.time()))
        answer, began = await self._sent(course, request)
        self._outcomes.record(course, "test", course.mode.verdict(answer), answer, began, message=test_id)
        await in_database(test_done)(course.id, test_id)

    async def replay(self, course: Course) -> None:
        """Send a part of the first waiting replay."""
        replay = course.replays[0]
        feed = course.feed
        if replay.epoch != feed.epoch:
            await self._over(course, replay, "log-replaced")
            return
        count = min(replay.last - replay.first + 1, course.target.batch)
        taken = await feed.take(replay.first, count)
        if not taken.bodies or taken.first > replay.last:
            await self._over(course, replay, "history-trimmed")
            return
        bodies = taken.bodies[: max(1, replay.last - taken.first + 1)][: course.target.batch]
        events = [StoredEvent(feed.epoch, taken.first + index, body) for index, body in enumerate(bodies)]
        answer, began = await self._sent(course, course.mode.request(course.target, events, int(time.time())))
        verdict, last = course.mode.verdict(answer), taken.first + len(bodies) - 1
        place = (feed.epoch, taken.first, last)
        self._outcomes.record(course, "replay", verdict, answer, began, place, replay.attempts + 1)
        if verdict is AttemptVerdict.GONE:
            self._outcomes.stand(course, EndpointStanding(EndpointState.GONE, reason=answer.reason))
        if verdict is AttemptVerdict.DELIVERED:
            self._outcomes.count(course, events)
        if verdict is not AttemptVerdict.DELIVERED:
            await self._over(course, replay, answer.reason)
        elif last >= replay.last:
            course.replays.pop(0)
            await in_database(replay_done)(replay.id)
        else:
            course.replays[0] = Replay(
                replay.id, replay.subscription, replay.epoch, last + 1, replay.last, replay.attempts
            )
            await in_database(replay_progressed)(replay.id, last + 1)

    async def _over(self, course: Course, replay: Replay, reason: str) -> None:
        course.replays.pop(0)
        await in_database(replay_failed)(replay.id, reason, replay.attempts + 1)

    async def _sent(self, course: Course, request: PushRequest) -> tuple[PushAnswer, float]:
        began, course.busy = time.time(), True
        try:
            return await self._outcomes.send(course, request), began
        finally:
            course.busy = False
