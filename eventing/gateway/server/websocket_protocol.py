"""uvicorn's WebSocket protocol with what the hot path needs of it.

It offers itself to the application as the ASGI extension `herald.transport`: frames are written straight to the transport
(one shared frame, no per-connection encoding), messages are handed over as they are parsed, and the transport's
back-pressure reaches the session.

What a client that does not read can make us hold is bounded: events and answers by the session's buffer, pongs by answering
the latest ping only (RFC 6455 section 5.5.3), an unfinished message by time and bytes.
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
from eventing.telemetry.totals import TOTALS

REST_BYTES_MAX = 64 * 1024  # of a message whose end has not come; larger ones go the long way, which joins them cheaper
CLOSE_S = 5.0  # for a client's answer to our close

_PONG = bytes((PONG,))


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


class _Parser(ServerProtocol):
    """The WebSocket library's parser, which refuses a handshake by a problem document."""

    def reject(self, status: Any, text: str) -> Response:
        """The answer to a handshake that is refused; uvicorn's own refusals have no text, or are 500."""
        if not text or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return super().reject(status, text)
        kind = MethodNotAllowed if status == HTTPStatus.METHOD_NOT_ALLOWED else InvalidRequest
        error = kind(text.strip().partition("\n")[0][:200])
        TOTALS.refuse(error.code)
        document = msgspec.json.encode(error.document())
        fields = {"Content-Type": "application/problem+json", "Content-Length": str(len(document))}
        headers = Headers({**fields, "Connection": "close", "Sec-WebSocket-Version": "13"})
        return Response(error.status, HTTPStatus(error.status).phrase, headers, document)


class HeraldWebSocketProtocol(WebSocketsSansIOProtocol):
    """See the module. Until `attach`, it is uvicorn's protocol unchanged, and reads nothing behind the handshake."""

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
        self.conn.parser.close()  # uvicorn's own: a generator that refers to its connection, for the garbage collector else
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
        self._held_bytes = 0  # of a message whose end has not come, as `_hold` was told
        self._clock: asyncio.TimerHandle | None = None  # until when that must have come whole
        self._completed = False  # whether the parser completed a message in the present read
        self._reading = True
        self._deaf = False  # whether what comes is dropped: the close is under way

    # What the application may use

    def sink(self, buffer_bytes: int) -> TransportSink:
        """The sink that writes to this connection's transport."""
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
        """Read from the client from now on.

        Args:
            on_message: is given each text message.
            on_alive: is called at every sign of life.
            on_shutdown: closes the connection when the server stops.
            on_fault: closes the connection for what the client did: code, reason, whether to connect again.
            hold: counts bytes held of unfinished messages, more or less; False if that is more than may be.
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
        self._reading = not paused
        if self.transport.is_closing():
            return
        if paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()
            self._restart_clock()

    def abort(self) -> None:
        """End the connection at once."""
        self.transport.abort()

    # uvicorn's hooks

    def handle_connect(self, event: Any) -> None:
        """Add the extension before the application's task first runs."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["extensions"]["herald.transport"] = self  # type: ignore[assignment]
            self.transport.pause_reading()  # until `attach`: a client is to wait for the answer to its handshake

    async def send(self, message: Any) -> None:
        """uvicorn's send, which forgets that a denied handshake is complete and would log an error for it."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

    async def run_asgi(self) -> None:
        """uvicorn's, whose end would wait for ever for a client that does not take what is still to be sent."""
        await super().run_asgi()
        if not self.disconnected and (self.close_timer is not None or self.transport.get_write_buffer_size()):
            self.loop.call_later(CLOSE_S + 1, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take plain frames by the short way; from the first other frame on, all goes through uvicorn's parser."""
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
        """Give `data` to uvicorn's parser; `completed`: messages before it came whole in the same read."""
        if self._deaf:
            return
        self._completed = completed
        super().data_received(data)
        if self._on_message is not None:
            begun_bytes = self.conn.current_size
            waiting_bytes = len(self.conn.reader.buffer)
            self._unfinished(waiting_bytes if begun_bytes is None else waiting_bytes + begun_bytes + 1, self._completed)

    # A message whose end has not come

    def _unfinished(self, held_bytes: int, completed: bool) -> None:
        """Count what is held of a message now; `completed`: it began in this read, because another was completed in it."""
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
        """The client was not read for a while, which is no fault of its own."""
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
        """Let go of the unfinished message, drop what comes from now on, and close."""
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
        """Answer a ping, at once or, while the client does not read, the latest one once it does."""
        if self._sink is None or not self._sink.paused:
            (self.transport if self._sink is None else self._sink).write(frame)
        else:
            self._owed_pong = frame

    def handle_ping(self) -> None:
        """Write what the parser has ready: the pongs of all pings in this read, and whatever else."""
        self._completed = self._completed or self.conn.current_size is None
        for frame in self.conn.data_to_send():
            if frame[:1] == _PONG:
                self._pong(frame)
            elif frame:
                self.transport.write(frame)

    def send_receive_event_to_app(self) -> None:
        """A whole message has come."""
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
            if self._owed_pong is not None and not self.close_sent:
                frame, self._owed_pong = self._owed_pong, None
                self._sink.write(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop writing at once; the session learns it from its receive."""
        if self._sink is not None:
            self._sink.discard()
        self._stop_clock()
        if self._hold is not None and self._held_bytes:
            self._hold(-self._held_bytes)
        super().connection_lost(exc)
        if self._on_message is not None:
            self._let_go()

    def _let_go(self) -> None:
        """Refer no more to what refers to us: what has ended is then freed at once, without the garbage collector."""
        self._on_message = self._on_alive = self._on_shutdown = self._on_fault = self._hold = self._sink = None
        self.scope["extensions"].pop("herald.transport", None)
        self.conn.parser.close()  # a generator that refers to its connection; nothing comes any more
