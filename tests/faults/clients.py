"""Clients under faults: publishers that repeat until they are answered, and readers that resume at their cursors. All they are told
is recorded (history.py).

Each connects to a gateway drawn anew whenever something fails. They speak the protocol themselves, so that no client library stands between
the check and the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from tests.faults.history import HELD, LOG, History

PATIENCE_S = 12.0  # bound: seconds for an answer; the request is repeated, to another gateway perhaps
PAUSE_S = (0.05, 0.3)
PING_S = 2.0
OUTSTANDING_MAX = 8
PAGE_EVENTS = 200
LOST = (OSError, ConnectionClosed, InvalidHandshake, TimeoutError, EOFError, httpx.HTTPError)
BATCH = {"content-type": "application/cloudevents-batch+json"}


@dataclass
class Access:
    """What clients have in common.

    Attributes:
        urls: of the gateways.
        over: set when no new events are to be published.
    """

    urls: list[str]
    token: str
    history: History
    rng: random.Random
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def pause(self) -> None:
        """Wait for a moment before trying again."""
        await asyncio.sleep(self.rng.uniform(*PAUSE_S))

    def http(self) -> httpx.AsyncClient:
        """A client of one gateway; the caller closes it."""
        headers = {"Authorization": f"Bearer {self.token}"}
        url = self.rng.choice(self.urls)
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE_S, trust_env=False, verify=False)

    def websocket(self) -> connect:
        """A connection to one gateway."""
        return connect(
            self.rng.choice(self.urls).replace("http", "ws", 1) + "/ws",
            additional_headers={"Authorization": f"Bearer {self.token}"},
            subprotocols=["herald.v1"],  # type: ignore[list-item]
            compression=None,
            max_size=None,
            max_queue=None,
            open_timeout=5,
            close_timeout=1,
            ping_interval=PING_S,
            ping_timeout=2 * PING_S,
            proxy=None,
        )


async def forever(access: Access, work: Callable[[], Awaitable[None]]) -> None:
    """Do something again whenever a connection is lost."""
    while True:
        with contextlib.suppress(*LOST):
            await work()
        await access.pause()


def place(cursor: str) -> tuple[str, int]:
    """Epoch and offset of a cursor."""
    epoch, _, offset = cursor.partition(":")
    return epoch, int(offset)


# Publishers


class HttpPublisher:
    """Publishes batches at one RP by HTTP, one after the other, each until it is acknowledged."""

    def __init__(self, access: Access, name: str, rp: str, rate: float) -> None:
        self._access, self._name, self._rp, self._rate = access, name, rp, rate
        self._count = 0

    async def run(self) -> None:
        """Publish until the end of the run."""
        while not self._access.over.is_set():
            await self.publish(self._access.rng.choice((1, 1, 1, 3)))
            await asyncio.sleep(self._access.rng.expovariate(self._rate))

    async def publish(self, events: int) -> None:
        """Publish some events, again and again until they are acknowledged."""
        ids = [f"{self._name}-{self._count + number}" for number in range(events)]
        self._count += events
        while not await self._try(ids):
            await self._access.pause()

    async def _try(self, ids: list[str]) -> bool:
        history = self._access.history
        call = history.invoke(self._name, "publish", rp=self._rp, ids=ids)
        try:
            async with self._access.http() as http:
                content = json.dumps([event(one) for one in ids])
                answer = await http.post(f"/api/v1/rps/{self._rp}/events", content=content, headers=BATCH)
            found = answer.json()
        except (*LOST, ValueError) as error:
            history.add(self._name, "publish", "info", call=call, why=repr(error))
            return False
        if answer.status_code == 201:
            record_ack(history, self._name, self._rp, call, found)
            return True
        kind = "fail" if answer.status_code in (400, 401, 403, 404, 409, 410, 413) else "info"
        history.add(self._name, "publish", kind, call=call, why=f"{found.get('type')}: {found.get('detail')}")
        return kind == "fail"


class WebSocketPublisher:
    """Publishes at several RPs over one connection, without waiting for the answers before."""

    def __init__(self, access: Access, name: str, rps: list[str], rate: float) -> None:
        self._access, self._name, self._rps, self._rate = access, name, rps, rate
        self._count = 0
        self._again: deque[tuple[str, list[str]]] = deque()
        self._open: dict[int, tuple[str, list[str]]] = {}

    async def run(self) -> None:
        """Publish until the end of the run, and then until all is acknowledged."""
        while not self._access.over.is_set() or self._again:
            try:
                async with self._access.websocket() as ws, asyncio.TaskGroup() as both:
                    answers = both.create_task(self._answers(ws))
                    await self._publish(ws)
                    answers.cancel()
            except* LOST as lost:
                for call, what in self._open.items():
                    self._access.history.add(self._name, "publish", "info", call=call, why=repr(lost.exceptions[0]))
                    self._again.append(what)
                self._open.clear()
            await self._access.pause()

    async def _publish(self, ws: ClientConnection) -> None:
        access = self._access
        while not access.over.is_set() or self._again or self._open:
            if len(self._open) < OUTSTANDING_MAX and (self._again or not access.over.is_set()):
                await self._send(ws, *(self._again.popleft() if self._again else self._new()))
            await asyncio.sleep(access.rng.expovariate(self._rate))

    def _new(self) -> tuple[str, list[str]]:
        self._count += 1
        return self._access.rng.choice(self._rps), [f"{self._name}-{self._count}"]

    async def _send(self, ws: ClientConnection, rp: str, ids: list[str]) -> None:
        call = self._access.history.invoke(self._name, "publish", rp=rp, ids=ids)
        self._open[call] = rp, ids
        await ws.send(json.dumps({"op": "publish", "id": call, "rp": rp, "events": [event(one) for one in ids]}))

    async def _answers(self, ws: ClientConnection) -> None:
        while True:
            frame = json.loads(await ws.recv())
            what = self._open.pop(frame.get("id"), None)
            if what is None:
                continue
            call = frame["id"]
            if frame["op"] == "ok":
                record_ack(self._access.history, self._name, what[0], call, frame)
            else:
                why = f"{frame.get('type')}: {frame.get('detail')}"
                self._access.history.add(self._name, "publish", "info", call=call, why=why)
                self._again.append(what)


def event(name: str) -> dict[str, Any]:
    """A small event."""
    return {"specversion": "1.0", "id": name, "source": "/faults", "type": "t"}


def record_ack(history: History, name: str, rp: str, call: int, answer: dict[str, Any]) -> None:
    """Record the acknowledgement of a batch."""
    results = answer["results"]
    offsets, duplicates = [one["offset"] for one in results], [one["duplicate"] for one in results]
    history.add(name, "publish", call=call, epoch=answer["epoch"], offsets=offsets, duplicates=duplicates)
    history.acked[rp] += 1


# Readers


class Reader:
    """A reader's places, and records of what it is given.

    Attributes:
        places: epoch and offset by RP; none before the first answer.
        subscriptions: the durable subscription by RP, where it reads one.
    """

    def __init__(self, access: Access, name: str, rps: list[str], subscriptions: dict[str, str] | None = None) -> None:
        self.access, self.name, self.rps = access, name, rps
        self.places: dict[str, tuple[str, int]] = {}
        self.subscriptions = subscriptions or {}

    def at(self, rp: str) -> int:
        """The offset of the last event that it was given."""
        return self.places.get(rp, ("", 0))[1]

    def begin_at(self, rp: str) -> str | None:
        """What it states as the place to go on from; None for the durable subscription's own."""
        if rp in self.subscriptions:
            return None
        found = self.places.get(rp)
        return "earliest" if found is None else f"{found[0]}:{found[1]}"

    def began(self, rp: str, asked_at: float, epoch: str, offset: int, recovered: bool) -> None:
        """Record where it goes on."""
        begin = self.begin_at(rp)
        members: dict[str, Any] = {"subscription": self.subscriptions[rp]} if begin is None else {}
        begin = HELD if begin is None else None if begin == "earliest" else begin
        members |= {"rp": rp, "from": begin, "epoch": epoch, "offset": offset, "recovered": recovered}
        self._record("begin", asked_at=asked_at, **members)
        self.places[rp] = epoch, offset

    def gap(self, rp: str, found: dict[str, Any]) -> None:
        """Record a gap, and go on behind it."""
        rewound = {"rewound": found["rewound"]} if "rewound" in found else {}
        members = {"rp": rp, "epoch": found["epoch"], "from": found["from"], "to": found["to"], **rewound}
        self._record("gap", **members)
        self.places[rp] = found["epoch"], found["to"]

    def given(self, rp: str, epoch: str, offset: int, name: str) -> None:
        """Record an event."""
        self._record("event", rp=rp, epoch=epoch, offset=offset, id=name)
        self.places[rp] = epoch, offset

    def _record(self, op: str, **members: Any) -> None:
        self.access.history.add(self.name, op, **members)


