"""An endpoint of a subscriber, real and misbehaving: the path of a hook says how it answers.

with Receiver() as receiver:
    receiver.url("/ok/a")        # 204 to events, and the challenge to a challenge event
    receiver.bodies("/ok/a")     # events received there
    receiver.answer["/ok/a"] = 503
    receiver.allows["/ok/a"] = {"WebHook-Allowed-Origin": "*"}    # in the answer to OPTIONS
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import sys
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


def own_host() -> str:
    """Return an address of this machine that hardly another endpoint has, so that no bound for each host is shared."""
    if sys.platform == "darwin":  # which has one loopback address only
        return "127.0.0.1"
    return f"127.{random.randrange(1, 255)}.{random.randrange(255)}.{random.randrange(1, 255)}"


CHALLENGE = "io.herald.webhook.challenge"


@dataclass
class Received:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.monotonic)


class Receiver:
    """An HTTP server on a thread of its own.

    Attributes:
        answer: by path: a status, raw bytes that are sent as they are, or the name of a misbehaviour.
        allows: by path: fields of the answer to OPTIONS.
        received: all requests.
        requests: those about events, without challenges, by path.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self._tls = tls
        self.host = host
        self.answer: dict[str, int | bytes | str] = {}
        self.allows: dict[str, dict[str, str]] = {}
        self.received: list[Received] = []
        self.connections = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0

    def url(self, path: str) -> str:
        """Return the URL of a hook."""
        return f"https://localhost:{self.port}{path}" if self._tls else f"http://{self.host}:{self.port}{path}"

    def requests(self, path: str) -> list[Received]:
        """Return the requests to a path that are about events, and no challenges."""
        asked = [one for one in self.received if one.path == path and one.method == "POST"]
        return [one for one in asked if CHALLENGE.encode() not in one.body]

    def data(self, path: str) -> list[Any]:
        """Return the data of the structured events received at a path, in order."""
        return [event.get("data") for event in self.events(path)]

    def events(self, path: str) -> list[dict[str, Any]]:
        """Return the structured events received at a path, in order."""
        found: list[dict[str, Any]] = []
        for one in self.requests(path):
            events = json.loads(one.body)
            found += events if isinstance(events, list) else [events]
        return found

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)

        async def serve() -> None:
            server = await asyncio.start_server(self._served, self.host, 0, limit=8 * 1024 * 1024, ssl=self._tls)
            self.port = server.sockets[0].getsockname()[1]
            self._ready.set()

        self._loop.run_until_complete(serve())
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.split("\r\n")
        method, path, _ = line.split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in fields if one)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        one = Received(method, path, headers, body)
        self.received.append(one)
        if method == "OPTIONS" and path in self.allows:
            fields_made = "".join(f"{name}: {value}\r\n" for name, value in self.allows[path].items())
            writer.write(f"HTTP/1.1 200 OK\r\nAllow: POST\r\n{fields_made}Content-Length: 0\r\n\r\n".encode())
            return True
        if CHALLENGE.encode() in body and not path.startswith("/mute"):
            token = json.loads(body)["data"]["challenge"].encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(token), token))
            return True
        return await self._answered(self.answer.get(path, 204), writer)

    async def _answered(self, how: int | bytes | str, writer: asyncio.StreamWriter) -> bool:
        if isinstance(how, int):
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % how)
            return True
        if isinstance(how, bytes):
            writer.write(how)
            await writer.drain()
            return False
        if how == "hang":
            await asyncio.sleep(60)
        elif how == "drip-head":
            for _ in range(60):
                writer.write(b"H" if _ == 0 else b"T")
                await writer.drain()
                await asyncio.sleep(0.5)
        elif how == "hang-body":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
            await asyncio.sleep(60)
        elif how == "huge":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n")
            for _ in range(1600):
                writer.write(b"x" * 65536)
                await writer.drain()
        elif how == "reset-after-200":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
            await writer.drain()
            writer.transport.abort()
        elif how == "endless-head":
            writer.write(b"HTTP/1.1 200 OK\r\n" + b"X-Field: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n" * 2000)
            await writer.drain()
            await asyncio.sleep(60)
        return False
