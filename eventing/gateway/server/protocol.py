"""uvicorn's HTTP protocol with additions for the hot path: limits for slow clients, and the fast path.

It closes connections whose request head arrives too slowly, and answers pipelined requests in order, including refusals
and the WebSocket handshake (websocket_protocol.py has the connection from then on).

The memory held for a client that does not read is bounded: one answer at a time, the requests of one piece of
PIECE_BYTES waiting behind it, and the rest of the read bytes unparsed.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any

import httptools
import msgspec
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.errors import ApplicationError, InvalidRequest, Timeout, TooLarge
from eventing.gateway import http
from eventing.gateway.server.fast_path import BODY, PIPELINED, declined, is_publish, take, take_again
from eventing.gateway.server.request_heads import RefusalLog, bytes_of, fault_of
from eventing.gateway.server.websocket_protocol import HeraldWebSocketProtocol
from eventing.telemetry import tracing
from eventing.telemetry.totals import totals

# bound: bytes of a request's head, or of its trailers; 413 after the answers to earlier requests, then the connection is closed
HEAD_BYTES_MAX = 64 * 1024
PIECE_BYTES = 16 * 1024  # bound: bytes parsed at once; parsing continues when no parsed request waits behind another
# The ordinary path has a time limit of its own.
BODY_WAIT_S = 1.0  # bound: seconds from a publish's head to its body; the publish takes the ordinary path
UNSENT_S = 60.0  # bound: seconds without progress in sending HTTP answers to a client; the connection is reset


@per_process
def _refusals() -> RefusalLog:
    return RefusalLog(time.monotonic)


class _Defaults:
    """Headers that the server adds to every answer, joined; made again when they change, once a second."""

    headers: list[tuple[bytes, bytes]] | None = None
    lines = b""


_joined = per_process(_Defaults)


class _Flow(FlowControl):
    """uvicorn's flow control, which resumes reading for every request that reads its body; `full`: read bytes must be
    parsed first."""

    full = False

    def resume_reading(self) -> None:
        """Resume reading, unless read bytes wait."""
        if not self.full:
            super().resume_reading()


class HeraldHttpProtocol(HttpToolsProtocol):
    """Closes a connection whose request head is not complete within `request_timeout_s`, or exceeds HEAD_BYTES_MAX.

    The end of the connection's HTTP (a refusal, a WebSocket handshake) is carried out after the answers to all earlier
    requests. A publish takes the fast path (gateway/server/fast_path.py) where possible.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of the first request."""
        super().connection_made(transport)
        self.flow: _Flow = _Flow(transport)
        self._in_head = False
        self._bare_bytes = 0  # parsed, in whole pieces, since a head began or ended or part of a body arrived
        self._head_timer: asyncio.TimerHandle | None = self._start_timer()
        self._unsent_timer: asyncio.TimerHandle | None = None
        self._unsent_bytes = 0
        self._unread = b""  # read, and not parsed before the waiting requests have had their turn
        self._last: Callable[[], None] | None = None  # the end of this connection's HTTP; nothing after it is parsed
        self._fault: ApplicationError | None = None  # of the head being read
        self._parsing = False
        self._held: tuple[Any, Any] | None = None
        self._served: Any = None  # the request being answered; `cycle` is the latest one
        self._body_timer: asyncio.TimerHandle | None = None
        self._defaults = _joined()
        self._direct = not tracing.is_on()  # else each request passes the application and its `send`, for its span
        self._answered_at = -math.inf  # when a publish that was not parsed was answered, by the loop's clock

    # Reading

    def data_received(self, data: bytes) -> None:
        """Parse the client's bytes, or keep them for later."""
        fresh = self._at_request_begin()
        if fresh and take_again(self, data):
            return
        self._unset_keepalive_if_required()
        if self._last is not None:
            return
        if self.pipeline or self._unread:
            self._keep(self._unread + data)
            return
        self._parsing = True
        if len(data) <= PIECE_BYTES:
            self._feed(data)
        else:
            self._feed_pieces(data)
        self._parsing = False
        if self._held is not None:
            self._release(data if fresh else b"")
        # The timer runs while a head is incomplete, and after other bytes have arrived since the last answer.
        unfinished = self._in_head or self.cycle is None or self.cycle.response_complete
        if unfinished and self._head_timer is None and self._last is None:
            self._head_timer = self._start_timer()

    def _feed_pieces(self, data: bytes) -> None:
        """Parse large input, up to a request that waits behind another."""
        at, whole = 0, memoryview(data)
        while at < len(data) and not self.pipeline and self._last is None:
            self._feed(whole[at : at + PIECE_BYTES])
            at += PIECE_BYTES
        if at < len(data) and self._last is None:
            self._keep(data[at:])

    def _keep(self, unread: bytes) -> None:
        """Pause reading until `unread` is parsed."""
        self._unread = unread
        self.flow.pause_reading()
        self.flow.full = True

    def _parse_on(self) -> None:
        if self._last is None and self._unread and not self.pipeline and not self.transport.is_closing():
            data, self._unread = self._unread, b""
            self.flow.full = False
            self.data_received(data)
            if not self.pipeline:
                self.flow.resume_reading()

    def _feed(self, data: bytes | memoryview) -> None:
        """Parse one piece."""
        within_head = self._in_head
        while data:
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:
                if self._should_upgrade():
                    self._end_with(self.handle_websocket_upgrade)
                    return
                data = data[upgrade.args[0] :]  # to an unsupported protocol: an ordinary request
            except httptools.HttpParserError:
                self._refuse_in_order(self._fault or InvalidRequest("This is not an HTTP/1.1 request."))
                return
        if self._in_head:
            self._count_bare(len(data) if within_head else 0)
        elif self.cycle is not None and self.cycle.more_body:
            self._count_bare(len(data))

    def _count_bare(self, count: int) -> None:
        self._bare_bytes += count
        if self._bare_bytes > HEAD_BYTES_MAX:
            self._refuse_in_order(_head_too_large())

    def on_message_begin(self) -> None:
        """Begin a further request on the connection."""
        self._in_head = True
        self._bare_bytes = 0
        super().on_message_begin()
        self.scope["extensions"] = {"herald.transport": self}  # type: ignore[dict-item]

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle a field of the head. Trailers are dropped (RFC 9110 section 6.5.1)."""
        if self._in_head:
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Check the complete head, and stop the timer."""
        websocket = self.parser.should_upgrade() and self._should_upgrade()
        fault = fault_of(self.parser.get_http_version(), self.url, self.headers, websocket=websocket)
        if fault:
            self._fault = InvalidRequest(fault)
        elif self._bare_bytes and bytes_of(self.url, self.headers) > HEAD_BYTES_MAX:
            self._fault = _head_too_large()
        if self._fault is not None:
            raise self._fault  # ends the parser, which might interpret the rest differently
        self._stop_timer()
        super().on_headers_complete()
        self._in_head = False
        self._bare_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Handle part of a body, as uvicorn does, without another call."""
        cycle = self.cycle
        self._bare_bytes = 0
        if cycle is None or cycle.response_complete or (self.parser.should_upgrade() and self._should_upgrade()):
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    # Refusals, and the end of the connection's HTTP

    def _start_timer(self) -> asyncio.TimerHandle:
        return self.loop.call_later(config().request_timeout_s, self._too_slow)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        self._head_timer = None
        if self.transport.is_closing() or self._last is not None:
            return
        if self.flow.read_paused or self._unread:  # this server has paused reading
            self._head_timer = self._start_timer()
        elif self._in_head or self.cycle is None:
            self._refuse_in_order(Timeout("The request head did not arrive in time."))
        elif self.cycle.response_complete:  # the body of a request that was answered without it, or empty lines
            self._close()

    def _refuse_in_order(self, error: ApplicationError) -> None:
        """Refuse the next request on the connection, after the answers to all earlier requests, and close.

        A request whose body cannot be read is refused in its own place, unless its answer has begun.
        """
        cycle = self.cycle
        broken = cycle is not None and cycle.more_body and not self._in_head
        if not broken:
            self._end_with(partial(self._refuse, error))
        elif self.pipeline:
            self.pipeline[0] = (cycle, _refusing(error))
            self._last = _nothing
        elif cycle.response_started:
            self._last = _nothing
            self._close()
        else:
            self._let_held_go()
            cycle.disconnected = cycle.response_complete = True
            cycle.message_event.set()
            self._end_with(partial(self._refuse, error))

    def _end_with(self, last: Callable[[], None]) -> None:
        """Do `last` once all earlier requests are answered, and stop parsing."""
        if self._last is not None or self.transport.is_closing():
            return
        self._stop_timer()
        self._last, self._unread = last, b""
        if self.cycle is None or self.cycle.response_complete:
            last()

    def _refuse(self, error: ApplicationError) -> None:
        """Answer with a problem document where no request is complete, and close."""
        if self.transport.is_closing():
            return
        totals().refuse(error.code)
        if not isinstance(error, Timeout):
            _refusals().refused(self.client[0] if self.client else "", error.detail)
        document = msgspec.json.encode(error.document())
        head = (
            f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\ncontent-type: application/problem+json\r\n"
            f"content-length: {len(document)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + document)
        self._close()

    def handle_websocket_upgrade(self) -> None:
        """Refuse a handshake that the WebSocket library cannot parse (it has tighter bounds on a head) and leaves unanswered."""
        self._stop_timer()
        self._last = _nothing  # it refers to this protocol
        super().handle_websocket_upgrade()
        protocol = self.transport.get_protocol()
        if isinstance(protocol, HeraldWebSocketProtocol):
            self.parser = self.scope = None  # type: ignore[assignment]  # they refer to us: we are freed at once then
        if isinstance(protocol, HeraldWebSocketProtocol) and not protocol.handshake_initiated:
            self._refuse(InvalidRequest("The head of a WebSocket handshake has at most 128 lines of 8 KiB."))

    def on_response_complete(self) -> None:
        """Continue with waiting requests after an answer was written."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._watch_unsent()
        elif self._last is not None:
            if self.cycle.response_complete:
                self._last()
        elif self._unread:
            self.loop.call_soon(self._parse_on)
        elif self._head_timer is not None or self._in_head or self.cycle.more_body:
            # For a head that arrived behind this request, the timer starts again: it may have waited for the answer.
            self._stop_timer()
            self._head_timer = self._start_timer()

    # Unread answers

    def _close(self) -> None:
        self.transport.close()
        self._watch_unsent()

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it has been idle for that long; unparsed publishes leave the timer alone."""
        busy = self.cycle is not None and not self.cycle.response_complete
        idle_s = 0.0 if busy else self.loop.time() - self._answered_at
        if idle_s < self.timeout_keep_alive:
            left_s = self.timeout_keep_alive - idle_s
            self.timeout_keep_alive_task = self.loop.call_later(left_s, self.timeout_keep_alive_handler)
        else:
            super().timeout_keep_alive_handler()
            self._watch_unsent()

    def pause_writing(self) -> None:
        """Pause writing: the transport's buffer is over its bound."""
        super().pause_writing()
        self._watch_unsent()

    def resume_writing(self) -> None:
        """Resume writing: the transport's buffer has drained."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._stop_watching()

    def _watch_unsent(self) -> None:
        """Abort the connection unless its client reads some of the waiting bytes in each UNTAKEN_S."""
        if self._unsent_timer is None and (waiting := self.transport.get_write_buffer_size()):
            self._unsent_bytes = waiting
            self._unsent_timer = self.loop.call_later(UNSENT_S, self._check_unsent)

    def _check_unsent(self) -> None:
        self._unsent_timer = None
        if self.transport.get_write_buffer_size() >= self._unsent_bytes:
            self.transport.abort()
        else:
            self._watch_unsent()

    def _stop_watching(self) -> None:
        if self._unsent_timer is not None:
            self._unsent_timer.cancel()
            self._unsent_timer = None

    # The fast path of a publish (gateway/server/fast_path.py)

    def _at_request_begin(self) -> bool:
        """Return True if the next byte is the first of a request, and no earlier request is unfinished."""
        cycle: Any = self.cycle
        if self._in_head or self._last is not None or self._unread or self.pipeline:
            return False
        if cycle is None:
            return True
        return (
            cycle.response_complete
            and not cycle.more_body
            and cycle.keep_alive
            and not self.flow.write_paused
            and not self.transport.is_closing()
        )

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """Hold a publish back until the read that contains it is parsed: usually it is complete then, and needs no task."""
        self._served = cycle
        if not self._direct or not is_publish(cycle.scope):
            super()._start_asgi_task(cycle, app)
        elif self._parsing:
            self._held = (cycle, app)
        else:
            totals().decline(PIPELINED)
            super()._start_asgi_task(cycle, app)

    def _release(self, raw: bytes) -> None:
        """Take the publish held back, or start its task; continue to hold it while only its body is missing.

        Args:
            raw: the bytes read, if the request began with them; else empty.
        """
        if self._held is None:
            return
        cycle, app = self._held
        if cycle.more_body:
            if self._body_timer is not None:
                return
            reason = declined(self, cycle)
            if not reason:
                self._body_timer = self.loop.call_later(BODY_WAIT_S, self._body_is_late)
                return
            totals().decline(reason)
        elif cycle.waiting_for_100_continue:
            totals().decline(BODY)
        elif take(self, cycle, raw):
            self._let_held_go()
            return
        self._let_held_go()
        super()._start_asgi_task(cycle, app)

    def _body_is_late(self) -> None:
        """Leave the publish held back to the ordinary path, which has time limits for a body."""
        if self._held is not None:
            cycle, app = self._held
            self._let_held_go()
            totals().decline(BODY)
            super()._start_asgi_task(cycle, app)

    def _let_held_go(self) -> None:
        self._held = None
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def began_again(self, cycle: Any) -> None:
        """Make an unparsed publish the present request; the timer of an idle connection continues."""
        self._stop_timer()
        self.cycle = self._served = cycle

    def answered_again(self) -> None:
        """Finish the present, unparsed request as `on_response_complete` does, at less cost."""
        waits = self.pipeline or self._unread or self._in_head or self._last is not None or self._head_timer is not None
        if waits or self.timeout_keep_alive_task is None:
            self.on_response_complete()
        else:
            self.server_state.total_requests += 1
            self._answered_at = self.loop.time()

    def answer_fast(self, cycle: Any, status: int, headers: bytes, content: bytes) -> None:
        """Send the complete answer to a request on the fast path, if its client is still connected.

        Pipelined requests behind it wait for this, so `self.cycle` may be a later one.
        """
        if cycle.disconnected or self.transport.is_closing():
            return
        defaults, joined = cycle.default_headers, self._defaults
        if defaults is not joined.headers:
            joined.headers = defaults
            joined.lines = b"".join([b"%b: %b\r\n" % header for header in defaults])
        closing = b"" if cycle.keep_alive else b"connection: close\r\n"
        self.transport.write(
            b"%b%b%b%bcontent-length: %d\r\n\r\n%b"
            % (STATUS_LINE[status], joined.lines, headers, closing, len(content), content)
        )
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def answer(self, scope: Any, status: int, headers: list[tuple[bytes, bytes]], content: bytes) -> bool:
        """Send a complete answer to the request of `scope` in one piece, as uvicorn's `send` does in two; False,
        without effect, under any unusual condition."""
        cycle = self.cycle
        if (
            not self._direct
            or cycle is None
            or cycle.scope is not scope
            or cycle.response_started
            or cycle.disconnected
            or cycle.waiting_for_100_continue
            or not cycle.keep_alive
            or self.flow.write_paused
            or self.access_log
            or scope["method"] == "HEAD"
        ):
            return False
        lines = [STATUS_LINE[status]]
        for name, value in cycle.default_headers + headers:
            lines += (name, b": ", value, b"\r\n")
        lines += (b"\r\n", content)
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        self.transport.write(b"".join(lines))
        cycle.on_response()
        return True

    def body_is_here(self) -> bool:
        """Return True if the present request's body is complete: a request behind it could not have begun before."""
        return self.cycle is not None and not self.cycle.more_body

    def abort(self) -> None:
        """Abort the connection at once."""
        self.transport.abort()

    def end_within(self, patience_s: float) -> None:
        """End the connection with the present answer, and abort it if its client has not read that in time."""
        if self.cycle is not None:
            self.cycle.keep_alive = False
        self.loop.call_later(patience_s, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_timer()
        self._stop_watching()
        self._unread, self._last = b"", _nothing
        self.pipeline.clear()
        if self._served is not None and not self._served.response_complete:
            self._served.disconnected = True
            self._served.message_event.set()
        super().connection_lost(exc)
        self._body_is_late()


def _head_too_large() -> TooLarge:
    return TooLarge(f"The request head is at most {HEAD_BYTES_MAX} bytes.", limit=HEAD_BYTES_MAX)


def _refusing(error: ApplicationError) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """Make an ASGI application that answers with `error`, and closes."""

    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await http.answer_problem(send, error, close=True)

    return refuse


def _nothing() -> None:
    """Do nothing, in place of the end of a connection's HTTP that is in progress."""
