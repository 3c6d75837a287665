"""Leases of background work in a real Redis: one holder at a time, and a stalled one can neither prolong nor end another's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import redis
import redis.asyncio

from demo.harness.servers import wait_for
from eventing.operations.alarms.watcher import Watcher
from eventing.store import keys
from eventing.store.lease import LeaderLease
from eventing.store.presence import GatewayPresence

LONG_MS = 60_000


@pytest.fixture(autouse=True)
def no_leases(redis_client: redis.Redis) -> Iterator[None]:
    yield
    for key in (keys.SAMPLING_TURN_KEY, keys.WATCHING_TURN_KEY, keys.GATEWAYS_KEY):
        redis_client.delete(key)


def taken_over(redis_client: redis.Redis, key: str) -> None:
    """The lease has expired while its holder stalled, and another holds it now."""
    redis_client.set(key, "another", px=LONG_MS)


def untouched(redis_client: redis.Redis, key: str) -> bool:
    """Whether the other's lease is as it was taken."""
    return redis_client.get(key) == b"another" and LONG_MS - 30_000 < redis_client.pttl(key) <= LONG_MS


async def test_a_sampler_that_stalled_and_leaves_does_not_end_the_lease_of_its_successor(
    redis_client: redis.Redis, aclient: redis.asyncio.Redis
) -> None:
    presence = GatewayPresence("a", aclient)
    assert (await presence.renew(time.time(), ())).leads
    taken_over(redis_client, keys.SAMPLING_TURN_KEY)
    await presence.leave()
    assert untouched(redis_client, keys.SAMPLING_TURN_KEY)


async def test_a_watcher_that_stalled_and_closes_does_not_end_the_lease_of_its_successor(
    redis_client: redis.Redis, aclient: redis.asyncio.Redis
) -> None:
    watcher = Watcher(SimpleNamespace(id="a", redis=aclient, clock=time.time))
    assert await watcher._is_leader()
    watcher.start()
    taken_over(redis_client, keys.WATCHING_TURN_KEY)
    assert not await watcher._is_leader()
    await watcher.close()
    assert untouched(redis_client, keys.WATCHING_TURN_KEY)


async def test_an_owner_that_stalled_can_neither_renew_nor_end_the_lease_of_its_successor(
    redis_client: redis.Redis, aclient: redis.asyncio.Redis
) -> None:
    key = "herald:test-lease"
    stalled, successor = LeaderLease(key, "stalled", LONG_MS // 2), LeaderLease(key, "another", LONG_MS)
    assert await stalled.acquire(aclient)
    assert not successor.acquire(redis_client)
    redis_client.pexpire(key, 1)  # it stalls for as long as that
    wait_for(lambda: not redis_client.exists(key), about="the lease has expired")
    assert not stalled.renew(redis_client), "an expired lease is not held by anybody"
    assert successor.acquire(redis_client)
    for step in (stalled.acquire, stalled.renew, stalled.release):
        assert not step(redis_client)
        assert not await step(aclient)
        assert untouched(redis_client, key)
    assert successor.renew(redis_client)
    assert successor.release(redis_client)
    assert stalled.acquire(redis_client), "a lease that was ended is there for all"
    assert redis_client.pttl(key) <= LONG_MS // 2


def test_an_owner_prolongs_its_lease_by_acquiring_it_again(redis_client: redis.Redis) -> None:
    key = "herald:test-lease-again"
    assert LeaderLease(key, "another", 5_000).acquire(redis_client)
    assert LeaderLease(key, "another", LONG_MS).acquire(redis_client)
    assert untouched(redis_client, key)
