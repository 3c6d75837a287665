"""Where a session's bytes go. A sink never blocks and never grows beyond its bound by more than one write: past the
bound it tells its session, which stops being live and is fed from the log once the sink has drained.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from eventing.edge import frames

Send = Callable[[dict[str, Any]], Awaitable[None]]


class Sink(Protocol):
    """What the hub writes a session's frames to.

    Attributes:
        write: takes whole frames, one or several joined.
        paused: whether the bound is reached; `on_pause` and `on_resume` are called when that changes.
    """

    write: Callable[[bytes], None]
    paused: bool
    on_pause: Callable[[], None]
    on_resume: Callable[[], None]

    def ping(self) -> bool:
        """Ask the other side for a sign of life; whether one is to be expected."""

    def discard(self) -> None:
        """Forget what is unsent and take no more: the session has ended."""


def _ignore() -> None:
    return


def _no_more(data: bytes) -> None:
    return


class TransportSink:
    """Writes straight to a server's transport, which the server offers as the ASGI extension `herald.transport`."""

    __slots__ = ("_transport", "on_pause", "on_resume", "paused", "write")

    def __init__(self, transport: asyncio.WriteTransport, buffer_bytes: int) -> None:
        transport.set_write_buffer_limits(high=buffer_bytes, low=buffer_bytes // 4)
        self._transport = transport
        self.write: Callable[[bytes], None] = transport.write
        self.paused = False
        self.on_pause: Callable[[], None] = _ignore
        self.on_resume: Callable[[], None] = _ignore

    def pause(self) -> None:
        """The transport's buffer is over its bound (called by the protocol)."""
        self.paused = True
        self.on_pause()

    def resume(self) -> None:
        """The transport's buffer has drained to a quarter of its bound (called by the protocol)."""
        self.paused = False
        self.on_resume()

    def ping(self) -> bool:
        """A WebSocket ping."""
        self.write(frames.PING)
        return True

    def discard(self) -> None:
        """Take no more."""
        self.write = _no_more


class SendSink:
    """Writes through ASGI `send`, for servers without the extension (daphne) and for plain HTTP streams.

    Args:
        send: the ASGI send callable.
        messages: turns written bytes into the ASGI messages that carry them.
        buffer_bytes: the bound.
    """

    __slots__ = (
        "_buffer",
        "_buffer_bytes",
        "_messages",
        "_send",
        "_size",
        "_task",
        "on_pause",
        "on_resume",
        "paused",
        "write",
    )

    def __init__(self, send: Send, messages: Callable[[bytes], list[dict[str, Any]]], buffer_bytes: int) -> None:
        self._send = send
        self._messages = messages
        self._buffer_bytes = buffer_bytes
        self._buffer: list[bytes] = []
        self._size = 0
        self._task: asyncio.Task[None] | None = None
        self.paused = False
        self.on_pause: Callable[[], None] = _ignore
        self.on_resume: Callable[[], None] = _ignore
        self.write: Callable[[bytes], None] = self._write

    def _write(self, data: bytes) -> None:
        self._buffer.append(data)
        self._size += len(data)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._drain())
        if self._size > self._buffer_bytes and not self.paused:
            self.paused = True
            self.on_pause()

    async def _drain(self) -> None:
        try:
            while self._buffer:
                data, self._buffer = b"".join(self._buffer), []
                for message in self._messages(data):
                    await self._send(message)
                self._size -= len(data)
                if self.paused and self._size <= self._buffer_bytes // 4:
                    self.paused = False
                    self.on_resume()
        except (OSError, RuntimeError):
            self.discard()  # the other side is gone; the server tells the session by its own way
        finally:
            self._task = None
            if self._buffer:
                self._task = asyncio.get_running_loop().create_task(self._drain())

    async def drained(self) -> None:
        """Return when all that was written has been handed to the server."""
        while self._task is not None:
            await asyncio.wait([self._task])

    def ping(self) -> bool:
        """The server that frames for us also pings for us, and Server-Sent Events have no answer to wait for."""
        return False

    def discard(self) -> None:
        """Drop what is unsent and take no more."""
        self.write = _no_more
        self._buffer = []
        self._size = 0


def websocket_messages(data: bytes) -> list[dict[str, Any]]:
    """The frames in `data` as ASGI messages; a ping or pong among them is left to the server."""
    return [{"type": "websocket.send", "text": payload.decode()} for payload in frames.payloads(data)]


def http_messages(data: bytes) -> list[dict[str, Any]]:
    """Bytes of a streamed body as an ASGI message."""
    return [{"type": "http.response.body", "body": data, "more_body": True}]
