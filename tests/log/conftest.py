"""Fixtures of the log's tests: logs and appenders on a shared Redis (tests/store/redis_process.py)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import redis
import redis.asyncio

from eventing.store.connection import Durability, async_client
from tests.log.harness import ALWAYS, NEW_RP, Harness, Log
from tests.store.redis_process import RedisProcess


@pytest.fixture
def new_log(redis_client: redis.Redis) -> Callable[..., Log]:
    """Makes logs, not yet created in Redis: `new_log(window_s=1)`."""
    return lambda **settings: Log(redis_client, next(NEW_RP), **settings)


@pytest.fixture
def log(new_log: Callable[..., Log]) -> Log:
    """A log that exists, with wide bounds."""
    made = new_log()
    made.create()
    return made


@pytest.fixture
async def harness(aclient: redis.asyncio.Redis) -> Harness:
    return Harness(aclient)


@pytest.fixture
async def make_harness() -> AsyncIterator[Callable[..., Awaitable[Harness]]]:
    """Makes harnesses on Redis servers of a test's own."""
    made: list[Harness] = []

    async def make(process: RedisProcess, durability: Durability | None = ALWAYS, **settings: Any) -> Harness:
        made.append(Harness(async_client(process.url), durability, **settings))
        return made[-1]

    yield make
    for one in made:
        await one.appender.close()
        await one.client.aclose()
