"""Endpoints of subscribers for the scenario `push`: `python -m bench.push_endpoint GOOD DEAD`.

One process that answers 204 at once at GOOD ports, and accepts connections that it never answers at DEAD ports. Its first line
of output is its ports as JSON. Events carry `"n":NUMBER` and `"at":NANOSECONDS` of CLOCK_MONOTONIC; for each path it
notes how many arrived, which were lost so far, repeated or out of order, and the delays. `GET /taken` at the first port
returns these as JSON and begins anew.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import time
from typing import Any

import httptools
import uvloop

BACKLOG = 1024
DELAYS_MAX = 1_000_000  # bound: delays kept; further ones are counted only
_EVENT = re.compile(rb'"n":(\d+),"at":(\d+)')
_NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


class ReceivedCounts:
    """Events received since the last `begin`."""

    def __init__(self) -> None:
        self.begin()
        self.last: dict[str, int] = {}

    def begin(self) -> None:
        """Count anew; the order is still that of all events of a path."""
        self.events = self.requests = self.repeated = self.skipped = 0
        self.delays_ms: list[float] = []
        self.ended_ns = 0

    def take(self, path: str, body: bytes) -> None:
        """Count the events of a request."""
        now = time.monotonic_ns()
        self.requests += 1
        self.ended_ns = now
        for number, at in _EVENT.findall(body):
            self.events += 1
            n, last = int(number), self.last.get(path)
            if last is not None:
                self.repeated += n <= last
                self.skipped += max(0, n - last - 1)
            self.last[path] = max(n, last or 0)
            if len(self.delays_ms) < DELAYS_MAX:
                self.delays_ms.append((now - int(at)) / 1e6)

    def document(self) -> bytes:
        """Return the counts."""
        shown = ("events", "requests", "repeated", "skipped", "delays_ms", "ended_ns")
        return json.dumps({name: getattr(self, name) for name in shown}).encode()


class Endpoint(asyncio.Protocol):
    """A connection to a good endpoint."""

    def __init__(self, taken: ReceivedCounts) -> None:
        self._taken = taken
        self._parser = httptools.HttpRequestParser(self)
        self._path, self._body = "", b""

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Parse requests."""
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Begin a request."""
        self._path, self._body = url.decode(), b""

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self._body += body

    def on_message_complete(self) -> None:
        """Answer."""
        if self._path == "/taken":
            document = self._taken.document()
            self._taken.begin()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(document), document))
            return
        self._taken.take(self._path, self._body)
        self._transport.write(_NO_CONTENT)


async def main(good: int, dead: int) -> None:
    """Serve until killed."""
    loop, taken = asyncio.get_running_loop(), ReceivedCounts()
    ports = []
    for _ in range(good):
        server = await loop.create_server(lambda: Endpoint(taken), "127.0.0.1", 0, backlog=BACKLOG)
        ports.append(server.sockets[0].getsockname()[1])
    silent = [socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) for _ in range(dead)]
    print(json.dumps({"good": ports, "dead": [one.getsockname()[1] for one in silent]}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2])))
