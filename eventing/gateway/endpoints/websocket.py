"""WebSocket sessions, from the handshake to the close code. Operations of `herald.v1`: operations.py.

Where the server offers the extension `herald.transport` (Herald's uvicorn protocol), frames are written to its
transport and messages are passed on as they are parsed; elsewhere (daphne) the same session runs over ASGI send and
receive.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from eventing.core.errors import ApplicationError, InvalidRequest, TokenRevoked, Unauthenticated
from eventing.core.events.cursors import Cursor
from eventing.core.events.positions import parse_from
from eventing.core.principals import Principal
from eventing.gateway import http
from eventing.gateway.admission.access import redacted_for, require, require_session
from eventing.gateway.admission.auditing import refused_handshake
from eventing.gateway.admission.limits import Find, account_of, caller, connecting, is_stranger
from eventing.gateway.delivery.close_codes import (
    CLOSE_BAD_REQUEST,
    CLOSE_DISCONNECTED,
    CLOSE_DISCONNECTED_RETRY,
    CLOSE_FORBIDDEN,
    CLOSE_LOST,
    CLOSE_RESTARTING,
    CLOSE_RP_GONE,
    CLOSE_TOKEN_EXPIRED,
    CLOSE_TOKEN_REVOKED,
)
from eventing.gateway.delivery.frames import CLOUDEVENTS, message
from eventing.gateway.delivery.redirects import hops_of
from eventing.gateway.delivery.session import Follower, Session
from eventing.gateway.delivery.sinks import SendSink, Sink, websocket_messages
from eventing.gateway.endpoints.operations import HeraldSession
from eventing.gateway.gateway import Gateway
from eventing.gateway.recording import access

_CUT_SOON = (
    CLOSE_TOKEN_EXPIRED,
    CLOSE_TOKEN_REVOKED,
    CLOSE_DISCONNECTED,
)  # after which the session may send nothing more
SUBPROTOCOLS = ("herald.v1", "cloudevents.json")
APPLICATION_CODES = 3000  # daphne refuses to close with a lower code
PASSING_STATUS = (429, 503)  # temporary refusals
GOODBYE_S = 5.0  # bound: seconds to deliver a close frame; the connection is reset
LAST_WORD_S = 2.0  # bound: seconds for a stalled reader whose token has ended; the connection is reset
ENDED = "herald.ended"
"""Scope key of a future that ends the connection as the end of its token does; absent where only the token has an end."""


async def websocket(
    gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send, find: Find = caller
) -> None:
    """Serve one WebSocket connection until it closes.

    Args:
        find: authenticates the handshake; by default by its token.
    """
    await receive()  # websocket.connect
    record = gateway.records.begin(scope, "connect", "websocket")
    try:
        members = http.query(scope)
        principal = await connecting(gateway, scope, members, find)
        require_session(gateway.config, principal)
        subprotocol = _subprotocol(scope["subprotocols"])
        gateway.limits.session_opened(account_of(scope))
        try:
            if subprotocol == "cloudevents.json":
                await _cloudevents(gateway, scope, receive, send, principal, members)
            else:
                await _herald(gateway, scope, receive, send, principal, subprotocol, hops_of(members))
        finally:
            gateway.limits.session_closed(account_of(scope))
    except ApplicationError as raised:
        error = redacted_for(raised, anonymous=is_stranger(scope))
        gateway.records.end(record, error.code)
        await _refuse(scope, send, error)


def _subprotocol(offered: list[str]) -> str | None:
    """Select the first supported subprotocol of those offered; without offers herald.v1, unnamed. Raises InvalidRequest."""
    for name in offered:
        if name in SUBPROTOCOLS:
            return name
    if offered:
        raise InvalidRequest(f"Offer one of the subprotocols {', '.join(SUBPROTOCOLS)}.")
    return None


async def _refuse(scope: http.Scope, send: http.Send, error: ApplicationError) -> None:
    """Answer the handshake with a problem document, or close where the server cannot."""
    refused_handshake(scope, error)
    if "websocket.http.response" in scope.get("extensions", {}):

        async def as_denial(event: dict[str, Any]) -> None:
            await send({**event, "type": f"websocket.{event['type']}"})

        await http.answer_problem(as_denial, error)
    else:
        ended = CLOSE_TOKEN_REVOKED if isinstance(error, TokenRevoked) else CLOSE_TOKEN_EXPIRED
        code = ended if isinstance(error, Unauthenticated) else CLOSE_FORBIDDEN
        if error.status in PASSING_STATUS:
            code = CLOSE_RESTARTING
        await send({"type": "websocket.close", "code": code, "reason": error.title})


class _Connection:
    """ASGI side of one session: its sink, its close, and the loop that waits for its end."""

    def __init__(self, gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send) -> None:
        self.gateway = gateway
        self._receive = receive
        self._send = send
        self._transport = scope.get("extensions", {}).get("herald.transport")
        self._account = account_of(scope)
        self._ended: asyncio.Future[None] | None = scope.get(ENDED)
        self._closing: asyncio.Task[None] | None = None
        self._tells = True
        self.sink: Sink

    async def accept(self, subprotocol: str | None) -> None:
        """Accept the handshake and make the sink."""
        self._tells = subprotocol != "cloudevents.json"  # whose frames are CloudEvents and nothing else
        await self._send({"type": "websocket.accept", "subprotocol": subprotocol})
        buffer_bytes = self.gateway.config.session_buffer_bytes
        if self._transport is not None:
            self.sink = self._transport.sink(buffer_bytes)
        else:
            self.sink = SendSink(self._send, websocket_messages, buffer_bytes)

    async def serve(self, session: Session, on_message: Any, principal: Principal) -> None:
        """Pass every message to `on_message(text)` until the connection ends. Closes it when the token expires."""
        loop = asyncio.get_running_loop()
        left_s = max(0.0, principal.expires_at - self.gateway.clock())
        expiry = loop.call_later(left_s, self._expired, session)
        if self._ended is not None:
            self._ended.add_done_callback(lambda _: self._expired(session))
        try:
            if self._transport is not None:
                held = partial(self.gateway.limits.unfinished, self._account)
                self._transport.attach(on_message, session.alive, session.abort, self.close, held)
            while True:
                event = await self._receive()
                if event["type"] == "websocket.disconnect":
                    return
                session.unanswered_pings = 0
                if event.get("text") is not None:
                    on_message(event["text"].encode())
                    if isinstance(session, HeraldSession):
                        await session.room()  # without the extension: pausing reads is the only way to slow the client
                else:
                    self.close(1003, "binary frames are not supported", False)
        finally:
            expiry.cancel()
            if self._closing is not None:
                await asyncio.wait([self._closing])

    def _expired(self, session: Session) -> None:
        session.stop_reading()
        self.close(CLOSE_TOKEN_EXPIRED, "token-expired", False)

    def pause_reading(self, paused: bool) -> None:
        """Pause or resume reading from the client, where the server allows it."""
        if self._transport is not None:
            self._transport.pause_reading(paused)

    def close(self, code: int, reason: str, retry: bool, retry_after_ms: int | None = None) -> None:
        """Close the connection with `code`; herald.v1 clients are sent the reason first, and when to connect again if that is stated.
        Harmless when repeated."""
        if self._closing is None:
            said = {} if retry_after_ms is None else {"retry_after_ms": retry_after_ms}
            self._closing = asyncio.get_running_loop().create_task(self._close(code, reason, retry, said))

    async def _close(self, code: int, reason: str, retry: bool, said: dict[str, int]) -> None:
        if self._tells:
            self.sink.write(message({"op": "closing", "reason": reason, "retry": retry, **said}))
        if self._transport is None and code < APPLICATION_CODES:
            code = CLOSE_RESTARTING if retry else CLOSE_BAD_REQUEST
        patience_s = LAST_WORD_S if code in _CUT_SOON else GOODBYE_S
        if self._transport is not None and code in _CUT_SOON:
            # the close may wait behind unread frames; a closed connection is not aborted again
            asyncio.get_running_loop().call_later(patience_s, self._transport.abort)
        try:
            async with asyncio.timeout(patience_s):  # a client that does not read must not delay the end
                if isinstance(self.sink, SendSink):
                    await self.sink.drained()
                self.sink.discard()
                await self._send({"type": "websocket.close", "code": code, "reason": reason})
        except (OSError, RuntimeError, TimeoutError):
            if self._transport is not None:
                self._transport.abort()  # the client is gone, or does not answer the close


async def _herald(
    gateway: Gateway,
    scope: http.Scope,
    receive: http.Receive,
    send: http.Send,
    principal: Principal,
    subprotocol: str | None,
    hops: int | None,
) -> None:
    """Serve a herald.v1 session: many RPs, operations in both directions."""
    connection = _Connection(gateway, scope, receive, send)
    gateway.hub.room_for_session()
    await connection.accept(subprotocol)
    session = HeraldSession(gateway, connection.sink, principal, connection.close, connection.pause_reading)
    session.account = account_of(scope)
    session.hops = hops
    gateway.records.present(session, principal, "herald.v1")
    gateway.hub.opened(session)
    gateway.revoking.opened(session)
    try:
        await connection.serve(session, session.handle, principal)
    finally:
        gateway.hub.closed(session)


class _CloudEventsSession(Session):
    """A cloudevents.json session: one RP, events only."""

    def __init__(self, gateway: Gateway, connection: _Connection, principal: Principal) -> None:
        super().__init__(gateway.hub, connection.sink, CLOUDEVENTS)
        self.principal = principal
        self._connection = connection

    def abort(self, lost: bool = False) -> None:
        """Close so that the reader connects again."""
        code, reason = (CLOSE_LOST, "heartbeat-lost") if lost else (CLOSE_RESTARTING, "server-restarting")
        self._connection.close(code, reason, True)

    def revoked(self) -> None:
        """Close permanently after revocation of the token."""
        super().revoked()
        self._connection.close(CLOSE_TOKEN_REVOKED, "token-revoked", False)

    def disconnect(self, retry: bool) -> None:
        """Close at an operator's request."""
        super().disconnect(retry)
        code = CLOSE_DISCONNECTED_RETRY if retry else CLOSE_DISCONNECTED
        self._connection.close(code, "disconnected", retry)

    def reading_ended(self, follower: Follower, error: ApplicationError) -> None:
        """Close the connection, because its only RP has ended."""
        super().reading_ended(follower, error)
        code = CLOSE_FORBIDDEN if error.status == 403 else CLOSE_RP_GONE
        self._connection.close(code, error.code, False)

    def handle(self, text: bytes) -> None:
        """Refuse messages: readers of this binding send nothing."""
        self._connection.close(CLOSE_BAD_REQUEST, "publish over HTTP or herald.v1", False)


