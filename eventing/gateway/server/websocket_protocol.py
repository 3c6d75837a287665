"""uvicorn's WebSocket protocol with additions for the hot path.

It offers itself to the application as the ASGI extension `herald.transport`: frames are written directly to the
transport (one shared frame, no per-connection encoding), messages are passed on as they are parsed, and the transport's
backpressure reaches the session.

The memory held for a client that does not read is bounded: events and answers by the session's buffer, pongs by
answering only the latest ping (RFC 6455 section 5.5.3), an unfinished message by time and bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import msgspec
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.datastructures import Headers
from websockets.frames import Frame
from websockets.http11 import Response
from websockets.server import ServerProtocol

from eventing.conf import config
from eventing.core.errors import InvalidRequest, MethodNotAllowed
from eventing.gateway.delivery.close_codes import CLOSE_MESSAGE_TIMEOUT, CLOSE_UNFINISHED_BYTES
from eventing.gateway.delivery.sinks import TransportSink
from eventing.gateway.server.client_frames import PING, PONG, TEXT, is_begun, plain_frames
from eventing.telemetry.totals import totals

# The library joins larger frames at less cost.
REST_BYTES_MAX = 64 * 1024  # bound: bytes of an incomplete WebSocket frame; the library's parser collects the frame
# bound: seconds for a client's answer to a close frame; the connection is closed, and reset a second later
CLOSE_S = 5.0

_PONG = bytes((PONG,))


class _LastWord:
    """The part of a queue that a connection needs once its messages go elsewhere: a few last ASGI events."""

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
    """asyncio.Event, initially set, whose queue is made on the first wait: idle sessions are many, and never wait."""

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


class _Parser(ServerProtocol):
    """The WebSocket library's parser, which refuses a handshake by a problem document."""

    def reject(self, status: Any, text: str) -> Response:
        """Make the answer to a refused handshake; uvicorn's own refusals have no text, or are 500."""
        if not text or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return super().reject(status, text)
        kind = MethodNotAllowed if status == HTTPStatus.METHOD_NOT_ALLOWED else InvalidRequest
        error = kind(text.strip().partition("\n")[0][:200])
        totals().refuse(error.code)
        document = msgspec.json.encode(error.document())
        fields = {"Content-Type": "application/problem+json", "Content-Length": str(len(document))}
        headers = Headers({**fields, "Connection": "close", "Sec-WebSocket-Version": "13"})
        return Response(error.status, HTTPStatus(error.status).phrase, headers, document)