class WebSocketReader(Reader):
    """Reads several RPs, or durable subscriptions, over one connection."""

    async def run(self) -> None:
        """Read until cancelled."""
        await forever(self.access, self._read)

    async def _read(self) -> None:
        asked: dict[int, tuple[str, float]] = {}
        acks: set[int] = set()
        async with self.access.websocket() as ws:
            for number, rp in enumerate(self.rps, 1):
                asked[number] = rp, self.access.history.now()
                what = (
                    {"subscription": self.subscriptions[rp]}
                    if rp in self.subscriptions
                    else {"rp": rp, "from": self.begin_at(rp)}
                )
                await ws.send(json.dumps({"op": "subscribe", "id": number, **what}))
            try:
                async for text in ws:
                    await self._take(ws, json.loads(text), asked, acks)
            finally:
                for call in acks:
                    self.access.history.add(self.name, "ack", "info", call=call, why="connection lost")

    async def _take(
        self, ws: ClientConnection, frame: dict[str, Any], asked: dict[int, tuple[str, float]], acks: set[int]
    ) -> None:
        op = frame["op"]
        if op == "event":
            self.given(frame["rp"], frame["epoch"], frame["offset"], frame["event"]["id"])
            await self._acknowledge(ws, frame["rp"], acks)
        elif op == "gap":
            self.gap(frame["rp"], frame)
        elif op == "continued":
            rp = frame["rp"]
            members = {name: frame[name] for name in ("epoch", "offset", "previous")}
            self._record("continued", rp=rp, **members)
            self.places[rp] = frame["epoch"], frame["offset"]
        elif op in ("ok", "error") and frame["id"] in acks:
            acks.discard(frame["id"])
            self._acknowledged(frame)
        elif op == "ok":
            rp, asked_at = asked.pop(frame["id"])
            self.began(rp, asked_at, frame["epoch"], frame["offset"], frame["recovered"])
        elif op == "error":
            raise ConnectionResetError(frame.get("detail"))
        elif op != "closing":
            raise AssertionError(frame)

    async def _acknowledge(self, ws: ClientConnection, rp: str, acks: set[int]) -> None:
        """Acknowledge every third event or so."""
        if rp not in self.subscriptions or self.access.rng.random() > 0.3:
            return
        epoch, offset = self.places[rp]
        subscription = self.subscriptions[rp]
        call = self.access.history.invoke(
            self.name, "ack", rp=rp, subscription=subscription, epoch=epoch, offset=offset
        )
        acks.add(call)
        await ws.send(
            json.dumps({"op": "ack", "id": call, "subscription": subscription, "cursor": f"{epoch}:{offset}"})
        )

    def _acknowledged(self, frame: dict[str, Any]) -> None:
        history, call = self.access.history, frame["id"]
        if frame["op"] == "ok":
            epoch, offset = place(frame["cursor"])
            history.add(self.name, "ack", call=call, epoch=epoch, offset=offset)
        else:
            history.add(self.name, "ack", "info", call=call, why=f"{frame.get('type')}: {frame.get('detail')}")


