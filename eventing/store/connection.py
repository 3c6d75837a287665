"""Connections to Redis: how the URL, time limits and the server's durability are read, in one place."""

from __future__ import annotations

from dataclasses import dataclass

import redis
import redis.asyncio
from redis.backoff import ExponentialWithJitterBackoff

from eventing.store.counted import CountedAsyncRetry, CountedRetry

CONNECT_TIMEOUT_S = 5
ANSWER_TIMEOUT_S = 20  # longer than any script or fsync takes; a dead server is noticed by then
CONNECTIONS_MAX = 32  # of one gateway process; replaying sessions take turns
VERSION_MIN = (6, 2)


@dataclass(frozen=True, slots=True)
class Durability:
    """What the Redis in use can promise.

    Attributes:
        version: the server's version.
        always: every write is fsynced before it is answered (`appendfsync always`).
        waitaof: the server can be asked to wait for the fsync (Redis >= 7.2 with AOF on).
        replicas: connected replicas.
    """

    version: tuple[int, int]
    always: bool
    waitaof: bool
    replicas: int

    @property
    def stored(self) -> bool:
        """Whether the ack level `stored` can be given at all."""
        return self.always or self.waitaof


def sync_client(url: str) -> redis.Redis:
    """A synchronous client with retries: for callers outside the hot path."""
    retry = CountedRetry(ExponentialWithJitterBackoff(cap=0.5, base=0.05), 5)
    return redis.Redis.from_url(
        url,
        socket_timeout=ANSWER_TIMEOUT_S,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        retry=retry,
        retry_on_error=[redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError],
        protocol=2,
    )


def async_client(url: str) -> redis.asyncio.Redis:
    """An asynchronous client; it fails at once when Redis is away: who calls decides whether to wait and try again.

    Its connections are bounded; who finds none free waits for one.
    """
    pool = redis.asyncio.BlockingConnectionPool.from_url(
        url,
        max_connections=CONNECTIONS_MAX,
        timeout=ANSWER_TIMEOUT_S,
        socket_timeout=ANSWER_TIMEOUT_S,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        retry=CountedAsyncRetry(ExponentialWithJitterBackoff(cap=0.1, base=0.01), 0),
        protocol=2,
    )
    return redis.asyncio.Redis(connection_pool=pool)


def durability(info: dict[str, object], settings: dict[str, str] | None) -> Durability:
    """Read INFO and CONFIG GET append*; `settings` is None where the server does not allow CONFIG."""
    major, minor = f"{info.get('redis_version', '0')}.0".split(".")[:2]
    version = (int(major), int(minor))
    aof = str(info.get("aof_enabled", 0)) == "1"
    always = aof and settings is not None and settings.get("appendfsync") == "always"
    return Durability(version, always, aof and version >= (7, 2), int(str(info.get("connected_slaves", 0))))
