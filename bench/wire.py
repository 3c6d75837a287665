"""The bytes that the load generator sends: HTTP requests, client WebSocket frames, and the marked data of an event."""

from __future__ import annotations

from collections.abc import Sequence

DATA_BYTES = 128
_KEY = "dGhlIHNhbXBsZSBub25jZQ=="  # RFC 6455, section 1.3: any 16 bytes will do


def data(stream: int, size: int = DATA_BYTES) -> bytes:
    """Return an event's data: the mark that load.c fills in (see its head), padded to `size` bytes (at least 44)."""
    mark = b"bench#%06d.%010d.%020d" % (stream, 0, 0)
    return mark.ljust(size, b"x")


def upgrade(port: int, path: str, headers: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return a request to change to WebSocket."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {_KEY}",
        "Sec-WebSocket-Version: 13",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def post(port: int, path: str, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> bytes:
    """Return a POST on a kept connection."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Content-Length: {len(body)}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def frame(payload: bytes, opcode: int = 1) -> bytes:
    """Return a client's WebSocket frame. Its masking key is zero, so that load.c can fill in numbers without masking
    again; the server does the same work for any key.
    """
    size = len(payload)
    if size < 126:
        head = bytes([0x80 | opcode, 0x80 | size])
    elif size < 65536:
        head = bytes([0x80 | opcode, 0x80 | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([0x80 | opcode, 0x80 | 127]) + size.to_bytes(8, "big")
    return head + bytes(4) + payload
