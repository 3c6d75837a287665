"""Publishers that keep on through every fault: an event is sent again, with its id, until it is acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from functools import partial
from types import TracebackType
from typing import Self

import httpx
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from demo.harness.servers import eventually
from tests.gateway.server import STRUCTURED, LiveGateway, event


class Publisher:
    """Publishes at `rp` from entering to leaving; `acknowledged` are the ids the domain has answered for."""

    def __init__(
        self, live_gateway: LiveGateway, rp: str, name: str, *, gateway: int = 0, pause_s: float = 0.0
    ) -> None:
        self._live_gateway = live_gateway
        self._rp = rp
        self._name = name
        self._gateway = gateway
        self._pause_s = pause_s
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)
        self.acknowledged: set[str] = set()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        assert self._task is not None
        await asyncio.wait_for(self._task, 90)

    def _new_id(self) -> str:
        return f"{self._name}-{next(self._numbers)}"

    async def _run(self) -> None:
        raise NotImplementedError


class HttpPublisher(Publisher):
    """One event at a time."""

    async def _run(self) -> None:
        async with self._live_gateway.ahttp(gateway=self._gateway) as http:
            while not self._stopping.is_set():
                event_id = self._new_id()
                await eventually(partial(self._publish, http, event_id), 60, every_s=0.05, about=f"{event_id} is taken")
                self.acknowledged.add(event_id)
                await asyncio.sleep(self._pause_s)

    async def _publish(self, http: httpx.AsyncClient, event_id: str) -> bool:
        content = json.dumps(event(event_id, "x" * 100))
        try:
            answer = await http.post(f"/api/v1/rps/{self._rp}/events", content=content, headers=STRUCTURED)
        except httpx.TransportError:
            return False
        assert answer.status_code in (201, 503), answer.text
        return answer.status_code == 201


class SocketPublisher(Publisher):
    """Many in flight on one connection; what was not answered is published again on the next one, in its order."""

    WINDOW = 50

    async def _run(self) -> None:
        unanswered: dict[str, None] = {}
        while unanswered or not self._stopping.is_set():
            with contextlib.suppress(OSError, ConnectionClosed, InvalidHandshake, EOFError):
                await self._connection(unanswered)
            await asyncio.sleep(0.05)

    async def _connection(self, unanswered: dict[str, None]) -> None:
        headers = {"Authorization": f"Bearer {self._live_gateway.token()}"}
        url = self._live_gateway.ws_url(self._gateway)
        async with connect(url, additional_headers=headers, compression=None, max_queue=None, proxy=None) as ws:
            waiting = list(unanswered)
            in_flight: set[str] = set()
            while True:
                while len(in_flight) < self.WINDOW and (waiting or not self._stopping.is_set()):
                    event_id = waiting.pop(0) if waiting else self._new_id()
                    unanswered[event_id] = None
                    in_flight.add(event_id)
                    members = {"op": "publish", "id": event_id, "rp": self._rp, "event": event(event_id)}
                    await ws.send(json.dumps(members))
                if not in_flight:
                    return
                answer = json.loads(await ws.recv())
                if answer["op"] == "closing":
                    continue
                in_flight.discard(answer["id"])
                if answer["op"] == "ok":
                    unanswered.pop(answer["id"], None)
                    self.acknowledged.add(answer["id"])
                else:
                    assert answer["type"] == "urn:herald:problem:unavailable", answer
                    waiting.append(answer["id"])
                await asyncio.sleep(self._pause_s)
