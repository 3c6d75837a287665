"""Shared durable subscriptions on the hot path: served where they are delivered, elsewhere the client is sent there.

Where a subscription stands is a version vector, good at every holder: after a takeover it goes on right behind the last
acknowledgement that was told. A gateway whose domain delivers one no more ends its readings of it within LOOK_S.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

import redis.asyncio
from redis.exceptions import RedisError

from eventing.conf import config
from eventing.core.errors import HeraldError, Moved, Unavailable
from eventing.core.events.cursors import VECTOR_FEEDS_MAX, Cursor
from eventing.core.events.vectors import Vector, merged_within
from eventing.gateway.delivery.session import Follower
from eventing.gateway.delivery.start_positions import LookAgain, own_feed, vector_before
from eventing.log.reader import LogReader
from eventing.log.shared_subscriptions import KEPT_S, Place, acknowledge, acknowledged, standings
from eventing.overlay import takeover
from eventing.overlay.takeover import Standing
from eventing.sql.threads import in_database
from eventing.subscriptions.selectors.shared_subscriptions import url_of
from eventing.subscriptions.selectors.subscriptions import SubscriptionView

LOOK_S = 1.0
NO_EPOCH = ""  # of no log: a cursor with it is read by its vector alone
TAKEOVER_S = 2  # after which to ask again while nobody delivers
log = logging.getLogger(__name__)


async def require_delivery(client: redis.asyncio.Redis, subscription: SubscriptionView, now_s: float) -> None:
    """Raises Moved where another domain delivers a shared subscription, Unavailable while none is known to."""
    if not subscription.keeper:
        return
    try:
        found = await standings(client, [Place(subscription.rp, subscription.id)])
    except (RedisError, OSError):
        raise Unavailable("The event log does not answer. Try again in a moment.", retry_after_s=2) from None
    error = await _refusal(subscription.rp, subscription.id, found[0], now_s)
    if error is not None:
        raise error


async def position(client: redis.asyncio.Redis, subscription: SubscriptionView) -> Cursor:
    """Where a shared subscription stands, at every holder the same."""
    return Cursor(NO_EPOCH, 0, await acknowledged(client, Place(subscription.rp, subscription.id)))


async def acknowledged_at(
    client: redis.asyncio.Redis,
    reader: LogReader,
    subscription: SubscriptionView,
    claims: Iterable[Vector],
    held: Cursor,
    now_s: float,
) -> Cursor:
    """Keep what was acknowledged for all holders. Returns the cursor that is held, with its vector.

    Args:
        claims: the vectors of the cursors as the client sent them.
        held: the place in the log here that they moved the subscription to.
    """
    place, state = Place(subscription.rp, subscription.id), await reader.state(subscription.rp)
    in_log = not state.foreign or held.offset + 1 >= state.first  # what was before the history, only the cursor tells
    known = held.epoch == state.epoch and in_log
    try:
        vector = await vector_before(reader, subscription.rp, state, held.offset + 1) if known else {}
    except LookAgain:
        raise Unavailable("The event log changes right now. Acknowledge again.", retry_after_s=1) from None
    own, published = own_feed(state.epoch), state.next - 1 - state.foreign
    believed = [_believed(claim, own, published) for claim in claims]
    first, *others = merged_within([vector, *believed], VECTOR_FEEDS_MAX)
    await acknowledge(client, place, [first, *others], max(0, int(subscription.expires_at - now_s)) + KEPT_S)
    return Cursor(held.epoch, held.offset, first)


def _believed(claim: Vector, own: str, published: int) -> Vector:
    """A claim without what it says of more events of the domain's own feed than there are."""
    return claim if claim.get(own, 0) <= published else {feed: at for feed, at in claim.items() if feed != own}


async def _refusal(rp: str, subscription: str, standing: Standing | None, now_s: float) -> HeraldError | None:
    """Why this domain does not serve it now; None if it does."""
    me, now_ms = config().domain, int(now_s * 1000)
    if standing is not None and takeover.delivers(standing, me, now_ms):
        return None
    to = takeover.elsewhere(standing, me, now_ms) if standing is not None else ""
    url = await in_database(url_of)(rp, to) if to else ""
    if not url:
        detail = (
            "Another domain is about to deliver this subscription. Try again in a moment, here or at another holder."
        )
        return Unavailable(detail, retry_after_s=TAKEOVER_S)
    return Moved(f"This subscription is delivered at {to} now.", rp=rp, to=[url], subscription=subscription, domain=to)


class SharedReadings:
    """The readings of shared subscriptions in one gateway, ended when this domain delivers them no more.

    Args:
        clock: Unix seconds.
    """

    def __init__(self, client: redis.asyncio.Redis, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._readings: dict[Follower, SubscriptionView] = {}
        self._task: asyncio.Task[None] | None = None

    def began(self, follower: Follower, subscription: SubscriptionView | None) -> None:
        """A reading of a durable subscription has begun (None: it is of none)."""
        if subscription is None or not subscription.keeper:
            return
        self._readings[follower] = subscription
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look_forever())

    def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def _look_forever(self) -> None:
        while self._readings:
            await asyncio.sleep(LOOK_S)
            try:
                await self._look()
            except (RedisError, OSError, HeraldError) as error:
                log.warning("Who delivers shared subscriptions cannot be looked up, readings go on: %s", error)
            except Exception:
                log.exception("Looking who delivers shared subscriptions failed; trying again.")
        self._task = None

    async def _look(self) -> None:
        for follower in list(self._readings):
            if follower.session.followers.get(follower.channel.rp) is not follower:
                del self._readings[follower]
        looked = list(self._readings.items())
        found: list[Any] = await standings(self._client, [Place(view.rp, view.id) for _, view in looked])
        for (follower, view), standing in zip(looked, found, strict=True):
            error = await _refusal(view.rp, view.id, standing, self._clock())
            if error is None or self._readings.pop(follower, None) is None:
                continue
            if follower.session.followers.get(follower.channel.rp) is follower:  # it may have ended while we looked
                follower.session.reading_ended(follower, error)
