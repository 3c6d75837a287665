"""Bytes on a socket, for what no well-behaved client would send."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.gateway.server import LiveGateway

ANSWER_WITHIN_S = 60.0
BUSY_S = 10.0  # that a busy machine may take beyond a time that the gateway keeps
TEXT, BINARY, CLOSE, PING, PONG, CONTINUATION = 0x1, 0x2, 0x8, 0x9, 0xA, 0x0
FIN = 0x80


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; status 0 when the connection was closed without one."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The code of the problem document that it must be."""
        assert self.headers.get("content-type") == "application/problem+json", self
        document = json.loads(self.body)
        assert document["status"] == self.status
        assert document["title"]
        assert document["detail"]
        return str(document["type"]).removeprefix("urn:herald:problem:")


class Raw:
    """One TCP connection to a gateway."""

    def __init__(self, live_gateway: LiveGateway, *, gateway: int = 0, receive_buffer: int = 0) -> None:
        self._live_gateway = live_gateway
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(ANSWER_WITHIN_S)
        self.socket.connect(("127.0.0.1", live_gateway.port(gateway)))
        self._come = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send; a server that has already closed is no error, its answer counts."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def drip(self, chunks: Iterable[bytes], pause_s: float) -> bool:
        """Send slowly until the server answers or closes; whether it did before the end."""
        for chunk in chunks:
            try:
                self.socket.sendall(chunk)
            except OSError:
                return True
            self.socket.settimeout(pause_s)
            try:
                come = self.socket.recv(65_536)
            except TimeoutError:
                continue
            except OSError:
                return True
            finally:
                self.socket.settimeout(ANSWER_WITHIN_S)
            self._come += come
            return True
        return False

    def closed(self) -> bool:
        """Read on until the server has closed. Raises TimeoutError when it does not."""
        while self._receive():
            pass
        return True

    def _receive(self) -> bool:
        try:
            come = self.socket.recv(65_536)
        except ConnectionResetError:
            return False
        self._come += come
        return bool(come)

    def take(self, count: int) -> bytes:
        """The next `count` bytes; fewer when the connection ends."""
        while len(self._come) < count and self._receive():
            pass
        taken, self._come = self._come[:count], self._come[count:]
        return taken

    def take_head(self) -> bytes:
        while b"\r\n\r\n" not in self._come and self._receive():
            pass
        head, _, self._come = self._come.partition(b"\r\n\r\n")
        return head

    # HTTP

    def answer(self) -> Answer:
        """The next HTTP answer."""
        head = self.take_head()
        if not head:
            return Answer(0, {}, b"")
        status, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body = self.take(int(headers.get("content-length", "0")))
        return Answer(int(status.split()[1]), headers, body)

    def head(self, method: str, path: str, *headers: str, token: str | None = None) -> bytes:
        """A request's head, with a good token unless told otherwise."""
        token = self._live_gateway.token() if token is None else token
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: x",
            *([f"Authorization: Bearer {token}"] if token else []),
            *headers,
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    # WebSocket

    def upgrade(self, path: str = "/ws", *headers: str, token: str | None = None) -> bytes:
        """A handshake's head."""
        return self.head(
            "GET",
            path,
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            *headers,
            token=token,
        )

    def open(self, token: str | None = None) -> Self:
        """Make the handshake, with a good token unless told otherwise."""
        self.send(self.upgrade(token=token))
        assert self.take_head().startswith(b"HTTP/1.1 101 ")
        return self

    def frame(self) -> tuple[int, bytes]:
        """The next frame from the server: opcode and payload. (CLOSE, b"") when the connection ended without one."""
        head = self.take(2)
        if len(head) < 2:
            return CLOSE, b""
        assert head[0] & 0xF0 == FIN, "the server does not fragment"
        assert not head[1] & 0x80, "the server does not mask"
        size = head[1]
        if size > 125:
            size = int.from_bytes(self.take(2 if size == 126 else 8), "big")
        return head[0] & 0x0F, self.take(size)

    def message(self) -> dict[str, Any]:
        """The next text frame."""
        while True:
            opcode, payload = self.frame()
            if opcode == TEXT:
                message: dict[str, Any] = json.loads(payload)
                return message
            assert opcode in (PING, PONG), (opcode, payload)

    def close_code(self) -> int:
        """The close code; text frames before it are passed over. 0 when the connection ended without one."""
        until = time.monotonic() + ANSWER_WITHIN_S
        while time.monotonic() < until:
            opcode, payload = self.frame()
            if opcode == CLOSE:
                return int.from_bytes(payload[:2], "big")
        raise TimeoutError

    def ask(self, message: object) -> dict[str, Any]:
        """Send an operation as a good client does, and take the next text frame."""
        self.send(client_frame(json.dumps(message).encode()))
        return self.message()


def client_frame(
    payload: bytes,
    first_byte: int = FIN | TEXT,
    *,
    masked: bool = True,
    size: int | None = None,
    mask: bytes | None = None,
) -> bytes:
    """A client's frame; `size` is what it says of its length when that is not the truth, `mask` its four bytes (random)."""
    size = len(payload) if size is None else size
    bit = 0x80 if masked else 0
    if size < 126:
        head = bytes((first_byte, bit | size))
    elif size < 65_536:
        head = bytes((first_byte, bit | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((first_byte, bit | 127)) + size.to_bytes(8, "big")
    if not masked:
        return head + payload
    mask = mask or os.urandom(4)
    repeated = (mask * (len(payload) // 4 + 1))[: len(payload)]
    xor = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
    return head + mask + xor.to_bytes(len(payload), "big")
