"""Acknowledgements of durable subscriptions, coalesced: all that wait for one subscription are stored together.

Life of an acknowledgement: `add` appends it to the subscription's waiting list -> the subscription's one task takes the
whole list -> reads the subscription again, so that its end, a revoked token and a changed policy take effect -> stores
the join of all the cursors in one round trip -> answers each with the stored position, or with the reason of its
refusal. Acknowledgements received meanwhile wait for the next round. An acknowledgement is on disk when it is answered, and
at an RP with a level with replicas these hold it: a failover takes back neither the events nor what was acknowledged.

The join is the greatest offset for cursors of this log. Cursors of other replicas are vectors, of which neither need be
greater: they are merged feed by feed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from eventing.access.verification.revocations import refuse_revoked
from eventing.core.errors import (
    TOKEN_NEEDED,
    ApplicationError,
    Gone,
    InvalidCursor,
    NotFound,
    Unauthenticated,
    Unavailable,
)
from eventing.core.events.ack_level import Ack
from eventing.core.events.cursors import VECTOR_FEEDS_MAX, Cursor
from eventing.core.events.positions import believed
from eventing.core.events.vectors import Vector, merged_within
from eventing.core.principals import Principal
from eventing.gateway.admission.access import Descriptors, require
from eventing.gateway.delivery.shared_subscriptions import acknowledged_at, require_delivery
from eventing.gateway.delivery.start_positions import own_feed
from eventing.log.ack_waits import Level
from eventing.log.reader import LogReader
from eventing.log.scripts import NoLog
from eventing.rps.rules.descriptor import Descriptor
from eventing.store.cancellation import cancel_and_wait
from eventing.store.connection import AsyncRedis, Durability
from eventing.store.errors import RedisError
from eventing.subscriptions.selectors.subscriptions import SubscriptionState

# About 0.5 KiB each, more where cursors have vectors.
WAITING_MAX = 20_000  # bound: acknowledgements that wait for one subscription, of all connections; `unavailable`
log = logging.getLogger(__name__)


class Acknowledged(NamedTuple):
    """Result of an acknowledgement: the RP, and the cursor now stored."""

    rp: str
    cursor: Cursor


Outcome = Acknowledged | ApplicationError


class PendingAcknowledgement:
    """One acknowledgement that is not yet stored.

    Attributes:
        withdrawn: set to prevent its storing, unless that is in progress.
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


def require_owner(subscription: SubscriptionState, principal: Principal, now_s: float) -> None:
    """Raise unless `principal` may use the subscription and its lease has not ended. `require` checks the RP's policy."""
    if principal.anonymous:
        raise Unauthenticated(TOKEN_NEEDED)
    if subscription.owner != principal.identity and not principal.admin:
        raise NotFound("There is no such subscription.")
    if subscription.expires_at <= now_s:
        raise Gone("The subscription's lease ended; create a new one.")


