"""SIGKILL of gateway and Redis at random moments under load: every acknowledged event reaches a reader that resumes, none
twice, and sessions whose gateway lives stay open and catch up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import pytest

from demo.harness.servers import eventually
from eventing.store import keys
from tests.gateway.client import Client, ResumingReader
from tests.gateway.publisher import HttpPublisher, Publisher, SocketPublisher
from tests.gateway.server import LiveGateway, event

WIDE = {"max_events": 1_000_000, "max_bytes": 1 << 28}


@asynccontextmanager
async def load(
    live_gateway: LiveGateway, *, readers: int = 3
) -> AsyncIterator[tuple[Sequence[Publisher], Sequence[ResumingReader]]]:
    """Three publishers and some readers of one RP; at the end each reader must have all that was acknowledged, once."""
    rp = live_gateway.create_rp(history=WIDE)
    publishers = [
        HttpPublisher(live_gateway, rp, "http-1"),
        HttpPublisher(live_gateway, rp, "http-2", pause_s=0.003),
        SocketPublisher(live_gateway, rp, "socket", pause_s=0.001),
    ]
    async with AsyncExitStack() as stack:
        following = [await stack.enter_async_context(ResumingReader(live_gateway, rp)) for _ in range(readers)]
        async with AsyncExitStack() as publishing:
            for publisher in publishers:
                await publishing.enter_async_context(publisher)
            yield publishers, following
            await publishing_goes_on(publishers, 21)
        acknowledged = set.union(*(publisher.acknowledged for publisher in publishers))
        for reader in following:
            await reader.wait_until_has(acknowledged)


async def publishing_goes_on(publishers: Sequence[Publisher], more: int = 4) -> None:
    """Return when each publisher has been answered for some more."""
    before = [len(publisher.acknowledged) for publisher in publishers]

    async def enough() -> bool:
        return all(len(one.acknowledged) >= count + more for one, count in zip(publishers, before, strict=True))

    await eventually(enough, 60, about="publishing goes on")


async def connected(readers: Sequence[ResumingReader], connections: int) -> bool:
    """Whether each reader has made as many connections."""
    return all(reader.connections >= connections for reader in readers)


@pytest.mark.processes
@pytest.mark.parametrize("seed", [1])
async def test_killing_the_gateway_loses_nothing_that_was_acknowledged(
    new_live_gateway: Callable[..., LiveGateway], seed: int
) -> None:
    live_gateway = new_live_gateway()
    rng = random.Random(seed)
    async with load(live_gateway) as (publishers, readers):
        for connections in (2, 3):
            await asyncio.sleep(rng.uniform(0.1, 0.6))  # the kill comes at any moment of the load
            live_gateway.kill_gateway()
            await asyncio.sleep(rng.uniform(0.0, 0.3))  # and so long nobody serves
            live_gateway.spawn_gateway()
            await publishing_goes_on(publishers)
            await eventually(partial(connected, readers, connections), about="each reader is back")


@pytest.mark.processes
@pytest.mark.parametrize("seed", [2])
async def test_killing_redis_loses_nothing_and_sessions_stay_open(
    new_live_gateway: Callable[..., LiveGateway], seed: int
) -> None:
    live_gateway = new_live_gateway()
    rng = random.Random(seed)
    async with load(live_gateway) as (publishers, readers):
        for _ in range(3):
            await asyncio.sleep(rng.uniform(0.1, 0.5))  # as above
            await asyncio.to_thread(live_gateway.kill_redis)
            await asyncio.sleep(rng.uniform(0.0, 0.5))  # as above
            await asyncio.to_thread(live_gateway.start_redis)
            await publishing_goes_on(publishers)
    assert all(reader.connections == 1 for reader in readers)


@pytest.mark.long
@pytest.mark.processes
async def test_killing_both_at_once_loses_nothing(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway()
    async with load(live_gateway) as (publishers, _):
        for first in ("redis", "gateway"):
            await asyncio.sleep(0.3)
            if first == "redis":
                live_gateway.kill_redis()
                live_gateway.kill_gateway()
            else:
                live_gateway.kill_gateway()
                live_gateway.kill_redis()
            live_gateway.spawn_gateway()
            await asyncio.sleep(0.3)
            await asyncio.to_thread(live_gateway.start_redis)
            await publishing_goes_on(publishers)


@pytest.mark.processes
async def test_while_redis_is_away_everything_says_so_and_nothing_breaks(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway()
    rp = live_gateway.create_rp()
    other = live_gateway.create_rp()
    async with Client(live_gateway) as client, live_gateway.ahttp() as http:
        await client.ok("subscribe", rp=rp)
        live_gateway.publish(rp, 1)
        await client.events(1)
        live_gateway.kill_redis()
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
        await asyncio.to_thread(live_gateway.start_redis)
        assert (await asyncio.wait_for(waiting, 60))["offset"] == 2
        assert (await asyncio.wait_for(subscribing, 60))["op"] == "ok"
        assert [frame["event"]["id"] for frame in await client.events(1)] == ["waiting"]


@pytest.mark.processes
async def test_a_policy_narrowed_while_a_subscription_waited_for_redis_is_in_force(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway()
    rp = live_gateway.create_rp()
    async with Client(live_gateway) as client:
        await client.ok("publish", rp=rp, event=event("a"))  # so that the gateway knows the policy of before
        live_gateway.kill_redis()
        subscribing = await client.send("subscribe", rp=rp)
        await asyncio.to_thread(live_gateway.admin.patch, f"/api/v1/rps/{rp}", json={"policy": []})
        assert not subscribing.done()
        await asyncio.to_thread(live_gateway.start_redis)
        answer = await asyncio.wait_for(subscribing, 60)
        if answer["op"] == "ok":
            answer = await client.frame()
        assert answer["type"] == "urn:herald:problem:forbidden"


@pytest.mark.processes
async def test_a_data_plane_that_came_back_empty_is_another_epoch_for_everyone(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway()
    rp = live_gateway.create_rp()
    live_gateway.publish(rp, 3)
    async with Client(live_gateway) as live, Client(live_gateway) as idle:
        for client in (live, idle):
            await client.ok("subscribe", rp=rp, begin="earliest")
            cursor = (await client.events(3))[-1]["cursor"]
        with live_gateway.redis as client_of_redis:
            client_of_redis.flushall()
        live_gateway.publish(rp, 2, prefix="new")
        for client in (live, idle):
            gap = await client.frame()
            assert (gap["op"], gap["from"], gap["to"]) == ("gap", 1, 0)
            assert [frame["event"]["id"] for frame in await client.events(2)] == ["new-1", "new-2"]
        await live.ok("unsubscribe", rp=rp)
        answer = await live.ok("subscribe", rp=rp, begin=cursor)
        assert answer["recovered"] is False
    with live_gateway.redis as client_of_redis:
        assert client_of_redis.exists(keys.meta_key(rp))
