"""Pull: GET /api/v1/rps/{rp}/events, and the same for a durable subscription, with acknowledgement.

An answer holds CloudEvents exactly as they were published, in log order, and the cursor to continue from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from eventing.access.rules.permission import require_writer
from eventing.access.verification.revocations import refuse_revoked
from eventing.core.decoding import Undecodable, json_reader
from eventing.core.errors import TOKEN_NEEDED, InvalidRequest, NotFound, Unauthenticated, Unavailable
from eventing.core.events.cursors import Cursor
from eventing.core.events.positions import NamedPosition, Position, Start, parse_from
from eventing.core.principals import Principal
from eventing.gateway import http
from eventing.gateway.admission.access import require
from eventing.gateway.admission.limits import caller
from eventing.gateway.delivery.acknowledgements import require_owner
from eventing.gateway.delivery.shared_subscriptions import position, require_delivery
from eventing.gateway.discovery import discovery_headers
from eventing.gateway.endpoints.pull_page import PullPage, document, page_of
from eventing.gateway.gateway import Gateway
from eventing.gateway.recording import access
from eventing.log.reader import READ_BYTES_MAX
from eventing.log.scripts import LogRun, NoLog
from eventing.rps.rules.descriptor import Descriptor
from eventing.sql.threads import in_database
from eventing.store.errors import RedisError
from eventing.subscriptions.selectors import subscriptions as subscription_selectors
from eventing.subscriptions.selectors.subscriptions import SubscriptionState

_json = json_reader(object)
LIMIT_DEFAULT = 100
LIMIT_MAX = 1000  # bound: events of one pull; a higher limit is lowered
ACK_BYTES_MAX = 4096  # bound: bytes of an acknowledgement's body; 413 `too-large`
READS_MAX = 20  # bound: runs read for one pull that contain only covered events; the answer is empty


async def pull(gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send, reference: str) -> None:
    """Read an RP's history, optionally waiting for new events."""
    members = http.query(scope)
    principal = await caller(gateway, scope, members)

    async def may_read() -> Descriptor:
        descriptor = await gateway.descriptors.get(reference)
        require(descriptor, principal, "history")
        return descriptor

    descriptor = await may_read()
    rp = access(scope).rp = descriptor.id
    gateway.uses.rp(descriptor)
    wanted = parse_from(members["after"]) if "after" in members else "earliest"
    wait = _Wait(members, gateway, principal, may_read)
    access(scope).answered(await _answer(gateway, receive, send, rp, wanted, _limit(members), wait, 0))


async def pull_subscription(
    gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send, subscription_id: str
) -> None:
    """Read after the acknowledged position of the durable subscription, or after `after`."""
    members = http.query(scope)
    principal = await caller(gateway, scope, members)
    subscription = await subscription_of(gateway, principal, subscription_id)
    wanted = parse_from(members["after"]) if "after" in members else await held_cursor(gateway, subscription)
    wait = _Wait(members, gateway, principal, lambda: subscription_of(gateway, principal, subscription_id))
    oldest = await oldest_granted(gateway, subscription)
    rp = access(scope).rp = subscription.rp
    gateway.uses.subscription(subscription)
    access(scope).answered(await _answer(gateway, receive, send, rp, wanted, _limit(members), wait, oldest))


async def acknowledge(
    gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send, subscription_id: str
) -> None:
    """Move the subscription's cursor forward, and answer its position. Repeating an acknowledgement is harmless."""
    principal = await caller(gateway, scope)
    content = await http.body(scope, receive, ACK_BYTES_MAX, gateway.config.request_timeout_s)
    try:
        members = _json(content)
    except Undecodable:
        raise InvalidRequest('The body is JSON, {"cursor": "..."}.') from None
    if not isinstance(members, dict) or not isinstance(members.get("cursor"), str) or len(members) != 1:
        raise InvalidRequest('The body is {"cursor": "..."} without other members.')
    cursor = Cursor.parse(members["cursor"])
    require_writer(principal)
    rp, held = await gateway.acknowledgements.acknowledge(subscription_id, principal, cursor)
    access(scope).rp = rp
    await http.answer_json(send, 200, {"cursor": str(held)})


async def subscription_of(gateway: Gateway, principal: Principal, subscription_id: str) -> SubscriptionState:
    """Return the subscription, if `principal` owns it and may still read its RP. Raises HeraldError."""
    if principal.anonymous:
        raise Unauthenticated(TOKEN_NEEDED)
    subscription: SubscriptionState = await in_database(subscription_selectors.subscription_view)(subscription_id)
    require_owner(subscription, principal, gateway.clock())
    require(await gateway.descriptors.get(subscription.rp), principal, "subscribe")
    await require_delivery(gateway.redis, subscription, gateway.clock())
    return subscription