class Acknowledgements:
    """Coalescing of acknowledgements. All calls are made on the event loop.

    Args:
        view: reads a subscription by its id. Raises NotFound, Gone, Unavailable.
        clock: Unix seconds.
        on_used: called after acknowledgements of a subscription were stored.
        durability: durability that this Redis provides.
    """

    def __init__(
        self,
        client: AsyncRedis,
        reader: LogReader,
        descriptors: Descriptors,
        view: Callable[[str], Awaitable[SubscriptionState]],
        clock: Callable[[], float],
        on_used: Callable[[SubscriptionState], None],
        durability: Callable[[], Awaitable[Durability]],
    ) -> None:
        self._client = client
        self._reader = reader
        self._descriptors = descriptors
        self._view = view
        self._clock = clock
        self._on_used = on_used
        self._durability = durability
        self._waiting: dict[str, list[PendingAcknowledgement]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def add(self, subscription: str, one: PendingAcknowledgement) -> None:
        """Queue an acknowledgement; its `done` is called once with the outcome. Raises Unavailable."""
        waiting = self._waiting.setdefault(subscription, [])
        if len(waiting) >= WAITING_MAX:
            raise Unavailable(
                "Too many acknowledgements of this subscription are waiting. Try again in a moment.", retry_after_s=1
            )
        waiting.append(one)
        if subscription not in self._tasks:
            self._tasks[subscription] = asyncio.get_running_loop().create_task(self._work(subscription))

    async def acknowledge(self, subscription: str, principal: Principal, cursor: Cursor) -> Acknowledged:
        """Store one acknowledgement, together with waiting ones. Raises ApplicationError."""
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self.add(subscription, PendingAcknowledgement(principal, cursor, lambda outcome: _set(answer, outcome)))
        outcome = await answer
        if isinstance(outcome, ApplicationError):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Stop storing; waiting acknowledgements are refused."""
        await cancel_and_wait(list(self._tasks.values()))

    async def _work(self, subscription: str) -> None:
        waiting: list[PendingAcknowledgement] = []
        try:
            while waiting := self._waiting.pop(subscription, []):
                error: ApplicationError = _not_stored()
                try:
                    await self._settle(subscription, [one for one in waiting if not one.withdrawn])
                except ApplicationError as raised:
                    error = raised
                except Exception:
                    log.exception("Acknowledgements of %s could not be stored", subscription)
                for one in waiting:
                    one.answer(error)
        finally:
            del self._tasks[subscription]
            for one in [*waiting, *self._waiting.pop(subscription, [])]:
                one.answer(_not_stored())

    async def _settle(self, subscription: str, waiting: Sequence[PendingAcknowledgement]) -> None:
        """Store the permitted ones of these, and answer each. Raises ApplicationError, the answer to all that are not yet answered."""
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
        outcomes = await self._store(view, descriptor.ack, [one.cursor for one in waiting])
        if any(isinstance(outcome, Cursor) for outcome in outcomes):
            self._on_used(view)
        for one, outcome in zip(waiting, outcomes, strict=True):
            one.answer(outcome if isinstance(outcome, ApplicationError) else Acknowledged(view.rp, outcome))

    async def _store(
        self, view: SubscriptionState, ack: Ack, cursors: Sequence[Cursor]
    ) -> list[Cursor | InvalidCursor]:
        """Store the join of these cursors. Raises InvalidCursor, Unavailable or AckUnavailable if none can be stored."""
        try:
            places = await self._places_here(view.rp, cursors)
            level = Level(ack, await self._durability()) if ack.waits_for_replicas else None
            outcomes = await self._reader.acknowledge_all(view.rp, view.id, places, level)
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
            raise Unavailable("The event log is not responding. Try again in a moment.", retry_after_s=2) from None

    async def _places_here(self, rp: str, cursors: Sequence[Cursor]) -> list[Cursor]:
        """Translate each cursor to a position in this domain's log; those of other replicas to the position up to which
        their merged vectors cover everything."""
        if all(cursor.vector is None for cursor in cursors):
            return list(cursors)
        log = await self._reader.state(rp)
        own = own_feed(log.epoch)
        vectors: list[Vector] = []  # cursors whose offset belongs to another log, or to this one before it was restored
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


def _permitted(
    waiting: Sequence[PendingAcknowledgement], check: Callable[[Principal], None]
) -> list[PendingAcknowledgement]:
    """Return those whose principal passes `check`, called once for each principal; the others are answered with its error."""
    refused: dict[int, ApplicationError | None] = {}
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


def _refusal(principal: Principal, check: Callable[[Principal], None]) -> ApplicationError | None:
    try:
        check(principal)
    except ApplicationError as error:
        return error
    return None


def _require_reader(descriptor: Descriptor, principal: Principal, now_s: float) -> None:
    """Raise unless the token is still valid and the policy lets its bearer read."""
    refuse_revoked(principal)
    if principal.expires_at <= now_s:
        raise Unauthenticated("The token has expired.")
    require(descriptor, principal, "subscribe")