class PullReader(Reader):
    """Pulls one RP or durable subscription; of the latter it acknowledges each page."""

    async def run(self) -> None:
        """Read until cancelled."""
        await forever(self.access, self._read)

    async def _read(self) -> None:
        async with self.access.http() as http:
            for _ in range(self.access.rng.randint(1, 20)):  # then by another gateway
                await self.page(http, self.rps[0], wait_s=2)

    async def page(self, http: httpx.AsyncClient, rp: str, wait_s: int) -> int:
        """Read a page; return how many events it has."""
        asked_at, begin = self.access.history.now(), self.begin_at(rp)
        path = f"/api/v1/rps/{rp}/events" if begin else f"/api/v1/subscriptions/{self.subscriptions[rp]}/events"
        query: dict[str, str | int] = {"limit": PAGE_EVENTS, "wait_s": wait_s, **({"after": begin} if begin else {})}
        answer = await http.get(path, params=query)
        answer.raise_for_status()
        found = answer.json()
        events = found["events"]
        first = found["offset"] - len(events)
        gap = found.get("gap")
        self.began(rp, asked_at, found["epoch"], first, found["recovered"])
        if gap is not None:
            self.gap(rp, gap)
        for offset, one in enumerate(events, first + 1):
            self.given(rp, found["epoch"], offset, one["id"])
        if events and rp in self.subscriptions:
            await self._acknowledge(http, rp, found["cursor"])
        return len(events)

    async def _acknowledge(self, http: httpx.AsyncClient, rp: str, cursor: str) -> None:
        history, subscription = self.access.history, self.subscriptions[rp]
        epoch, offset = place(cursor)
        call = history.invoke(self.name, "ack", rp=rp, subscription=subscription, epoch=epoch, offset=offset)
        try:
            answer = await http.post(f"/api/v1/subscriptions/{subscription}/ack", json={"cursor": cursor})
            answer.raise_for_status()
        except LOST as error:
            history.add(self.name, "ack", "info", call=call, why=repr(error))
            raise
        epoch, offset = place(answer.json()["cursor"])
        history.add(self.name, "ack", call=call, epoch=epoch, offset=offset)


async def read_log(access: Access, rps: list[str]) -> dict[str, int]:
    """Read every log from its beginning to its end, and record that; return the ends."""
    ends = {}
    for rp in rps:
        while True:
            reader = PullReader(access, LOG, [rp])
            try:
                async with access.http() as http:
                    pages = [await _whole(reader, http, rp)]
            except LOST:
                await access.pause()
                continue
            ends[rp] = pages[0]
            access.history.add(LOG, "end", rp=rp, epoch=reader.places[rp][0], offset=ends[rp])
            break
    return ends


async def _whole(reader: PullReader, http: httpx.AsyncClient, rp: str) -> int:
    while await reader.page(http, rp, wait_s=0):
        pass
    return reader.at(rp)