async def held_cursor(gateway: Gateway, subscription: SubscriptionState) -> NamedPosition | Cursor:
    """Return the subscription's position; its start if the cursor was lost with the data plane, so that the gap is reported."""
    try:
        if subscription.keeper:
            return await position(gateway.redis, subscription)
        return await gateway.reader.subscription_cursor(subscription.rp, subscription.id) or subscription.start
    except (RedisError, OSError):
        raise Unavailable("The event log is not responding. Try again in a moment.", retry_after_s=2) from None


async def oldest_granted(gateway: Gateway, subscription: SubscriptionState) -> int:
    """Return the oldest offset that the subscription's own bounds grant."""
    try:
        return await gateway.reader.oldest_granted(subscription.rp, subscription.history)
    except NoLog:
        return 0
    except (RedisError, OSError):
        raise Unavailable("The event log is not responding. Try again in a moment.", retry_after_s=2) from None


def _limit(members: dict[str, str]) -> int:
    return int(http.number(members, "limit", LIMIT_DEFAULT, 1, LIMIT_MAX))


class _Wait:
    """Wait of a long poll, `wait_s` of the query; it ends with the token, and permission is checked again after it.

    Args:
        may_read: raises HeraldError if the principal may no longer read.
    """

    def __init__(
        self,
        members: dict[str, str],
        gateway: Gateway,
        principal: Principal,
        may_read: Callable[[], Awaitable[object]],
    ) -> None:
        asked_s = http.number(members, "wait_s", 0, 0, gateway.config.wait_s_max)
        self.seconds = min(asked_s, max(0.0, principal.expires_at - gateway.clock()))
        self._may_read = may_read
        self._gateway = gateway
        self.principal = principal

    async def until(self, waiting: Coroutine[Any, Any, None], receive: http.Receive) -> None:
        """Wait for `waiting`, but no longer than the client stays connected."""
        waiter = asyncio.ensure_future(waiting)
        gone = asyncio.ensure_future(http.disconnected(receive))
        try:
            with self._gateway.revoking.waiting(self.principal, waiter.cancel):
                await asyncio.wait([waiter, gone], return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and not waiter.done():
                raise http.ClientDisconnected
        finally:
            waiter.cancel()
            gone.cancel()
        refuse_revoked(self.principal)
        await self._may_read()


async def _answer(
    gateway: Gateway,
    receive: http.Receive,
    send: http.Send,
    rp: str,
    wanted: Position,
    limit: int,
    wait: _Wait,
    oldest: int,
) -> list[bytes]:
    """Send the answer; return its events."""
    channel, state = await gateway.hub.channel(rp)
    gateway.hub.hold(channel)
    try:
        start = await gateway.hub.start_at(channel, wanted, state, oldest)
        run, page = await _read_page(gateway, rp, start, limit)
        if not page.events and wait.seconds > 0 and start.gap is None:
            await wait.until(channel.wait_beyond(page.end.epoch, page.end.offset, wait.seconds), receive)
            run, page = await _read_page(gateway, rp, start, limit)
        if run.state.epoch != start.epoch or run.first > start.next:
            # trimmed, or the data plane was lost, during the read: decide again by the present log
            if not isinstance(wanted, Cursor):
                wanted = Cursor(start.epoch, (start.gap.start if start.gap else start.next) - 1)
            start = await gateway.hub.start_at(channel, wanted, run.state, 0)
            run, page = await _read_page(gateway, rp, start, limit)
    finally:
        gateway.hub.released(channel)
    refuse_revoked(wait.principal)  # the log may have been slow to answer
    headers = [(b"content-type", b"application/json"), *discovery_headers(rp)]
    await http.answer(send, 200, document(start, page), headers)
    return page.events


async def _read_page(gateway: Gateway, rp: str, start: Start, limit: int) -> tuple[LogRun, PullPage]:
    """Return the page at `start`, and the first run read for it. Reads further if the reader already has everything found."""
    run = first = await _read(gateway, rp, start, limit)
    page = page_of(start, run)
    for _ in range(READS_MAX):
        if page.events or page.end.offset < start.next:
            break
        start = Start(start.epoch, page.end.offset + 1, True, start.gap, page.end.vector)
        run = await _read(gateway, rp, start, limit)
        page = page_of(start, run)
    return first, page


async def _read(gateway: Gateway, rp: str, start: Start, limit: int) -> LogRun:
    try:
        return await gateway.reader.read(rp, start.next, limit, max(READ_BYTES_MAX, gateway.config.event_bytes_max))
    except NoLog:
        raise NotFound("The rendezvous point no longer exists.") from None
    except (RedisError, OSError):
        raise Unavailable("The event log is not responding. Try again in a moment.", retry_after_s=2) from None
