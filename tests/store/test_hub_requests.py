"""Requests to the WebSub hub in a real Redis: bounded in all, for each source and for each target, and replaced in place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
import redis.asyncio

from eventing.store.hub_requests import (
    SOURCE_MAX,
    TARGET_MAX,
    UNSETTLED_MAX,
    hub_request_add,
    hub_request_settle,
    hub_requests_page,
)
from eventing.store.keys import HUB_REQUESTS_KEY


@pytest.fixture(autouse=True)
def no_requests(redis_client: redis.Redis) -> Iterator[None]:
    yield
    for key in redis_client.scan_iter("herald:{hub}:*"):
        redis_client.delete(key)


async def test_a_source_and_a_target_have_so_many_requests_a_minute(
    redis_client: redis.Redis, aclient: redis.asyncio.Redis
) -> None:
    for number in range(SOURCE_MAX):
        assert await hub_request_add(aclient, f"a{number}", b"r", source="one", target="t") == "stored"
    assert await hub_request_add(aclient, "more", b"r", source="one", target="other") == "source"
    for number in range(TARGET_MAX - SOURCE_MAX):
        assert await hub_request_add(aclient, f"b{number}", b"r", source=f"s{number}", target="t") == "stored"
    assert await hub_request_add(aclient, "more", b"r", source="two", target="t") == "target"
    assert await hub_request_add(aclient, "more", b"r", source="two", target="other") == "stored"
    assert 0 < redis_client.ttl("herald:{hub}:from:one") <= 60


async def test_a_million_requests_take_the_room_of_ten_thousand_and_a_repeated_one_takes_none(
    redis_client: redis.Redis, aclient: redis.asyncio.Redis
) -> None:
    redis_client.hset(HUB_REQUESTS_KEY, mapping={f"a{number}": "r" for number in range(UNSETTLED_MAX)})
    assert await hub_request_add(aclient, "more", b"r", source="one", target="t") == "all"
    assert await hub_request_add(aclient, "a7", b"newer", source="one", target="t") == "stored"
    assert redis_client.hlen(HUB_REQUESTS_KEY) == UNSETTLED_MAX


async def test_a_request_that_was_replaced_is_not_removed_by_the_end_of_the_one_before(
    aclient: redis.asyncio.Redis,
) -> None:
    await hub_request_add(aclient, "a", b"first", source="one", target="t")
    await hub_request_add(aclient, "a", b"second", source="one", target="t")
    await hub_request_settle(aclient, b"a", b"first")
    assert await hub_requests_page(aclient, 0) == (0, {b"a": b"second"})
    await hub_request_settle(aclient, b"a", b"second")
    assert await hub_requests_page(aclient, 0) == (0, {})