class HeraldWebSocketProtocol(WebSocketsSansIOProtocol):
    """WebSocket protocol. Until `attach`, it is uvicorn's protocol unchanged, and reads nothing after the handshake."""

    __slots__ = (
        "_clock",
        "_completed",
        "_deaf",
        "_held_bytes",
        "_hold",
        "_on_alive",
        "_on_fault",
        "_on_message",
        "_on_shutdown",
        "_owed_pong",
        "_parsing",
        "_reading",
        "_rest",
        "_sink",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn.parser.close()  # uvicorn's own: a generator that refers to its connection, else left to the garbage collector
        self.conn = _Parser(extensions=[], max_size=self.config.ws_max_size, logger=self.logger)
        self.close_timeout = CLOSE_S
        self._sink: TransportSink | None = None
        self._on_message: Callable[[bytes], None] | None = None
        self._on_alive: Callable[[], None] | None = None
        self._on_shutdown: Callable[[], None] | None = None
        self._rest = b""  # the beginning of a plain frame
        self._parsing = False  # whether uvicorn's parser has taken over
        self._owed_pong: bytes | None = None  # for the latest ping, while the sink is at its bound
        self._on_fault: Callable[[int, str, bool], None] | None = None
        self._hold: Callable[[int], bool] | None = None
        self._held_bytes = 0  # bytes of an incomplete message, as reported to `_hold`
        self._clock: asyncio.TimerHandle | None = None  # until when that message must be complete
        self._completed = False  # whether the parser completed a message in the present read
        self._reading = True
        self._deaf = False  # whether input is dropped: the close is in progress

    # Interface for the application

    def sink(self, buffer_bytes: int) -> TransportSink:
        """Make the sink that writes to this connection's transport."""
        self._sink = TransportSink(self.transport, buffer_bytes)
        return self._sink

    def attach(
        self,
        on_message: Callable[[bytes], None],
        on_alive: Callable[[], None],
        on_shutdown: Callable[[], None],
        on_fault: Callable[[int, str, bool], None],
        hold: Callable[[int], bool],
    ) -> None:
        """Begin reading from the client.

        Args:
            on_message: called with each text message.
            on_alive: called at every sign of life.
            on_shutdown: closes the connection when the server stops.
            on_fault: closes the connection for a fault of the client: code, reason, whether to connect again.
            hold: counts bytes held of unfinished messages, more or less; False above the limit.
        """
        self._on_message = on_message
        self._on_alive = on_alive
        self._on_shutdown = on_shutdown
        self._on_fault = on_fault
        self._hold = hold
        self._slim()
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def _slim(self) -> None:
        """Release the parts that only the handshake needed: measured, 12 of 27 KiB of an idle session."""
        self.scope["headers"].clear()  # type: ignore[attr-defined]
        self.request.headers.clear()  # the parser keeps the request
        self.request = self.response = None  # type: ignore[assignment]
        if self.writable.is_set():
            self.writable = _Gate()  # type: ignore[assignment]
        waiting = _LastWord()
        while not self.queue.empty():
            waiting.put_nowait(self.queue.get_nowait())
        self.queue = waiting  # type: ignore[assignment]
        self.__dict__ = dict(self.__dict__)  # made again, it has no room for three times as many attributes

    def pause_reading(self, paused: bool) -> None:
        """Pause or resume reading from the client."""
        self._reading = not paused
        if self.transport.is_closing():
            return
        if paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()
            self._restart_clock()

    def abort(self) -> None:
        """Abort the connection at once."""
        self.transport.abort()

    # uvicorn's hooks

    def handle_connect(self, event: Any) -> None:
        """Add the extension before the application's task first runs."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["extensions"]["herald.transport"] = self  # type: ignore[assignment]
            self.transport.pause_reading()  # until `attach`: a client must wait for the answer to its handshake

    async def send(self, message: Any) -> None:
        """Send as uvicorn does, but note that a denied handshake is complete, which uvicorn would log as an error."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    async def run_asgi(self) -> None:
        """Run as uvicorn does, but do not wait forever for a client that does not read the remaining bytes."""
        await super().run_asgi()
        if not self.disconnected and (self.close_timer is not None or self.transport.get_write_buffer_size()):
            self.loop.call_later(CLOSE_S + 1, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Handle plain frames directly; from the first other frame on, uvicorn's parser handles all input."""
        if self._on_message is None or self._parsing:
            self._parse(data)
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
            self._parse(rest, completed=bool(frames))
        elif self._rest or self._held_bytes:
            self._unfinished(len(self._rest), bool(frames))

    def _parse(self, data: bytes, *, completed: bool = False) -> None:
        """Pass `data` to uvicorn's parser; `completed`: messages before it were complete in the same read."""
        if self._deaf:
            return
        self._completed = completed
        super().data_received(data)
        if self._on_message is not None:
            begun_bytes = self.conn.current_size
            waiting_bytes = len(self.conn.reader.buffer)
            self._unfinished(waiting_bytes if begun_bytes is None else waiting_bytes + begun_bytes + 1, self._completed)

    # Incomplete messages

    def _unfinished(self, held_bytes: int, completed: bool) -> None:
        """Count the bytes now held of a message; `completed`: it began in this read, because another was completed in it."""
        change, self._held_bytes = held_bytes - self._held_bytes, held_bytes
        within = self._hold is None or self._hold(change)
        if completed or not held_bytes:
            self._stop_clock()
        if held_bytes and self._clock is None:
            self._start_clock()
        if not within:
            self._fault(CLOSE_UNFINISHED_BYTES, "unfinished-bytes")

    def _start_clock(self) -> None:
        self._clock = self.loop.call_later(config().request_timeout_s, self._too_slow)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _restart_clock(self) -> None:
        """Restart the timer after a pause of reading, which is not the client's fault."""
        if self._clock is not None:
            self._stop_clock()
            self._start_clock()

    def _too_slow(self) -> None:
        self._clock = None
        if self._reading:
            self._fault(CLOSE_MESSAGE_TIMEOUT, "message-timeout")
        else:
            self._start_clock()

    def _fault(self, code: int, reason: str) -> None:
        """Discard the unfinished message, drop further input, and close."""
        self._deaf = self._parsing = True
        self._rest, self.frames = b"", []
        self.conn.reader.discard()
        self._unfinished(0, True)
        if self._on_fault is not None:
            self._on_fault(code, reason, True)

    def _take(self, first_byte: int, payload: bytes) -> None:
        if self.close_sent or self._on_message is None:
            return
        if first_byte == TEXT:
            self._on_message(payload)
        elif first_byte == PING:
            self._pong(bytes((PONG, len(payload))) + payload)

    def _pong(self, frame: bytes) -> None:
        """Answer a ping, at once or, while the client does not read, only the latest one later."""
        if self._sink is None or not self._sink.paused:
            (self.transport if self._sink is None else self._sink).write(frame)
        else:
            self._owed_pong = frame

    def handle_ping(self) -> None:
        """Write the output of the parser: the pongs of all pings in this read, and others."""
        self._completed = self._completed or self.conn.current_size is None
        for frame in self.conn.data_to_send():
            if frame[:1] == _PONG:
                self._pong(frame)
            elif frame:
                self.transport.write(frame)

    def send_receive_event_to_app(self) -> None:
        """Handle a complete message."""
        self._completed = True
        if self._on_message is None or self.curr_msg_data_type != "text" or self.close_sent:
            super().send_receive_event_to_app()
            return
        data = self.frames[0] if len(self.frames) == 1 else b"".join(self.frames)
        self.frames = []
        if self._on_alive is not None:
            self._on_alive()
        self._on_message(bytes(data))

    def handle_pong(self, event: Frame) -> None:
        """Note a sign of life: the hub pings, not uvicorn."""
        if self._on_alive is not None:
            self._on_alive()

    def shutdown(self) -> None:
        """Close the session with its own goodbye when the server stops."""
        if self._on_shutdown is not None and not self.close_sent:
            self._on_shutdown()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        """Pause writing: the transport's buffer is over its bound, which with a sink means that it holds anything at all."""
        super().pause_writing()
        if self._sink is not None:
            self._sink.clogged()

    def resume_writing(self) -> None:
        """Resume writing: the transport's buffer has drained."""
        super().resume_writing()
        if self._sink is not None:
            self._sink.drained()
            if self._owed_pong is not None and not self.close_sent:
                frame, self._owed_pong = self._owed_pong, None
                self._sink.write(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop writing at once; the session is notified by its receive."""
        if self._sink is not None:
            self._sink.discard()
        self._stop_clock()
        if self._hold is not None and self._held_bytes:
            self._hold(-self._held_bytes)
        super().connection_lost(exc)
        if self._on_message is not None:
            self._let_go()

    def _let_go(self) -> None:
        """Drop references to objects that refer back: an ended connection is then freed at once, without the garbage collector."""
        self._on_message = self._on_alive = self._on_shutdown = self._on_fault = self._hold = self._sink = None
        self.scope["extensions"].pop("herald.transport", None)
        self.conn.parser.close()  # a generator that refers to its connection; there is no more input
