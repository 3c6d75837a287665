"""Sinks for a session's bytes. A sink never blocks and never exceeds its bound by more than one write: above the bound
its session is no longer served live, but from the log once the sink has drained."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from eventing.gateway.delivery import frames

Send = Callable[[dict[str, Any]], Awaitable[None]]


class Sink(Protocol):
    """Destination of a session's frames.

    Attributes:
        write: accepts complete frames, one or several joined.
        fd: a descriptor that may be written to directly at present; -1 for none. `on_fd` is called when that changes.
        paused: whether the bound is reached; `on_pause` and `on_resume` are called when that changes.
    """

    write: Callable[[bytes], None]
    fd: int
    paused: bool
    on_pause: Callable[[], None]
    on_resume: Callable[[], None]
    on_fd: Callable[[], None]

    def waiting(self) -> int:
        """Bytes that were written and that the network has not accepted yet."""

    def ping(self) -> bool:
        """Ask the client for a sign of life; False if none can be expected."""

    def discard(self) -> None:
        """Discard unsent bytes and accept no more: the session has ended."""


def nobody_listens() -> None:
    """Do nothing, in place of a session's callbacks before they are set and after its end."""


def _no_more(data: bytes) -> None:
    return


class TransportSink:
    """Writes directly to a server's transport, which the server offers as the ASGI extension `herald.transport`.

    Bytes that the kernel does not accept at once make the transport "clogged" until all of them are sent. A sink that
    is not clogged may be written to by its file descriptor, bypassing the transport (`Channel.flush` does, at a fifth
    less CPU for a thousand sessions: no object of the session is touched). The descriptor must not be used after the
    connection is lost, because another connection may get its number: `discard` makes the session leave its channels
    within the same call.

    Attributes:
        fd: the socket's descriptor; -1 where it must not be written to (TLS, clogged, discarded).
        on_fd: called when `fd` changes.
    """

    __slots__ = ("_buffer_bytes", "_socket_fd", "_transport", "fd", "on_fd", "on_pause", "on_resume", "paused", "write")

    def __init__(self, transport: asyncio.WriteTransport, buffer_bytes: int) -> None:
        transport.set_write_buffer_limits(high=0)  # the protocol is notified of every write that was not sent at once
        self._transport = transport
        self._buffer_bytes = buffer_bytes
        self._socket_fd = _plain_socket(transport)
        waiting = transport.get_write_buffer_size() > 0  # the answer to the handshake may not have been sent yet
        self.fd = -1 if waiting else self._socket_fd
        self.write: Callable[[bytes], None] = self._write_clogged if waiting else transport.write
        self.paused = False
        self.on_pause: Callable[[], None] = nobody_listens
        self.on_resume: Callable[[], None] = nobody_listens
        self.on_fd: Callable[[], None] = nobody_listens

    def clogged(self) -> None:
        """Note that the transport holds bytes that the kernel did not accept (called by the protocol)."""
        if self.write is _no_more:
            return
        self.write = self._write_clogged
        self._use(-1)
        self._check_bound()

    def drained(self) -> None:
        """Note that the transport is empty (called by the protocol)."""
        if self.write is _no_more:
            return
        self.write = self._transport.write
        self._use(self._socket_fd)
        if self.paused:
            self.paused = False
            self.on_resume()

    def _write_clogged(self, data: bytes) -> None:
        self._transport.write(data)
        self._check_bound()

    def _check_bound(self) -> None:
        if not self.paused and self._transport.get_write_buffer_size() > self._buffer_bytes:
            self.paused = True
            self.on_pause()

    def _use(self, fd: int) -> None:
        if fd != self.fd:
            self.fd = fd
            self.on_fd()

    def waiting(self) -> int:
        """Bytes in the transport."""
        return self._transport.get_write_buffer_size()

    def ping(self) -> bool:
        """Send a WebSocket ping."""
        self.write(frames.PING)
        return True

    def discard(self) -> None:
        """Accept no more bytes."""
        self.write = _no_more
        self._socket_fd = -1
        self._use(-1)


def _plain_socket(transport: asyncio.BaseTransport) -> int:
    """Return the descriptor of the transport's socket; -1 if bytes written there would have to be encrypted."""
    sock = transport.get_extra_info("socket")
    if sock is None or transport.get_extra_info("sslcontext") is not None:
        return -1
    return int(sock.fileno())


class SendSink:
    """Writes through ASGI `send`, for servers without the extension (daphne) and for plain HTTP streams.

    Args:
        send: the ASGI send callable.
        messages: converts written bytes into ASGI messages.
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
            self.discard()  # the client is gone; the server reports it to the session separately
        finally:
            self._task = None
            if self._buffer:
                self._task = asyncio.get_running_loop().create_task(self._drain())

    async def drained(self) -> None:
        """Return when all written bytes have been passed to the server."""
        while self._task is not None:
            await asyncio.wait([self._task])

    def waiting(self) -> int:
        """Bytes that the server has not accepted."""
        return self._size

    def ping(self) -> bool:
        """Return False: a server that does the framing also pings, and Server-Sent Events have no answer."""
        return False

    def discard(self) -> None:
        """Discard unsent bytes and accept no more."""
        self.write = _no_more
        self._buffer = []
        self._size = 0


def websocket_messages(data: bytes) -> list[dict[str, Any]]:
    """Convert the frames in `data` to ASGI messages; a ping or pong among them is left to the server."""
    return [{"type": "websocket.send", "text": payload.decode()} for payload in frames.payloads(data)]


def http_messages(data: bytes) -> list[dict[str, Any]]:
    """Convert bytes of a streamed body to an ASGI message."""
    return [{"type": "http.response.body", "body": data, "more_body": True}]
