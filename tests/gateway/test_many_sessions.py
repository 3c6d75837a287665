"""Many sessions that subscribe while publishers run: none misses an event, none gets one twice.

TEST_SESSIONS=10000 makes them ten thousand in `make test-long` (the file limit must allow two files each).
"""

from __future__ import annotations

import asyncio
import os
import random
import resource
from collections.abc import Callable

import httpx
import pytest

from demo.harness.servers import eventually
from tests.gateway.client import Client
from tests.gateway.raw import client_frame
from tests.gateway.server import PLAIN, LiveGateway, event

pytestmark = pytest.mark.processes

MANY = int(os.environ.get("TEST_SESSIONS", "3000"))
OPENING_AT_ONCE = 200
PLACES = ("now", "earliest", "last")


class Session(asyncio.Protocol):
    """A reader as light as can be: one subscribe, then it checks that offsets follow each other."""

    def __init__(self, head: bytes, subscribe: bytes) -> None:
        self._head = head
        self._subscribe = subscribe
        self._come = b""
        self._upgraded = False
        self.transport: asyncio.Transport
        self.began: int | None = None  # the offset of the subscribe's ok
        self.offset = 0
        self.wrong: str | None = None
        self.changed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._head)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail("the connection was lost")

    def _fail(self, why: str) -> None:
        self.wrong = self.wrong or why
        self.changed.set()

    def data_received(self, data: bytes) -> None:
        data = self._come + data if self._come else data
        at = 0
        if not self._upgraded:
            at = data.find(b"\r\n\r\n") + 4
            if at < 4:
                self._come = data
                return
            if not data.startswith(b"HTTP/1.1 101"):
                self._fail(data[:300].decode("latin-1"))
                return
            self._upgraded = True
            self.transport.write(self._subscribe)
        end = len(data)
        while end - at >= 4:
            size, begin = data[at + 1], at + 2
            if size == 126:
                size, begin = int.from_bytes(data[begin : begin + 2], "big"), begin + 2
            if end - begin < size:
                break
            if data[at] == 0x81:
                self._take(data, begin, begin + size)
            at = begin + size
        self._come = data[at:]

    def _take(self, data: bytes, begin: int, end: int) -> None:
        mark = data.find(b'"offset":', begin, end) + 9
        offset = int(data[mark : data.find(b",", mark, end)]) if mark >= 9 else -1
        if data.startswith(b'{"op":"event"', begin):
            if offset != self.offset + 1:
                self._fail(f"offset {offset} after {self.offset}")
            self.offset = offset
        elif data.startswith(b'{"op":"ok"', begin) and b'"recovered":true' in data[begin:end]:
            self.began = self.offset = offset
        else:
            self._fail(data[begin:end][:300].decode("latin-1"))
        self.changed.set()

    async def until(self, offset: int) -> None:
        """Return when the event at `offset` has come; what went wrong is an assertion."""
        while self.began is None or self.offset < offset:
            assert self.wrong is None, self.wrong
            self.changed.clear()
            await self.changed.wait()
        assert self.wrong is None, self.wrong


def room_for_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        if hard < count:
            pytest.skip(f"the file limit {hard} is below {count}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


async def open_sessions(live_gateway: LiveGateway, rp: str, count: int, places: tuple[str, ...]) -> list[Session]:
    """Open `count` sessions, some at a time; each has subscribed when this returns."""
    head = (
        f"GET /ws?access_token={live_gateway.token()} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ).encode()
    subscribes = [
        client_frame(b'{"op":"subscribe","id":1,"rp":"%s","from":"%s"}' % (rp.encode(), place.encode()))
        for place in places
    ]
    loop = asyncio.get_running_loop()
    gate = asyncio.Semaphore(OPENING_AT_ONCE)

    async def one(number: int) -> Session:
        async with gate:
            frame = subscribes[number % len(subscribes)]
            _, session = await loop.create_connection(lambda: Session(head, frame), "127.0.0.1", live_gateway.port())
            await session.until(0)
            return session

    return await asyncio.gather(*(one(number) for number in range(count)))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [600, pytest.param(MANY, marks=pytest.mark.long, id="many")])
async def test_sessions_that_subscribe_while_publishers_run_get_every_event_once(
    new_live_gateway: Callable[..., LiveGateway], count: int
) -> None:
    room_for_files(count + 500)
    live_gateway = new_live_gateway()
    rp = live_gateway.create_rp(history={"max_events": 100_000, "max_bytes": 64 << 20})
    live_gateway.publish(rp, 50, prefix="before")
    stopping = asyncio.Event()
    published = 0

    async def publish(name: str) -> None:
        nonlocal published
        rng = random.Random(name)
        async with Client(live_gateway) as client:
            while not stopping.is_set():
                events = [event(f"{name}-{published}-{part}") for part in range(rng.choice([1, 1, 3]))]
                answer = await client.ok("publish", rp=rp, events=events)
                published = max(published, answer["offset"])
                await asyncio.sleep(rng.uniform(0.0, 0.06))  # the pace

    publishers = [asyncio.create_task(publish(name)) for name in ("a", "b")]
    sessions = await asyncio.wait_for(open_sessions(live_gateway, rp, count, PLACES), 60 + count / 10)
    await asyncio.sleep(0.5)  # of events that all of them read live
    stopping.set()
    await asyncio.gather(*publishers)
    await asyncio.wait_for(asyncio.gather(*(session.until(published) for session in sessions)), 180)
    begun = {session.began for session in sessions}
    assert len(begun) > 10, "they were to begin at different places"
    assert all(session.offset == published for session in sessions)
    for session in sessions:
        session.transport.abort()


async def test_a_gateway_takes_as_many_sessions_as_it_may_and_says_so_to_the_rest(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway(sessions_max=20)
    rp = live_gateway.create_rp()
    sessions = await open_sessions(live_gateway, rp, 20, ("now",))
    async with live_gateway.ahttp() as http:
        answer = await http.get(f"/api/v1/rps/{rp}/stream")
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:herald:problem:unavailable")
        assert answer.headers["retry-after"] == "5"
        assert (await http.get(f"/api/v1/rps/{rp}/events")).status_code == 200, "a pull is no session"
        for session in sessions[:5]:
            session.transport.abort()

        async def room() -> bool:
            async with http.stream("GET", f"/api/v1/rps/{rp}/stream") as stream:
                return stream.status_code == 200

        await eventually(room)
    for session in sessions[5:]:
        session.transport.abort()


@pytest.mark.long
async def test_sessions_that_come_and_go_leave_nothing_behind(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway(records=False)  # whose own memory is another test's
    rp = live_gateway.create_rp()
    gateway = live_gateway.gateway_process()
    for turn in range(6):
        for session in await open_sessions(live_gateway, rp, 300, PLACES):
            session.transport.abort()
        if turn == 1:
            files, memory = gateway.num_fds(), gateway.memory_info().rss

    async def all_gone() -> bool:
        return gateway.num_fds() <= files

    await eventually(all_gone)
    assert gateway.memory_info().rss - memory < 8 * 1024 * 1024
    async with httpx.AsyncClient(**PLAIN) as http:
        assert (await http.get(live_gateway.url() + "/livez")).status_code == 200
