"""Acknowledgements of durable subscriptions, coalesced: those that wait for one subscription are stored as one.

The life of an acknowledgement: `add` appends it to the subscription's waiting list -> the subscription's one task takes the
whole list -> reads the subscription anew, so that an end, a revoked token and a changed policy count -> stores the join of
all the cursors in one round trip -> answers each with what is held then, or with the reason why that one is refused. What
comes meanwhile waits for the next turn. An acknowledgement is on disk when it is answered, as if it had come alone.

The join is the greatest offset for cursors of this log. Cursors of other replicas are vectors, of which neither need be the
greater one: they are merged feed by feed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import redis.asyncio
from redis.exceptions import RedisError

from eventing.access.verification.revocations import refuse_revoked
from eventing.core.errors import TOKEN_NEEDED, Gone, HeraldError, InvalidCursor, NotFound, Unauthenticated, Unavailable
from eventing.core.events.cursors import VECTOR_FEEDS_MAX, Cursor
from eventing.core.events.positions import believed
from eventing.core.events.vectors import Vector, merged_within
from eventing.core.principals import Principal
from eventing.gateway.admission.access import Descriptors, require
from eventing.gateway.delivery.shared_subscriptions import acknowledged_at, require_delivery
from eventing.gateway.delivery.start_positions import own_feed
from eventing.log.reader import LogReader
from eventing.log.scripts import NoLog
from eventing.rps.rules.descriptor import Descriptor
from eventing.store.cancellation import cancel_and_wait
from eventing.subscriptions.selectors.subscriptions import SubscriptionView

WAITING_MAX = 20_000  # acknowledgements of one subscription; ~0.5 KiB each, more where cursors have vectors
log = logging.getLogger(__name__)


class Acknowledged(NamedTuple):
    """What an acknowledgement has come to: the RP, and the cursor that is held now."""

    rp: str
    cursor: Cursor


Outcome = Acknowledged | HeraldError


class Waiting:
    """One acknowledgement that is not stored yet.

    Attributes:
        withdrawn: set to have it stored no more, unless that is under way already.
        answered: whether `done` has been called.
    """

    __slots__ = ("_done", "answered", "cursor", "principal", "withdrawn")

    def __init__(self, principal: Principal, cursor: Cursor, done: Callable[[Outcome], object]) -> None:
        self.principal = principal
        self.cursor = cursor
        self._done = done
        self.withdrawn = False
        self.answered = False

    def answer(self, outcome: Outcome) -> None:
        """Call `done`, once."""
        if not self.answered:
            self.answered = True
            self._done(outcome)


def require_owner(subscription: SubscriptionView, principal: Principal, now_s: float) -> None:
    """Raises unless `principal` may use the subscription and its lease runs. The RP's policy is for `require` to ask."""
    if principal.anonymous:
        raise Unauthenticated(TOKEN_NEEDED)
    if subscription.owner != principal.identity and not principal.admin:
        raise NotFound("There is no such subscription.")
    if subscription.expires_at <= now_s:
        raise Gone("The subscription's lease ended; create a new one.")


