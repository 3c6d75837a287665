"""A scripted protocol peer: the little of herald.v1 that makes the client do something, and faults on demand.

It provokes what a real gateway cannot be made to show when a test needs it (a cut between storing and answering, a
trimmed history, a close code). What the client does against the real server is in test_against_server.py.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol


@dataclass
class Log:
    """One RP's history in memory; `first` is the oldest offset still held."""

    epoch: str = "a"
    first: int = 1
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def end(self) -> int:
        return len(self.events)


class FakeGateway:
    """Listens on a free port. `names` maps references to RP ids; everything else is an id itself."""

    def __init__(self) -> None:
        self.logs: dict[str, Log] = {}
        self.names: dict[str, str] = {}
        self.acked: dict[str, tuple[str, int]] = {}  # durable subscription id -> (rp, offset)
        self.connections: set[ServerConnection] = set()
        self.handshakes: list[str] = []  # tokens shown
        self.frames: list[dict[str, Any]] = []  # everything received
        self.readers: dict[ServerConnection, set[str]] = {}
        self.cut_after_storing = 0  # so many publishes are stored and then the connection is cut instead of answering
        self.refusals: list[dict[str, Any]] = []  # the next operations are answered with these errors
        self.refuse_acks: dict[str, Any] | None = None  # acknowledgements are answered with this error
        self.lease_s = 600.0  # of each durable subscription
        self.renews = True  # whether renewals are answered
        self.refuse_handshakes: list[tuple[int, dict[str, Any], str | None]] = []
        self.ready = True  # what /readyz says
        self.probes = 0
        self.alternatives: list[str] | None = None  # what the answer to subscribe names, and a publisher is sent
        self.delay_s = 0.0  # of an answer to a measurement
        self.measurements = 0
        self.others: list[FakeGateway] = []  # with the same logs: their readers are sent events, too
        self.hops: list[str | None] = []  # what each handshake states
        self.port = 0
        self._server: Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            self.port,
            subprotocols=[Subprotocol("herald.v1")],
            process_request=self._handshake,
            close_timeout=0.2,
        )
        self.port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        """Vanish as a killed process does."""
        if self._server is not None:
            server, self._server = self._server, None
            self.cut()
            server.close()
            await server.wait_closed()

    def log(self, rp: str) -> Log:
        return self.logs.setdefault(self.names.get(rp, rp), Log())

    def cut(self) -> None:
        """Cut every connection without a closing handshake."""
        for connection in self.connections:
            connection.transport.abort()

    async def close(self, code: int, reason: str = "") -> None:
        for connection in list(self.connections):
            await connection.close(code, reason)

    async def say(self, **frame: Any) -> None:
        """Send a frame to every connection."""
        for connection in list(self.connections):
            await connection.send(json.dumps(frame))

    async def append(self, rp: str, *data: Any) -> None:
        for item in data:
            event = {"specversion": "1.0", "id": str(item), "source": "/fake", "type": "t", "data": item}
            await self._append(self.names.get(rp, rp), event)

    async def _handshake(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path == "/readyz":
            self.probes += 1
            status = 200 if self.ready else 503
            return Response(status, HTTPStatus(status).phrase, Headers(), b"")
        if request.path == "/livez":
            self.measurements += 1
            await asyncio.sleep(self.delay_s)
            return Response(200, "OK", Headers({"Content-Length": "0"}), b"")
        if request.path.startswith("/api/v1/subscriptions/"):
            return self._described(request.path.rpartition("/")[2])
        self.hops.append(parse_qs(urlsplit(request.path).query).get("hops", [None])[0])
        self.handshakes.append(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if not self.refuse_handshakes:
            return None
        status, problem, retry_after = self.refuse_handshakes.pop(0)
        headers = Headers({"Content-Type": "application/problem+json"})
        if retry_after is not None:
            headers["Retry-After"] = retry_after
        return Response(status, HTTPStatus(status).phrase, headers, json.dumps(problem).encode())

    def _described(self, subscription: str) -> Response:
        found = subscription in self.acked
        document = {"id": subscription, "lease": self._lease()} if found else {"type": "urn:herald:problem:not-found"}
        status, body = HTTPStatus(200 if found else 404), json.dumps(document).encode()
        return Response(status.value, status.phrase, Headers({"Content-Length": str(len(body))}), body)

    def _lease(self) -> dict[str, Any]:
        return {"granted_s": self.lease_s, "expires_at": ""}

    async def _serve(self, connection: ServerConnection) -> None:
        self.connections.add(connection)
        self.readers[connection] = set()
        try:
            async for text in connection:
                frame = json.loads(text)
                self.frames.append(frame)
                await self._frame(connection, frame)
        except ConnectionClosed:
            pass
        finally:
            self.connections.discard(connection)
            del self.readers[connection]

    async def _frame(self, connection: ServerConnection, frame: dict[str, Any]) -> None:
        async def answer(**members: Any) -> None:
            await connection.send(json.dumps({"op": "ok", "id": frame["id"], **members}))

        if self.refuse_acks is not None and frame["op"] == "ack":
            await connection.send(json.dumps({"op": "error", "id": frame["id"], **self.refuse_acks}))
        elif self.refusals:
            await connection.send(json.dumps({"op": "error", "id": frame["id"], **self.refusals.pop(0)}))
        elif frame["op"] == "subscribe":
            await self._subscribe(connection, frame, answer)
        elif frame["op"] == "publish":
            await self._publish(connection, frame, answer)
        else:
            if frame["op"] == "unsubscribe":
                durable = frame.get("subscription")
                rp = self.acked[durable][0] if durable else self.names.get(frame["rp"], frame["rp"])
                self.readers[connection].discard(rp)
            if frame["op"] == "ack":
                self.acked[frame["subscription"]] = (
                    self.acked[frame["subscription"]][0],
                    int(frame["cursor"].split(":")[1]),
                )
            if frame["op"] != "renew":
                await answer()
            elif self.renews:
                await answer(lease=self._lease())

    async def _publish(self, connection: ServerConnection, frame: dict[str, Any], answer: Any) -> None:
        rp = self.names.get(frame["rp"], frame["rp"])
        if self.alternatives is not None:
            await connection.send(json.dumps({"op": "alternatives", "rp": rp, "alternatives": self._alternatives()}))
        results = [await self._append(rp, event) for event in frame.get("events") or [frame["event"]]]
        if self.cut_after_storing:
            self.cut_after_storing -= 1
            connection.transport.abort()
        else:
            await answer(epoch=self.log(rp).epoch, offset=results[-1]["offset"], results=results)

    async def _subscribe(self, connection: ServerConnection, frame: dict[str, Any], answer: Any) -> None:
        if "subscription" in frame:
            rp, held = self.acked[frame["subscription"]]
            log, gap_from = self.log(rp), held + 1
        else:
            rp = self.names.get(frame["rp"], frame["rp"])
            log, start = self.log(rp), frame["from"]
            held = {"now": log.end, "earliest": log.first - 1, "last": max(log.end - 1, log.first - 1)}.get(start, -1)
            gap_from = 1
            if held < 0:
                epoch, _, offset = start.partition(":")
                held = int(offset) if epoch == log.epoch and int(offset) <= log.end else -1
                gap_from = held + 1 if held >= 0 else 1
        if rp in self.readers[connection]:
            conflict = {"type": "urn:herald:problem:conflict", "title": "Conflict", "rp": rp}
            await connection.send(json.dumps({"op": "error", "id": frame["id"], **conflict}))
            return
        recovered = held >= log.first - 1
        held = max(held, log.first - 1)
        named = {} if self.alternatives is None else {"alternatives": self._alternatives()}
        await answer(rp=rp, epoch=log.epoch, offset=held, recovered=recovered, **named)
        if not recovered:
            gap = {"op": "gap", "rp": rp, "epoch": log.epoch, "from": gap_from, "to": log.first - 1}
            await connection.send(json.dumps(gap))
        for offset in range(held + 1, log.end + 1):
            await connection.send(self._event(rp, offset))
        self.readers[connection].add(rp)

    def _alternatives(self) -> list[dict[str, Any]]:
        return [{"url": url, "weight": 1000} for url in self.alternatives or ()]

    async def _append(self, rp: str, event: dict[str, Any]) -> dict[str, Any]:
        log = self.log(rp)
        for offset, known in enumerate(log.events, 1):
            if (known["source"], known["id"]) == (event["source"], event["id"]):
                return {"offset": offset, "duplicate": True}
        log.events.append(event)
        everywhere = [reader for gateway in (self, *self.others) for reader in gateway.readers.items()]
        for connection, rps in everywhere:
            if rp in rps:
                try:
                    async with asyncio.timeout(0.5):  # a reader that reads no more does not hold up the others
                        await connection.send(self._event(rp, log.end))
                except (TimeoutError, ConnectionClosed):
                    rps.discard(rp)
        return {"offset": log.end, "duplicate": False}

    def _event(self, rp: str, offset: int) -> str:
        log = self.log(rp)
        place = {"rp": rp, "epoch": log.epoch, "offset": offset, "cursor": f"{log.epoch}:{offset}"}
        return json.dumps({"op": "event", **place, "event": log.events[offset - 1]})
