"""Where a session's bytes go. A sink never blocks and never grows beyond its bound by more than one write: past the
bound it tells its session, which stops being live and is fed from the log once the sink has drained.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from eventing.gateway.delivery import frames

Send = Callable[[dict[str, Any]], Awaitable[None]]


class Sink(Protocol):
    """What the hub writes a session's frames to.

    Attributes:
        write: takes whole frames, one or several joined.
        fd: a descriptor that may be written to instead just now; -1 for none. `on_fd` is called when that changes.
        paused: whether the bound is reached; `on_pause` and `on_resume` are called when that changes.
    """

    write: Callable[[bytes], None]
    fd: int
    paused: bool
    on_pause: Callable[[], None]
    on_resume: Callable[[], None]
    on_fd: Callable[[], None]

    def waiting(self) -> int:
        """Bytes that were written and are still held here, because the network has not taken them."""

    def ping(self) -> bool:
        """Ask the other side for a sign of life; whether one is to be expected."""

    def discard(self) -> None:
        """Forget what is unsent and take no more: the session has ended."""


def nobody_listens() -> None:
    """In place of a session's callbacks, before it has set them and after it has ended."""


def _no_more(data: bytes) -> None:
    return


class TransportSink:
    """Writes straight to a server's transport, which the server offers as the ASGI extension `herald.transport`.

    Whatever the transport cannot pass on to the kernel at once makes it "clogged" until all of that has gone. A sink that
    is not clogged may be written to by its file descriptor, past the transport (`Channel.flush` does, for it costs a fifth
    less CPU at a thousand sessions: no object of the session is touched). The descriptor must not be used any more once
    the connection is lost, for another connection may get its number: `discard` makes the session leave its channels
    within the same call.

    Attributes:
        fd: the socket's descriptor; -1 where it must not be written to (TLS, clogged, discarded).
        on_fd: called when `fd` changes.
    """

    __slots__ = ("_buffer_bytes", "_socket_fd", "_transport", "fd", "on_fd", "on_pause", "on_resume", "paused", "write")

    def __init__(self, transport: asyncio.WriteTransport, buffer_bytes: int) -> None:
        transport.set_write_buffer_limits(high=0)  # the protocol is told of every write that did not go at once
        self._transport = transport
        self._buffer_bytes = buffer_bytes
        self._socket_fd = _plain_socket(transport)
        waiting = transport.get_write_buffer_size() > 0  # the answer to the handshake may not have gone yet
        self.fd = -1 if waiting else self._socket_fd
        self.write: Callable[[bytes], None] = self._write_clogged if waiting else transport.write
        self.paused = False
        self.on_pause: Callable[[], None] = nobody_listens
        self.on_resume: Callable[[], None] = nobody_listens
        self.on_fd: Callable[[], None] = nobody_listens

    def clogged(self) -> None:
        """The transport holds what the kernel did not take (called by the protocol)."""
        if self.write is _no_more:
            return
        self.write = self._write_clogged
        self._use(-1)
        self._mind_the_bound()

    def drained(self) -> None:
        """The transport holds nothing any more (called by the protocol)."""
        if self.write is _no_more:
            return
        self.write = self._transport.write
        self._use(self._socket_fd)
        if self.paused:
            self.paused = False
            self.on_resume()

    def _write_clogged(self, data: bytes) -> None:
        self._transport.write(data)
        self._mind_the_bound()

    def _mind_the_bound(self) -> None:
        if not self.paused and self._transport.get_write_buffer_size() > self._buffer_bytes:
            self.paused = True
            self.on_pause()

    def _use(self, fd: int) -> None:
        if fd != self.fd:
            self.fd = fd
            self.on_fd()

    def waiting(self) -> int:
        """What the transport holds."""
        return self._transport.get_write_buffer_size()

    def ping(self) -> bool:
        """A WebSocket ping."""
        self.write(frames.PING)
        return True

    def discard(self) -> None:
        """Take no more."""
        self.write = _no_more
        self._socket_fd = -1
        self._use(-1)


def _plain_socket(transport: asyncio.BaseTransport) -> int:
    """The descriptor of the transport's socket; -1 if what is written there would have to be encrypted."""
    sock = transport.get_extra_info("socket")
    if sock is None or transport.get_extra_info("sslcontext") is not None:
        return -1
    return int(sock.fileno())


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
        "fd",
        "on_fd",
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
        self.fd = -1
        self.on_fd: Callable[[], None] = nobody_listens
        self.paused = False
        self.on_pause: Callable[[], None] = nobody_listens
        self.on_resume: Callable[[], None] = nobody_listens
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

    def waiting(self) -> int:
        """What the server has not taken."""
        return self._size

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