class Acknowledgements:
    """See the module. All calls are made on the event loop.

    Args:
        view: reads a subscription by its id. Raises NotFound, Gone, Unavailable.
        clock: Unix seconds.
    """

    def __init__(
        self,
        client: redis.asyncio.Redis,
        reader: LogReader,
        descriptors: Descriptors,
        view: Callable[[str], Awaitable[SubscriptionView]],
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._reader = reader
        self._descriptors = descriptors
        self._view = view
        self._clock = clock
        self.on_used: Callable[[SubscriptionView], None] = lambda _: None
        """Called when acknowledgements of a subscription were stored."""
        self._waiting: dict[str, list[Waiting]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def add(self, subscription: str, one: Waiting) -> None:
        """Have an acknowledgement stored; its `done` is called once with what came of it. Raises Unavailable."""
        waiting = self._waiting.setdefault(subscription, [])
        if len(waiting) >= WAITING_MAX:
            raise Unavailable("Too many acknowledgements of this subscription wait.", retry_after_s=1)
        waiting.append(one)
        if subscription not in self._tasks:
            self._tasks[subscription] = asyncio.get_running_loop().create_task(self._work(subscription))

    async def acknowledge(self, subscription: str, principal: Principal, cursor: Cursor) -> Acknowledged:
        """Store one acknowledgement, together with those that wait. Raises HeraldError."""
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.add(subscription, Waiting(principal, cursor, lambda outcome: _set(answer, outcome)))
        outcome = await answer
        if isinstance(outcome, HeraldError):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Store no more; what waits is refused."""
        await cancel_and_wait(list(self._tasks.values()))

    async def _work(self, subscription: str) -> None:
        waiting: list[Waiting] = []
        try:
            while waiting := self._waiting.pop(subscription, []):
                error: HeraldError = _not_stored()
                try:
                    await self._settle(subscription, [one for one in waiting if not one.withdrawn])
                except HeraldError as raised:
                    error = raised
                except Exception:
                    log.exception("Acknowledgements of %s could not be stored", subscription)
                for one in waiting:
                    one.answer(error)
        finally:
            del self._tasks[subscription]
            for one in [*waiting, *self._waiting.pop(subscription, [])]:
                one.answer(_not_stored())

    async def _settle(self, subscription: str, waiting: Sequence[Waiting]) -> None:
        """Store what may be stored of these, and answer each. Raises HeraldError, the answer to all not answered yet."""
        if not waiting:
            return
        view = await self._view(subscription)
        waiting = _permitted(waiting, lambda principal: require_owner(view, principal, self._clock()))
        if not waiting:
            return
        descriptor = await self._descriptors.get(view.rp)
        waiting = _permitted(waiting, lambda principal: _require_reader(descriptor, principal, self._clock()))
        if not waiting:
            return
        await require_delivery(self._client, view, self._clock())
        outcomes = await self._store(view, [one.cursor for one in waiting])
        if any(isinstance(outcome, Cursor) for outcome in outcomes):
            self.on_used(view)
        for one, outcome in zip(waiting, outcomes, strict=True):
            one.answer(outcome if isinstance(outcome, HeraldError) else Acknowledged(view.rp, outcome))

    async def _store(self, view: SubscriptionView, cursors: Sequence[Cursor]) -> list[Cursor | InvalidCursor]:
        """Store the join of these cursors. Raises InvalidCursor or Unavailable where none can be stored."""
        try:
            places = await self._places_here(view.rp, cursors)
            outcomes = await self._reader.acknowledge_all(view.rp, view.id, places)
            held = next((outcome for outcome in outcomes if isinstance(outcome, Cursor)), None)
            if held is None or not view.keeper:
                return outcomes
            claims = [
                cursor.vector
                for cursor, outcome in zip(cursors, outcomes, strict=True)
                if cursor.vector is not None and isinstance(outcome, Cursor)
            ]
            whole = await acknowledged_at(self._client, self._reader, view, claims, held, self._clock())
            return [outcome if isinstance(outcome, InvalidCursor) else whole for outcome in outcomes]
        except NoLog:
            raise InvalidCursor("The log was lost; read again to get a cursor of the new one.") from None
        except (RedisError, OSError):
            raise Unavailable("The event log does not answer. Try again in a moment.", retry_after_s=2) from None

    async def _places_here(self, rp: str, cursors: Sequence[Cursor]) -> list[Cursor]:
        """Each cursor as a place in this domain's log; for those of other replicas the place up to which their vectors,
        merged, cover everything."""
        if all(cursor.vector is None for cursor in cursors):
            return list(cursors)
        log = await self._reader.state(rp)
        own = own_feed(log.epoch)
        vectors: list[
            Vector
        ] = []  # of the cursors whose offset is of another log, or of this one before it was restored
        elsewhere = []
        for cursor in cursors:
            true = None if cursor.vector is None else believed(cursor.vector, log, own)
            elsewhere.append(true is not None and (cursor.epoch != log.epoch or true is not cursor.vector))
            if true is not None and elsewhere[-1]:
                vectors.append(true)
        lacking = [
            await self._reader.first_lacking(rp, vector, own) for vector in merged_within(vectors, VECTOR_FEEDS_MAX)
        ]
        covered = Cursor(log.epoch, max(lacking, default=1) - 1)
        return [covered if other else cursor.place for cursor, other in zip(cursors, elsewhere, strict=True)]


def _set(answer: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not answer.done():
        answer.set_result(outcome)


def _not_stored() -> Unavailable:
    return Unavailable("The acknowledgement could not be stored. Send it again.", retry_after_s=1)


def _permitted(waiting: Sequence[Waiting], check: Callable[[Principal], None]) -> list[Waiting]:
    """Those whose principal passes `check`, asked once for each; the others are answered with the error that it raises."""
    refused: dict[int, HeraldError | None] = {}
    permitted = []
    for one in waiting:
        key = id(one.principal)
        if key not in refused:
            refused[key] = _refusal(one.principal, check)
        if (error := refused[key]) is None:
            permitted.append(one)
        else:
            one.answer(error)
    return permitted


def _refusal(principal: Principal, check: Callable[[Principal], None]) -> HeraldError | None:
    try:
        check(principal)
    except HeraldError as error:
        return error
    return None


def _require_reader(descriptor: Descriptor, principal: Principal, now_s: float) -> None:
    """Raises unless the token is good still, and the policy lets its bearer read."""
    refuse_revoked(principal)
    if principal.expires_at <= now_s:
        raise Unauthenticated("The token has expired.")
    require(descriptor, principal, "subscribe")
