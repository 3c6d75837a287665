"""GET /api/v1/rps/{rp}/stream: Server-Sent Events. `id:` is the cursor; `Last-Event-ID` (or `?after=`) resumes."""

from __future__ import annotations

import asyncio

import msgspec

from eventing.access.verification.revocations import refuse_revoked
from eventing.core.errors import ApplicationError, Moved
from eventing.core.events.positions import parse_from
from eventing.core.principals import Principal
from eventing.gateway import http
from eventing.gateway.admission.access import require, require_session
from eventing.gateway.admission.limits import account_of, connecting
from eventing.gateway.delivery.frames import STREAM
from eventing.gateway.delivery.redirects import hops_of
from eventing.gateway.delivery.session import Follower, Session
from eventing.gateway.delivery.sinks import SendSink, http_messages
from eventing.gateway.discovery import discovery_headers
from eventing.gateway.gateway import Gateway
from eventing.gateway.recording import access

KEEP_ALIVE = b": alive\n\n"
GOODBYE_S = 5.0
LAST_WORD_S = 2.0  # for the final frame after the token became invalid
CLOSING = b'event: closing\ndata: {"reason":"%s","retry":false}\n\n'
RETRY = b"retry: %d\n\n"  # milliseconds until a browser connects again
RETRY_MS = 1000


class StreamSession(Session):
    """One SSE connection; it ends when its RP does."""

    def __init__(self, gateway: Gateway, sink: SendSink, principal: Principal) -> None:
        super().__init__(gateway.hub, sink, STREAM)
        self.principal = principal
        self._gateway = gateway
        self.over = asyncio.Event()
        self.ended = b""  # reason why the token is no longer valid
        self.return_after_ms: int | None = None  # when to connect again, because the gateway stops

    def revoked(self) -> None:
        """Report the revocation, and end; a client that reconnects gets the problem document."""
        super().revoked()
        self.ended = b"token-revoked"
        self.over.set()

    def disconnect(self, retry: bool) -> None:
        """End the answer at an operator's request; a browser reconnects all the same, unless its page obeys `retry`."""
        super().disconnect(retry)
        if not retry:
            self.ended = b"disconnected"
        self.over.set()

    def abort(self, lost: bool = False) -> None:
        """End the answer; the browser reconnects with its last id, other clients may follow a redirect."""
        for rp in self.followers if self._gateway.stopping and not self.over.is_set() else ():
            if urls := self._gateway.redirects.known(rp, self._gateway.reader_moves.key_of(self)):
                self._redirect(rp, urls)
        if self._gateway.stopping and not lost and not self.over.is_set():
            self.return_after_ms = self._gateway.return_after_ms()
        self.over.set()

    def reading_ended(self, follower: Follower, error: ApplicationError) -> None:
        """Report the reason, and end; a client that reconnects gets the problem document."""
        super().reading_ended(follower, error)
        if isinstance(error, Moved):
            self._redirect(follower.channel.rp, error.extra["to"])
        self.sink.write(b'event: error\ndata: {"type":"%s"}\n\n' % error.type.encode())
        self.over.set()

    def redirect(self, rp: str, urls: list[str], *, hops: int, valid_s: float) -> None:
        """Send an event `redirect` that the client may follow."""
        self._redirect(rp, urls, hops=hops, valid_s=valid_s)

    def _redirect(self, rp: str, urls: list[str], **advice: float) -> None:
        self.sink.write(b"event: redirect\ndata: %s\n\n" % msgspec.json.encode({"rp": rp, "to": urls, **advice}))


async def stream(gateway: Gateway, scope: http.Scope, receive: http.Receive, send: http.Send, reference: str) -> None:
    """Stream an RP's events until the client disconnects, the token expires or the RP ends."""
    members = http.query(scope)
    principal = await connecting(gateway, scope, members)
    require_session(gateway.config, principal)
    descriptor = await gateway.descriptors.get(reference)
    access(scope).rp = descriptor.id
    require(descriptor, principal, "subscribe")
    place = http.header(scope, b"last-event-id") or members.get("after") or members.get("from") or "now"
    wanted = parse_from(place)
    if wanted != "now":
        require(descriptor, principal, "history")
    sink = SendSink(send, http_messages, gateway.config.session_buffer_bytes)
    session = StreamSession(gateway, sink, principal)
    session.hops = hops_of(members)
    gateway.records.present(session, principal, "sse")
    gateway.hub.room_for_session()
    gateway.limits.session_opened(account_of(scope))
    gateway.hub.opened(session)
    try:
        refuse_revoked(principal)  # later revocations find the session
        follower, start = await gateway.hub.follow(session, descriptor.id, wanted)
        follower.replays = wanted != "now"
        headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),  # nginx would delay events
            *discovery_headers(descriptor.id),
            *http.NO_PAGE,
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        sink.write(RETRY % RETRY_MS + (STREAM.gap(descriptor.id, start.gap) if start.gap else b""))
        session.begin(follower)
        gateway.records.joined(follower, access(scope))
        gateway.reading_began(descriptor)
        gateway.reader_moves.began(session, descriptor.id)
        await _until_over(gateway, session, receive, principal.expires_at)
        session.stop_reading()
        if gateway.clock() >= principal.expires_at:
            session.ended = b"token-expired"
        if session.return_after_ms is not None:
            sink.write(RETRY % session.return_after_ms)
        if session.ended:
            sink.write(CLOSING % session.ended)
            http.end_within(scope, LAST_WORD_S)
        async with asyncio.timeout(
            LAST_WORD_S if session.ended else GOODBYE_S
        ):  # a client that does not read must not delay the end
            await sink.drained()
            await send({"type": "http.response.body", "body": b""})
    except TimeoutError:
        await http.cut(scope, receive)
        raise http.ClientDisconnected from None
    finally:
        gateway.hub.closed(session)
        gateway.limits.session_closed(account_of(scope))


async def _until_over(gateway: Gateway, session: StreamSession, receive: http.Receive, expires_at: float) -> None:
    """Return when the client disconnected, the token expired, the session failed, or the gateway stops."""
    gone = asyncio.ensure_future(http.disconnected(receive))
    over = asyncio.ensure_future(session.over.wait())
    try:
        while gateway.clock() < expires_at and not gone.done() and not over.done():
            wait_s = max(0.0, min(gateway.config.heartbeat_s, expires_at - gateway.clock()))
            await asyncio.wait([gone, over], timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
            if not session.sink.waiting():  # else the connection is busy, or its client does not read
                session.sink.write(KEEP_ALIVE)
    finally:
        gone.cancel()
        over.cancel()
