"""redis-py's retries with a count of failed tries, the one measure of failed calls to Redis."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from redis.asyncio.retry import Retry as AsyncRetry
from redis.exceptions import RedisError
from redis.retry import Retry

from eventing.core.container import per_process
from eventing.telemetry import metrics


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

        return await super().call_with_retry(counted, *how, **hows)
