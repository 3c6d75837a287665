"""Fixtures of the log's tests: a shared Redis, Redis servers of a test's own, logs and appenders on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import redis
import redis.asyncio

from eventing.store.connection import Durability, async_client
from tests.log.harness import ALWAYS, NEW_RP, Harness, Log
from tests.log.redis_process import RedisProcess


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    """A Redis that tests share; each uses RPs of its own."""
    process = RedisProcess(tmp_path_factory.mktemp("log"))
    process.start()
    yield process
    process.kill()


@pytest.fixture(scope="session")
def redis_client(shared_redis: RedisProcess) -> Iterator[redis.Redis]:
    with shared_redis.client() as client:
        yield client


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
def new_redis(tmp_path: Path) -> Iterator[Callable[..., RedisProcess]]:
    """Makes Redis servers of a test's own, running: `new_redis(appendfsync="everysec")`."""
    made: list[RedisProcess] = []

    def make(**options: str | int) -> RedisProcess:
        made.append(RedisProcess(tmp_path / f"redis{len(made)}", **options))
        made[-1].start()
        return made[-1]

    yield make
    for process in made:
        process.kill()


@pytest.fixture
async def aclient(shared_redis: RedisProcess) -> AsyncIterator[redis.asyncio.Redis]:
    """The gateway's kind of client."""
    client = async_client(shared_redis.url)
    yield client
    await client.aclose()


@pytest.fixture
async def harness(aclient: redis.asyncio.Redis) -> Harness:
    return Harness(aclient)


@pytest.fixture
async def make_harness() -> AsyncIterator[Callable[..., Awaitable[Harness]]]:
    """Makes harnesses on Redis servers of a test's own."""
    made: list[Harness] = []

    async def make(process: RedisProcess, durability: Durability | None = ALWAYS) -> Harness:
        made.append(Harness(async_client(process.url), durability))
        return made[-1]

    yield make
    for one in made:
        await one.appender.close()
        await one.client.aclose()