async def _cloudevents(
    gateway: Gateway,
    scope: http.Scope,
    receive: http.Receive,
    send: http.Send,
    principal: Principal,
    members: dict[str, str],
) -> None:
    """Follow the RP named in the query, `?rp=&from=`; all checks precede the acceptance of the handshake."""
    if "rp" not in members:
        raise InvalidRequest("Name the rendezvous point: /ws?rp=ID&from=now.")
    descriptor = await gateway.descriptors.get(members["rp"])
    require(descriptor, principal, "subscribe")
    wanted = parse_from(members.get("from", "now"))
    if wanted != "now":
        require(descriptor, principal, "history")
    channel, _ = await gateway.hub.channel(descriptor.id)
    replays = wanted != "now"
    if wanted == "now":  # before the handshake is answered: a client that sees it accepted then misses no later event
        wanted = Cursor(channel.epoch, channel.flushed - 1)
    connection = _Connection(gateway, scope, receive, send)
    gateway.hub.room_for_session()
    await connection.accept("cloudevents.json")
    session = _CloudEventsSession(gateway, connection, principal)
    gateway.records.present(session, principal, "cloudevents")
    gateway.hub.opened(session)
    gateway.revoking.opened(session)
    try:
        follower, start = await gateway.hub.follow(session, descriptor.id, wanted)
        follower.replays = replays
        if start.gap is not None:
            connection.sink.write(CLOUDEVENTS.gap(descriptor.id, start.gap))
        session.begin(follower)
        gateway.records.joined(follower, access(scope))
        gateway.reading_began(descriptor)
        await connection.serve(session, session.handle, principal)
    except ApplicationError:
        connection.close(CLOSE_RESTARTING, "unavailable", True)
        await connection.serve(session, session.handle, principal)
    finally:
        gateway.hub.closed(session)
