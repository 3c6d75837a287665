"""SIGKILL of gateway and Redis at random moments under load: every acknowledged event reaches a reader that resumes, none
twice, and sessions whose gateway lives stay open and catch up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from eventing.store import keys
from tests.edge.client import Client, ResumingReader
from tests.edge.publisher import HttpPublisher, Publisher, SocketPublisher
from tests.edge.server import Edge, event
from tests.servers import eventually

WIDE = {"max_events": 1_000_000, "max_bytes": 1 << 28}


@asynccontextmanager
async def load(edge: Edge, *, readers: int = 3) -> AsyncIterator[tuple[Sequence[Publisher], Sequence[ResumingReader]]]:
    """Three publishers and some readers of one RP; at the end each reader must have all that was acknowledged, once."""
    rp = edge.create_rp(history=WIDE)
    publishers = [
        HttpPublisher(edge, rp, "http-1"),
        HttpPublisher(edge, rp, "http-2", pause_s=0.003),
        SocketPublisher(edge, rp, "socket", pause_s=0.001),
    ]
    async with AsyncExitStack() as stack:
        following = [await stack.enter_async_context(ResumingReader(edge, rp)) for _ in range(readers)]
        async with AsyncExitStack() as publishing:
            for publisher in publishers:
                await publishing.enter_async_context(publisher)
            yield publishers, following
        acknowledged = set.union(*(publisher.acknowledged for publisher in publishers))
        assert all(len(publisher.acknowledged) > 20 for publisher in publishers), "nothing was published"
        for reader in following:
            await reader.wait_until_has(acknowledged)


async def publishing_goes_on(publishers: Sequence[Publisher]) -> None:
    """Return when each publisher has been answered for some more."""
    before = [len(publisher.acknowledged) for publisher in publishers]

    async def more() -> bool:
        return all(len(one.acknowledged) > count + 3 for one, count in zip(publishers, before, strict=True))

    await eventually(more, 30, about="publishing goes on")


@pytest.mark.processes
@pytest.mark.parametrize("seed", [1])
async def test_killing_the_gateway_loses_nothing_that_was_acknowledged(
    new_edge: Callable[..., Edge], seed: int
) -> None:
    edge = new_edge()
    rng = random.Random(seed)
    async with load(edge) as (publishers, readers):
        for _ in range(2):
            await asyncio.sleep(rng.uniform(0.1, 0.6))
            edge.kill_gateway()
            await asyncio.sleep(rng.uniform(0.0, 0.3))
            edge.spawn_gateway()
            await publishing_goes_on(publishers)
    assert all(reader.connections >= 3 for reader in readers)


@pytest.mark.processes
@pytest.mark.parametrize("seed", [2])
async def test_killing_redis_loses_nothing_and_sessions_stay_open(new_edge: Callable[..., Edge], seed: int) -> None:
    edge = new_edge()
    rng = random.Random(seed)
    async with load(edge) as (publishers, readers):
        for _ in range(3):
            await asyncio.sleep(rng.uniform(0.1, 0.5))
            await asyncio.to_thread(edge.kill_redis)
            await asyncio.sleep(rng.uniform(0.0, 0.5))
            await asyncio.to_thread(edge.start_redis)
            await publishing_goes_on(publishers)
    assert all(reader.connections == 1 for reader in readers)


@pytest.mark.processes
async def test_killing_both_at_once_loses_nothing(new_edge: Callable[..., Edge]) -> None:
    edge = new_edge()
    async with load(edge) as (publishers, _):
        for first in ("redis", "gateway"):
            await asyncio.sleep(0.3)
            if first == "redis":
                edge.kill_redis()
                edge.kill_gateway()
            else:
                edge.kill_gateway()
                edge.kill_redis()
            edge.spawn_gateway()
            await asyncio.sleep(0.3)
            await asyncio.to_thread(edge.start_redis)
            await publishing_goes_on(publishers)


@pytest.mark.processes
async def test_while_redis_is_away_everything_says_so_and_nothing_breaks(new_edge: Callable[..., Edge]) -> None:
    edge = new_edge()
    rp = edge.create_rp()
    other = edge.create_rp()
    async with Client(edge) as client, edge.ahttp() as http:
        await client.ok("subscribe", rp=rp)
        edge.publish(rp, 1)
        await client.events(1)
        edge.kill_redis()
        waiting = await client.send("publish", rp=rp, event=event("waiting"))
        pulled = await http.get(f"/api/v1/rps/{rp}/events")
        assert (pulled.status_code, pulled.json()["type"]) == (503, "urn:herald:problem:unavailable")
        assert pulled.headers["retry-after"]
        subscribing = await client.send("subscribe", rp=other)
        assert (await http.get("/livez")).status_code == 200
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["checks"]["redis"]) == (503, "does not answer")
        created = await http.post("/api/v1/rps", json={})
        assert created.status_code == 503
        assert not subscribing.done()
        await asyncio.to_thread(edge.start_redis)
        assert (await asyncio.wait_for(waiting, 15))["offset"] == 2
        assert (await asyncio.wait_for(subscribing, 15))["op"] == "ok"
        assert [frame["event"]["id"] for frame in await client.events(1)] == ["waiting"]


@pytest.mark.processes
async def test_a_policy_narrowed_while_a_subscription_waited_for_redis_is_in_force(
    new_edge: Callable[..., Edge],
) -> None:
    edge = new_edge()
    rp = edge.create_rp()
    async with Client(edge) as client:
        await client.ok("publish", rp=rp, event=event("a"))  # so that the gateway knows the policy of before
        edge.kill_redis()
        subscribing = await client.send("subscribe", rp=rp)
        await asyncio.to_thread(edge.admin.patch, f"/api/v1/rps/{rp}", json={"policy": []})
        assert not subscribing.done()
        await asyncio.to_thread(edge.start_redis)
        answer = await asyncio.wait_for(subscribing, 15)
        if answer["op"] == "ok":
            answer = await client.frame()
        assert answer["type"] == "urn:herald:problem:forbidden"


@pytest.mark.processes
async def test_a_data_plane_that_came_back_empty_is_another_epoch_for_everyone(new_edge: Callable[..., Edge]) -> None:
    edge = new_edge()
    rp = edge.create_rp()
    edge.publish(rp, 3)
    async with Client(edge) as live, Client(edge) as idle:
        for client in (live, idle):
            await client.ok("subscribe", rp=rp, begin="earliest")
            cursor = (await client.events(3))[-1]["cursor"]
        with edge.redis as client_of_redis:
            client_of_redis.flushall()
        edge.publish(rp, 2, prefix="new")
        for client in (live, idle):
            gap = await client.frame()
            assert (gap["op"], gap["from"], gap["to"]) == ("gap", 1, 0)
            assert [frame["event"]["id"] for frame in await client.events(2)] == ["new-1", "new-2"]
        await live.ok("unsubscribe", rp=rp)
        answer = await live.ok("subscribe", rp=rp, begin=cursor)
        assert answer["recovered"] is False
    with edge.redis as client_of_redis:
        assert client_of_redis.exists(keys.meta_key(rp))
