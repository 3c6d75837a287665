"""uvicorn's protocols with what the hot path needs of them: the transport, and limits on a client's patience with us.

`HeraldWebSocketProtocol` offers itself to the application as the ASGI extension `herald.transport`: frames are written
straight to the transport (one shared frame, no per-connection encoding), messages are handed over as they are parsed,
and the transport's back-pressure reaches the session. `HeraldHttpProtocol` closes connections whose request head drips
in too slowly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from eventing.conf import config
from eventing.core.errors import HeraldError, InvalidRequest, Timeout, TooLarge
from eventing.edge.client_frames import PING, PONG, TEXT, is_begun, plain_frames
from eventing.edge.delivery.sinks import TransportSink
from eventing.edge.endpoints.short_way import is_publish, take

REST_BYTES_MAX = 64 * 1024  # of a message whose end has not come; larger ones go the long way, which joins them cheaper
CLOSE_S = 5.0  # for a client's answer to our close
HEAD_BYTES_MAX = 64 * 1024  # request line and headers; beyond it 413 and the connection is closed


class _LastWord:
    """The little of a queue that a connection needs once its messages go elsewhere: a few last ASGI events."""

    __slots__ = ("_events", "_waiter")

    def __init__(self) -> None:
        self._events: list[Any] = []
        self._waiter: asyncio.Future[None] | None = None

    def put_nowait(self, event: Any) -> None:
        self._events.append(event)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def empty(self) -> bool:
        return not self._events

    async def get(self) -> Any:
        while not self._events:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._events.pop(0)


class _Gate:
    """asyncio.Event, open at first, whose queue is made when somebody waits: idle sessions are many, and wait for nothing."""

    __slots__ = ("_waited",)

    def __init__(self) -> None:
        self._waited: asyncio.Event | None = None

    def set(self) -> None:
        if self._waited is not None:
            self._waited.set()
            self._waited = None

    def clear(self) -> None:
        if self._waited is None:
            self._waited = asyncio.Event()

    async def wait(self) -> None:
        if self._waited is not None:
            await self._waited.wait()


class HeraldWebSocketProtocol(WebSocketsSansIOProtocol):
    """See the module. Until `attach`, it is uvicorn's protocol unchanged."""

    __slots__ = ("_on_alive", "_on_message", "_on_shutdown", "_parsing", "_rest", "_sink")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.close_timeout = CLOSE_S
        self._sink: TransportSink | None = None
        self._on_message: Callable[[bytes], None] | None = None
        self._on_alive: Callable[[], None] | None = None
        self._on_shutdown: Callable[[], None] | None = None
        self._rest = b""  # the beginning of a plain frame
        self._parsing = False  # whether uvicorn's parser has taken over

    # What the application may use

    def sink(self, buffer_bytes: int) -> TransportSink:
        """The sink that writes to this connection's transport."""
        self._sink = TransportSink(self.transport, buffer_bytes)
        return self._sink

    def attach(
        self, on_message: Callable[[bytes], None], on_alive: Callable[[], None], on_shutdown: Callable[[], None]
    ) -> None:
        """Hand text messages to `on_message` from now on, tell `on_alive` of every sign of life, and leave the goodbye
        to `on_shutdown` when the server stops."""
        self._on_message = on_message
        self._on_alive = on_alive
        self._on_shutdown = on_shutdown
        self._slim()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()

    def _slim(self) -> None:
        """Let go of what only the handshake needed: measured, 12 of 27 KiB of an idle session."""
        self.scope["headers"].clear()  # type: ignore[attr-defined]
        self.request.headers.clear()  # the parser keeps the request
        self.request = self.response = None  # type: ignore[assignment]
        if self.writable.is_set():
            self.writable = _Gate()  # type: ignore[assignment]
        waiting = _LastWord()
        while not self.queue.empty():
            waiting.put_nowait(self.queue.get_nowait())
        self.queue = waiting  # type: ignore[assignment]
        self.__dict__ = dict(self.__dict__)  # made anew, it has no room for three times as many attributes

    def pause_reading(self, paused: bool) -> None:
        """Stop or go on reading from the client."""
        if self.transport.is_closing():
            return
        if paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def abort(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    # uvicorn's hooks

    def handle_connect(self, event: Any) -> None:
        """Add the extension before the application's task first runs."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["extensions"]["herald.transport"] = self  # type: ignore[assignment]

    async def send(self, message: Any) -> None:
        """uvicorn's send, which forgets that a denied handshake is complete and would log an error for it."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    def data_received(self, data: bytes) -> None:
        """Take plain frames by the short way; from the first other frame on, all goes through uvicorn's parser."""
        if self._on_message is None or self._parsing:
            # What comes between the handshake and `attach` may leave uvicorn's parser within a frame: it keeps the rest.
            self._parsing = self._parsing or self.handshake_initiated
            super().data_received(data)
            return
        data = self._rest + data if self._rest else data
        frames, taken = plain_frames(data, self.config.ws_max_size)
        self._rest = data[taken:]
        for first_byte, payload in frames:
            self._take(first_byte, payload)
        if frames and self._on_alive is not None:
            self._on_alive()
        if self._rest and (len(self._rest) > REST_BYTES_MAX or not is_begun(self._rest, self.config.ws_max_size)):
            self._parsing = True
            rest, self._rest = self._rest, b""
            super().data_received(rest)

    def _take(self, first_byte: int, payload: bytes) -> None:
        if self.close_sent or self._on_message is None:
            return
        if first_byte == TEXT:
            self._on_message(payload)
        elif first_byte == PING:
            self.transport.write(bytes((PONG, len(payload))) + payload)

    def send_receive_event_to_app(self) -> None:
        """A whole message has come."""
        if self._on_message is None or self.curr_msg_data_type != "text" or self.close_sent:
            super().send_receive_event_to_app()
            return
        data = self.frames[0] if len(self.frames) == 1 else b"".join(self.frames)
        self.frames = []
        if self._on_alive is not None:
            self._on_alive()
        self._on_message(bytes(data))

    def handle_pong(self, event: Frame) -> None:
        """The hub pings, not uvicorn: every pong is a sign of life."""
        if self._on_alive is not None:
            self._on_alive()

    def shutdown(self) -> None:
        """The server stops: the session says goodbye in its own words."""
        if self._on_shutdown is not None and not self.close_sent:
            self._on_shutdown()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        """The transport's buffer is over its bound: with a sink, it holds anything at all."""
        super().pause_writing()
        if self._sink is not None:
            self._sink.clogged()

    def resume_writing(self) -> None:
        """The transport's buffer has drained."""
        super().resume_writing()
        if self._sink is not None:
            self._sink.drained()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop writing at once; the session learns it from its receive."""
        if self._sink is not None:
            self._sink.discard()
        super().connection_lost(exc)
        if self._on_message is not None:
            self._let_go()

    def _let_go(self) -> None:
        """Refer no more to what refers to us: what has ended is then freed at once, without the garbage collector."""
        self._on_message = self._on_alive = self._on_shutdown = self._sink = None
        self.scope["extensions"].pop("herald.transport", None)
        self.conn.parser.close()  # a generator that refers to its connection; nothing comes any more


class _Defaults:
    """The headers that the server adds to every answer, joined; made anew when they change, once a second."""

    headers: list[tuple[bytes, bytes]] | None = None
    lines = b""


class HeraldHttpProtocol(HttpToolsProtocol):
    """Closes a connection whose request head is not complete within `request_timeout_s`, or exceeds HEAD_BYTES_MAX."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock of the first request."""
        super().connection_made(transport)
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = self._start_timer()
        self._parsing = False
        self._held: tuple[Any, Any] | None = None

    def _start_timer(self) -> asyncio.TimerHandle:
        return self.loop.call_later(config().request_timeout_s, self._too_slow)

    def _too_slow(self) -> None:
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self._refuse(Timeout("The request head did not arrive in time."))

    def send_400_response(self, msg: str) -> None:
        """What httptools cannot read is refused as everything else is."""
        self._refuse(InvalidRequest(msg))

    def _refuse(self, error: HeraldError) -> None:
        """Answer with a problem document where no request has come together, and close."""
        document = msgspec.json.encode(error.document())
        head = (
            f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\ncontent-type: application/problem+json\r\n"
            f"content-length: {len(document)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + document)
        self.transport.close()

    def handle_websocket_upgrade(self) -> None:
        """Refuse a handshake that the WebSocket library cannot read (it has tighter bounds on a head) and leaves unanswered."""
        super().handle_websocket_upgrade()
        protocol = self.transport.get_protocol()
        if isinstance(protocol, HeraldWebSocketProtocol):
            self.parser = self.scope = None  # type: ignore[assignment]  # they refer to us: we are freed at once then
        if isinstance(protocol, HeraldWebSocketProtocol) and not protocol.handshake_initiated:
            self._refuse(InvalidRequest("The head of a WebSocket handshake has at most 128 lines of 8 KiB."))

    def data_received(self, data: bytes) -> None:
        """Count what comes before the head is complete."""
        self._parsing = True
        super().data_received(data)
        self._parsing = False
        self._release()
        if self._head_timer is not None and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(TooLarge(f"The request head is at most {HEAD_BYTES_MAX} bytes.", limit=HEAD_BYTES_MAX))

    def on_message_begin(self) -> None:
        """Start the clock of a further request on the connection."""
        if self._head_timer is None:
            self._head_timer = self._start_timer()
        super().on_message_begin()
        self.scope["extensions"] = {"herald.transport": self}  # type: ignore[dict-item]

    # The short way of a publish (edge/endpoints/short_way.py)

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        """Keep a publish back until the read that brought it is parsed: mostly it is whole then, and needs no task."""
        if self._parsing and is_publish(cycle.scope):
            self._held = (cycle, app)
        else:
            super()._start_asgi_task(cycle, app)

    def _release(self) -> None:
        if self._held is None:
            return
        (cycle, app), self._held = self._held, None
        ordinary = cycle.more_body or cycle.waiting_for_100_continue or self.flow.write_paused
        if ordinary or not take(self, cycle):
            super()._start_asgi_task(cycle, app)

    def answer_shortly(self, cycle: Any, status: int, headers: bytes, content: bytes) -> None:
        """Send the whole answer to a request that was taken by the short way, if its client is still there.

        Requests that the client has sent behind it (pipelining) wait for this, so `self.cycle` may be a later one.
        """
        if cycle.disconnected or self.transport.is_closing():
            return
        defaults = cycle.default_headers
        if defaults is not _Defaults.headers:
            _Defaults.headers = defaults
            _Defaults.lines = b"".join([b"%b: %b\r\n" % header for header in defaults])
        closing = b"" if cycle.keep_alive else b"connection: close\r\n"
        self.transport.write(
            b"%b%b%b%bcontent-length: %d\r\n\r\n%b"
            % (STATUS_LINE[status], _Defaults.lines, headers, closing, len(content), content)
        )
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def answer(self, scope: Any, status: int, headers: list[tuple[bytes, bytes]], content: bytes) -> bool:
        """Send a whole answer to the request of `scope` in one piece, as uvicorn's `send` does in two; False, and nothing
        sent, where anything is out of the ordinary."""
        cycle = self.cycle
        if (
            cycle is None
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
        """Whether the present request's body has come whole: a request behind it could not have begun before."""
        return self.cycle is not None and not self.cycle.more_body

    def abort(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    def end_within(self, patience_s: float) -> None:
        """Let the connection end with the present answer, and abort it if its client has not taken that in time."""
        if self.cycle is not None:
            self.cycle.keep_alive = False
        self.loop.call_later(patience_s, self.transport.abort)

    def on_headers_complete(self) -> None:
        """The head is complete: stop the clock."""
        self._stop_timer()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
