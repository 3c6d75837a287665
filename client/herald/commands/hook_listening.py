"""An endpoint on this machine for `herald hook listen`: it consents, verifies signatures, and shows every request."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

BODY_BYTES_MAX = 64 * 1024 * 1024
CHALLENGE = "io.herald.webhook.challenge"


class HookListener:
    """An endpoint at `url`.

    Args:
        secret: of the signatures, `whsec_BASE64`.
        port: 0 for a free one.
        show: called with each request.
    """

    def __init__(self, secret: str, port: int, show: Callable[[dict[str, Any]], None]) -> None:
        self._key = base64.b64decode(secret.removeprefix("whsec_"))
        self._port, self._show = port, show
        self._count = 0
        self._more = asyncio.Condition()
        self.url = ""

    async def __aenter__(self) -> Self:
        """Listen on loopback."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the listening socket."""
        self._server.close()

    async def received(self, count: int | None) -> None:
        """Wait for this many requests; None: for ever."""
        async with self._more:
            await self._more.wait_for(lambda: count is not None and self._count >= count)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        line, *fields = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = line.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in fields if one)}
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= BODY_BYTES_MAX:
            return False
        body = await reader.readexactly(length)
        challenge = _challenge(body)
        answer = challenge.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(answer), answer))
        await writer.drain()
        if not challenge:
            self._show(
                {
                    "method": method,
                    "path": path,
                    "id": headers.get("webhook-id", ""),
                    "valid": self._is_valid(headers, body),
                    "headers": headers,
                    "body": body.decode(errors="replace"),
                }
            )
            async with self._more:
                self._count += 1
                self._more.notify_all()
        return True

    def _is_valid(self, headers: dict[str, str], body: bytes) -> bool:
        signed = f"{headers.get('webhook-id', '')}.{headers.get('webhook-timestamp', '')}.".encode() + body
        wanted = b"v1," + base64.b64encode(hmac.digest(self._key, signed, "sha256"))
        stated = headers.get("webhook-signature", "").encode().split(b" ")
        return any(hmac.compare_digest(one, wanted) for one in stated)


def _challenge(body: bytes) -> str:
    """Return the challenge of a challenge event; empty for any other body."""
    try:
        event = json.loads(body)
    except ValueError:
        return ""
    if not isinstance(event, dict) or event.get("type") != CHALLENGE or not isinstance(event.get("data"), dict):
        return ""
    return str(event["data"].get("challenge", ""))
