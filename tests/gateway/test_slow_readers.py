"""Readers that stall: the gateway's memory stays within what a session may hold, others are served as if nothing were, and
the stalled one goes on with everything, or is told what it has lost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from demo.harness.servers import eventually
from eventing.gateway.delivery.channel import WRITE_BYTES_MAX
from eventing.log.reader import READ_BYTES_MAX
from tests.gateway.client import Client
from tests.gateway.raw import TEXT, Raw, client_frame
from tests.gateway.server import LiveGateway, event

pytestmark = pytest.mark.processes

SESSION_BUFFER = 256 * 1024
STALLED = 10  # sessions
DATA_BYTES = 100_000
EVENTS = 600  # 60 MB, for each session
SLACK = 24 * 1024 * 1024  # one request in flight, the allocator, the reads of those who keep up
# What a stalled session may hold: its bound, the write that reached it, one run of the log on its way to it.
BOUND = STALLED * (SESSION_BUFFER + WRITE_BYTES_MAX + 2 * (READ_BYTES_MAX + DATA_BYTES)) + SLACK


def offsets_of(raw: Raw, last: int) -> Iterator[int | tuple[int, int]]:
    """The offsets of events, and gaps as pairs, up to offset `last`."""
    at = 0
    while at < last:
        opcode, payload = raw.frame()
        if opcode != TEXT:
            continue
        if payload.startswith(b'{"op":"event"'):
            found = re.search(rb'"offset":(\d+)', payload)
            assert found is not None
            at = int(found[1])
            yield at
        else:
            frame = json.loads(payload)
            assert frame["op"] == "gap", frame
            at = frame["to"]
            yield (frame["from"], frame["to"])


def stalled_session(live_gateway: LiveGateway, rp: str) -> Raw:
    """A session that has subscribed and reads no more."""
    raw = Raw(live_gateway, receive_buffer=16 * 1024).open()
    assert raw.ask({"op": "subscribe", "id": 1, "rp": rp, "from": "earliest"})["recovered"]
    return raw


def publish_much(live_gateway: LiveGateway, rp: str, begin: int, count: int) -> None:
    for at in range(begin, begin + count, 30):
        live_gateway.publish(rp, 30, data="x" * DATA_BYTES, begin=at)


async def test_stalled_readers_cost_what_they_may_and_lose_nothing_that_is_held(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway(session_buffer_bytes=SESSION_BUFFER, heartbeat_s=600, records=False)
    rp = live_gateway.create_rp(history={"max_events": 10_000, "max_bytes": 200 << 20})
    gateway = live_gateway.gateway_process()
    with ExitStack() as stack:
        async with Client(live_gateway) as live:
            await live.ok("subscribe", rp=rp)
            await asyncio.to_thread(publish_much, live_gateway, rp, 1, 60)
            await live.events(60)
            stalled = [stack.enter_context(stalled_session(live_gateway, rp)) for _ in range(STALLED)]
            before = gateway.memory_info().rss
            most = 0
            for begin in range(61, EVENTS + 1, 60):
                await asyncio.to_thread(publish_much, live_gateway, rp, begin, 60)
                await live.events(60)
                most = max(most, gateway.memory_info().rss)
        grown = most - before
        assert grown < BOUND, f"{grown / 1e6:.0f} MB, more than {BOUND / 1e6:.0f}"
        for raw in (stalled[0], stalled[-1]):
            offsets = await asyncio.to_thread(lambda raw=raw: list(offsets_of(raw, EVENTS)))  # type: ignore[misc]
            assert offsets == list(range(1, EVENTS + 1))
        live_gateway.publish(rp, 1, prefix="after")
        assert await asyncio.to_thread(lambda: list(offsets_of(stalled[0], EVENTS + 1))) == [EVENTS + 1]


async def test_a_stalled_reader_is_told_the_gap_that_its_stalling_has_cost(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway(session_buffer_bytes=32 * 1024, heartbeat_s=600)
    rp = live_gateway.create_rp(history={"max_events": 20, "max_bytes": 50 << 20})
    with stalled_session(live_gateway, rp) as raw:
        await asyncio.to_thread(publish_much, live_gateway, rp, 1, 300)
        found = await asyncio.to_thread(lambda: list(offsets_of(raw, 300)))
        gaps = [one for one in found if isinstance(one, tuple)]
        assert gaps, "300 events of 100 kB cannot have been kept for it"
        at = 0
        for one in found:
            begin, end = one if isinstance(one, tuple) else (one, one)
            assert begin == at + 1, f"{begin} after {at}: neither sent nor told"
            at = end
        assert found[-20:] == list(range(281, 301)), "what the log holds is sent"


async def test_a_stalled_stream_goes_on_where_it_stood(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway(session_buffer_bytes=64 * 1024, heartbeat_s=600, records=False)
    rp = live_gateway.create_rp(history={"max_events": 10_000, "max_bytes": 200 << 20})
    with Raw(live_gateway, receive_buffer=16 * 1024) as raw:
        raw.send(raw.head("GET", f"/api/v1/rps/{rp}/stream"))
        assert raw.take_head().startswith(b"HTTP/1.1 200")
        before = live_gateway.gateway_process().memory_info().rss
        await asyncio.to_thread(publish_much, live_gateway, rp, 1, 300)
        grown = live_gateway.gateway_process().memory_info().rss - before
        assert grown < SLACK + 4 * READ_BYTES_MAX, f"{grown / 1e6:.0f} MB"

        def ids() -> Iterator[int]:
            come = b""
            at = 0
            while at < 300:
                come += raw.socket.recv(1 << 20)
                *lines, come = come.split(b"\n")
                for line in lines:
                    if line.startswith(b"id: "):
                        at = int(line.rpartition(b":")[2])
                        yield at

        assert await asyncio.to_thread(lambda: list(ids())) == list(range(1, 301))


async def test_a_stalled_publisher_is_not_read_on_and_its_answers_are_bounded(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    """Whoever sends operations and never reads the answers is slowed, not buffered for."""
    live_gateway = new_live_gateway(session_buffer_bytes=64 * 1024, heartbeat_s=600, records=False)
    before = live_gateway.gateway_process().memory_info().rss
    ping = client_frame(json.dumps({"op": "ping", "id": "x" * 1000}).encode()) * 50
    with Raw(live_gateway, receive_buffer=16 * 1024) as raw:
        raw.open()
        raw.socket.settimeout(1)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 200_000_000:
                sent += raw.socket.send(ping)
        grown = live_gateway.gateway_process().memory_info().rss - before
        assert sent < 60_000_000, "the gateway took more than it could answer"
        assert grown < SLACK, f"{grown / 1e6:.0f} MB after {sent / 1e6:.0f} MB of operations"
    async with Client(live_gateway) as other:
        await other.ok("ping")


async def test_large_operations_that_wait_are_read_no_further_than_their_bytes_allow(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    """Behind an operation that takes time, other operations wait; as many as fit in a bound, however large each is."""
    live_gateway = new_live_gateway(heartbeat_s=600, records=False)
    rps = [live_gateway.create_rp() for _ in range(2)]
    before = live_gateway.gateway_process().memory_info().rss
    large = {"op": "publish", "id": 2, "rp": rps[1], "event": event("large", "x" * 200_000)}
    with Raw(live_gateway) as raw, ExitStack() as stack:
        raw.open()
        live_gateway.pause_redis(True)
        stack.callback(live_gateway.pause_redis, False)
        raw.send(client_frame(json.dumps({"op": "subscribe", "id": 1, "rp": rps[0]}).encode()))
        raw.socket.settimeout(1)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 200_000_000:
                sent += raw.socket.send(client_frame(json.dumps(large).encode()))
        grown = live_gateway.gateway_process().memory_info().rss - before
    assert sent < 60_000_000, "the gateway took what it could not do"
    assert grown < SLACK, f"{grown / 1e6:.0f} MB after {sent / 1e6:.0f} MB of operations"


@pytest.mark.long
async def test_a_stalled_reader_whose_token_ends_is_let_go(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway(session_buffer_bytes=32 * 1024, heartbeat_s=600)
    rp = live_gateway.create_rp(history={"max_events": 1000, "max_bytes": 100 << 20})
    with Raw(live_gateway, receive_buffer=16 * 1024) as raw, Raw(live_gateway, receive_buffer=16 * 1024) as stream:
        token = live_gateway.token(lease_s=12)  # longer than a machine stands still
        raw.send(raw.upgrade(f"/ws?access_token={token}").replace(b"Authorization", b"X-Other"))
        assert raw.take_head().startswith(b"HTTP/1.1 101")
        raw.ask({"op": "subscribe", "id": 1, "rp": rp})
        stream.send(stream.head("GET", f"/api/v1/rps/{rp}/stream", token=token))
        assert stream.take_head().startswith(b"HTTP/1.1 200")
        await asyncio.to_thread(publish_much, live_gateway, rp, 1, 120)
        connections = live_gateway.gateway_process().net_connections

        async def both_closed() -> bool:
            peers = {raw.socket.getsockname(), stream.socket.getsockname()}
            return not any(tuple(one.raddr) in peers and one.status == "ESTABLISHED" for one in connections("tcp"))

        await eventually(both_closed, every_s=0.2)
