"""redis-py's retries, which count every try that got no answer: what calls to Redis fail is told in one place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio.retry import Retry as AsyncRetry
from redis.exceptions import RedisError
from redis.retry import Retry

from eventing.telemetry import metrics

_failures = 0


def failures() -> int:
    """How many tries of this process's synchronous clients got no answer. Whoever finds it changed since the last time may
    have missed something meanwhile."""
    return _failures


class CountedRetry(Retry):
    """For synchronous clients."""

    def call_with_retry(self, do: Callable[[], Any], *how: Any, **hows: Any) -> Any:
        """As redis-py's."""

        def counted() -> Any:
            try:
                return do()
            except self._supported_errors:
                global _failures
                _failures += 1
                metrics.REDIS_FAILURES.inc()
                raise

        return super().call_with_retry(counted, *how, **hows)


class CountedAsyncRetry(AsyncRetry):
    """For asynchronous clients."""

    async def call_with_retry(self, do: Callable[[], Awaitable[Any]], *how: Any, **hows: Any) -> Any:
        """As redis-py's."""

        async def counted() -> Any:
            try:
                return await do()
            except self._supported_errors as error:
                if isinstance(error, RedisError):
                    metrics.REDIS_FAILURES.inc()
                raise

        return await super().call_with_retry(counted, *how, **hows)
