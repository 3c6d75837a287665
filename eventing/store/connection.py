"""Connections to Redis: URL, time limits, retries with a count of failed tries, and the server's durability."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from eventing.core.container import per_process
from eventing.store.plane import plane_of
from eventing.store.routed import RoutedRedis
from eventing.store.routed_async import RoutedAsyncRedis
from eventing.telemetry import metrics

AsyncRedis = redis.asyncio.Redis
"""A gateway's client, for code that passes it on: its commands are called in `store` and `log` only."""

CONNECT_TIMEOUT_S = 5  # bound: seconds to connect to Redis; Redis counts as unreachable
# Longer than any script or fsync takes.
ANSWER_TIMEOUT_S = 20  # bound: seconds without an answer from Redis; Redis counts as unreachable
# Replaying sessions take turns.
CONNECTIONS_MAX = 32  # bound: connections of a gateway to a Redis server; further commands wait for a free connection


@dataclass(frozen=True, slots=True)
class Durability:
    """Durability that the Redis in use provides.

    Attributes:
        version: the server's version.
        always: every write is fsynced before it is answered (`appendfsync always`).
        waitaof: the server can be asked to wait for the fsync (Redis >= 7.2 with AOF on).
        replicas: connected replicas.
        replicas_known: replicas that the server is to have: those of the setting, where it is more than are connected.
    """

    version: tuple[int, int]
    always: bool
    waitaof: bool
    replicas: int
    replicas_known: int = 0

    @property
    def stored(self) -> bool:
        """True if the server provides the acknowledgement level `stored`."""
        return self.always or self.waitaof

    @property
    def is_short(self) -> bool:
        """True if a replica is away."""
        return self.replicas < self.replicas_known


def sync_client(url: str) -> redis.Redis:
    """Make a synchronous client with retries, for callers outside the hot path."""
    plane = plane_of(url)
    if plane is None:
        return _sync_node(url, 5)
    return RoutedRedis(plane, lambda node: _sync_node(node, 1))  # which repeats by itself


def hasty_client(url: str, within_s: float) -> redis.Redis:
    """Make a synchronous client without retries, for callers that cannot wait for longer."""
    plane = plane_of(url)
    if plane is None:
        return _hasty_node(url, within_s)
    return RoutedRedis(plane, lambda node: _hasty_node(node, within_s), retry_s=0.0)


def _hasty_node(url: str, within_s: float) -> redis.Redis:
    return redis.Redis.from_url(
        url, socket_timeout=within_s, socket_connect_timeout=within_s, retry=Retry(NoBackoff(), 0), protocol=2
    )


def _sync_node(url: str, retries: int) -> redis.Redis:
    retry = CountedRetry(ExponentialWithJitterBackoff(cap=0.5, base=0.05), retries)
    return redis.Redis.from_url(
        url,
        socket_timeout=ANSWER_TIMEOUT_S,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        retry=retry,
        retry_on_error=[redis.ConnectionError, redis.TimeoutError, redis.BusyLoadingError],
        protocol=2,
    )


def async_client(url: str) -> redis.asyncio.Redis:
    """Make an asynchronous client that fails at once when a single Redis is unreachable: its callers decide about waiting and
    retries. One of several servers repeats during a failover (spreading.py).

    Its connections to a server are bounded; a caller that finds none free waits for one.
    """
    plane = plane_of(url)
    return _async_node(url) if plane is None else RoutedAsyncRedis(plane, _async_node)


def _async_node(url: str) -> redis.asyncio.Redis:
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


def primaries_of(client: redis.Redis) -> list[redis.Redis]:
    """Return a client for each server that takes writes. Raises redis.RedisError where the topology is not known."""
    return client.primaries() if isinstance(client, RoutedRedis) else [client]


async def primaries_of_async(client: redis.asyncio.Redis) -> list[redis.asyncio.Redis]:
    """Return `primaries_of` an asynchronous client."""
    return await client.primaries() if isinstance(client, RoutedAsyncRedis) else [client]


def weakest(found: Sequence[Durability]) -> Durability:
    """Return what all of these servers provide."""
    return Durability(
        min(one.version for one in found),
        all(one.always for one in found),
        all(one.waitaof for one in found),
        min(one.replicas for one in found),
        max(one.replicas_known for one in found),
    )


def durability(info: dict[str, object], settings: dict[str, str] | None, replicas_known: int = 0) -> Durability:
    """Read INFO and CONFIG GET append*; `settings` is None where the server forbids CONFIG, `replicas_known` how many replicas
    it is to have."""
    major, minor = f"{info.get('redis_version', '0')}.0".split(".")[:2]
    version = (int(major), int(minor))
    aof = str(info.get("aof_enabled", 0)) == "1"
    always = aof and settings is not None and settings.get("appendfsync") == "always"
    replicas = int(str(info.get("connected_slaves", 0)))
    return Durability(version, always, aof and version >= (7, 2), replicas, max(replicas, replicas_known))


class Failures:
    """Attempts of this process's synchronous clients that got no answer. A change since the last look means that something may
    have been missed.
    """

    count = 0


failures = per_process(Failures)


class CountedRetry(Retry):
    """Retries for synchronous clients."""

    def call_with_retry(self, do: Callable[[], Any], *how: Any, **hows: Any) -> Any:
        """Call as redis-py does, and count failures."""

        def counted() -> Any:
            try:
                return do()
            except self._supported_errors:
                failures().count += 1
                metrics.REDIS_FAILURES.inc()
                raise

        return super().call_with_retry(counted, *how, **hows)


class CountedAsyncRetry(AsyncRetry):
    """Retries for asynchronous clients."""

    async def call_with_retry(self, do: Callable[[], Awaitable[Any]], *how: Any, **hows: Any) -> Any:
        """Call as redis-py does, and count failures."""

        async def counted() -> Any:
            try:
                return await do()
            except self._supported_errors as error:
                if isinstance(error, RedisError):
                    metrics.REDIS_FAILURES.inc()
                raise
            except RuntimeError as error:
                if "closed" not in str(error):
                    raise
                metrics.REDIS_FAILURES.inc()  # uvloop: the server closed the connection before something was sent
                raise redis.ConnectionError(str(error)) from error

        return await super().call_with_retry(counted, *how, **hows)
