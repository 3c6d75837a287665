"""Shared durable subscriptions on the hot path: served at the delivering domain, redirected elsewhere.

The position of a subscription is a version vector, valid at every holder: after a takeover it continues right after the
last acknowledgement that was sent to the holders. When a domain stops delivering a subscription, its gateways end the
readings within CHECK_S.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from eventing.conf import config
from eventing.core.errors import ApplicationError, Moved, Unavailable
from eventing.core.events.cursors import VECTOR_FEEDS_MAX, Cursor
from eventing.core.events.vectors import Vector, merged_within
from eventing.gateway.delivery.session import Follower
from eventing.gateway.delivery.start_positions import LogChanged, own_feed, vector_before
from eventing.log.reader import LogReader
from eventing.log.shared_subscriptions import KEPT_S, SubscriptionKey, acknowledge, acknowledged, standings
from eventing.overlay import takeover
from eventing.overlay.takeover import HolderStanding
from eventing.sql.threads import in_database
from eventing.store.connection import AsyncRedis
from eventing.store.errors import RedisError
from eventing.subscriptions.selectors.shared_subscriptions import url_of
from eventing.subscriptions.selectors.subscriptions import SubscriptionState

CHECK_S = 1.0
NO_EPOCH = ""  # of no log: a cursor with it is interpreted by its vector alone
TAKEOVER_S = 2  # seconds until a retry while no domain delivers
log = logging.getLogger(__name__)


async def require_delivery(client: AsyncRedis, subscription: SubscriptionState, now_s: float) -> None:
    """Raise Moved if another domain delivers a shared subscription, Unavailable while none is known to."""
    if not subscription.keeper:
        return
    try:
        found = await standings(client, [SubscriptionKey(subscription.rp, subscription.id)])
    except (RedisError, OSError):
        raise Unavailable("The event log is not responding. Try again in a moment.", retry_after_s=2) from None
    error = await _refusal(subscription.rp, subscription.id, found[0], now_s)
    if error is not None:
        raise error


async def position(client: AsyncRedis, subscription: SubscriptionState) -> Cursor:
    """Return the position of a shared subscription, the same at every holder."""
    return Cursor(NO_EPOCH, 0, await acknowledged(client, SubscriptionKey(subscription.rp, subscription.id)))


async def acknowledged_at(
    client: AsyncRedis,
    reader: LogReader,
    subscription: SubscriptionState,
    claims: Iterable[Vector],
    held: Cursor,
    now_s: float,
) -> Cursor:
    """Store an acknowledgement for all holders. Returns the stored cursor, with its vector.

    Args:
        claims: vectors of the cursors as sent by the client.
        held: position in this log to which they moved the subscription.
    """
    place, state = SubscriptionKey(subscription.rp, subscription.id), await reader.state(subscription.rp)
    in_log = (
        not state.foreign or held.offset + 1 >= state.first
    )  # positions before the history are known from the cursor only
    known = held.epoch == state.epoch and in_log
    try:
        vector = await vector_before(reader, subscription.rp, state, held.offset + 1) if known else {}
    except LogChanged:
        raise Unavailable("The event log is being replaced. Acknowledge again.", retry_after_s=1) from None
    own, published = own_feed(state.epoch), state.next - 1 - state.foreign
    believed = [_believed(claim, own, published) for claim in claims]
    first, *others = merged_within([vector, *believed], VECTOR_FEEDS_MAX)
    await acknowledge(client, place, [first, *others], max(0, int(subscription.expires_at - now_s)) + KEPT_S)
    return Cursor(held.epoch, held.offset, first)


def _believed(claim: Vector, own: str, published: int) -> Vector:
    """Remove from a claim events of the domain's own feed that do not exist."""
    return claim if claim.get(own, 0) <= published else {feed: at for feed, at in claim.items() if feed != own}


async def _refusal(
    rp: str, subscription: str, standing: HolderStanding | None, now_s: float
) -> ApplicationError | None:
    """Make the refusal while this domain does not deliver the subscription; None if it does."""
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
    return Moved(
        f"This subscription is currently delivered at {to}.", rp=rp, to=[url], subscription=subscription, domain=to
    )


class SharedReadings:
    """Readings of shared subscriptions in one gateway, ended when this domain stops delivering them."""

    def __init__(self, client: AsyncRedis, clock: Callable[[], float]) -> None:
        self._client = client
        self._clock = clock
        self._readings: dict[Follower, SubscriptionState] = {}
        self._task: asyncio.Task[None] | None = None

    def began(self, follower: Follower, subscription: SubscriptionState | None) -> None:
        """Register a new reading of a durable subscription (None: of none)."""
        if subscription is None or not subscription.keeper:
            return
        self._readings[follower] = subscription
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._check_forever())

    def close(self) -> None:
        """Stop checking."""
        if self._task is not None:
            self._task.cancel()

    async def _check_forever(self) -> None:
        while self._readings:
            await asyncio.sleep(CHECK_S)
            try:
                await self._check()
            except (RedisError, OSError, ApplicationError) as error:
                log.warning(
                    "The delivering domains of shared subscriptions cannot be read; readings continue: %s", error
                )
            except Exception:
                log.exception("Reading the delivering domains of shared subscriptions failed; trying again.")
        self._task = None

    async def _check(self) -> None:
        for follower in list(self._readings):
            if follower.session.followers.get(follower.channel.rp) is not follower:
                del self._readings[follower]
        checked = list(self._readings.items())
        found: list[Any] = await standings(self._client, [SubscriptionKey(view.rp, view.id) for _, view in checked])
        for (follower, view), standing in zip(checked, found, strict=True):
            error = await _refusal(view.rp, view.id, standing, self._clock())
            if error is None or self._readings.pop(follower, None) is None:
                continue
            if follower.session.followers.get(follower.channel.rp) is follower:  # it may have ended meanwhile
                follower.session.reading_ended(follower, error)
