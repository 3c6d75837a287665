"""State of a Redis server and its queues, for operators: doctor, supervisor, the page of the system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from eventing.conf import config
from eventing.core.config import Config
from eventing.core.container import memoized
from eventing.store.client import client

ANSWER_WITHIN_S = 2.0
"""Seconds after which Redis counts as not answering; one query to a healthy Redis takes a millisecond."""


HASTE_S = 0.5  # a revocation takes effect without waiting for Redis; its report can wait


class Inspection(NamedTuple):
    """INFO, CONFIG GET append* (None where the server forbids CONFIG), and the requested lengths."""

    info: dict[str, Any]
    append: dict[str, str] | None
    lengths: list[int]


def brief_client(url: str) -> redis.Redis:
    """Make a client with bounded waits and text answers. The caller closes it. Raises ValueError for a malformed URL."""
    found: redis.Redis = redis.Redis.from_url(
        url, decode_responses=True, socket_timeout=ANSWER_WITHIN_S, socket_connect_timeout=ANSWER_WITHIN_S, retry=None
    )
    return found


def inspected(url: str, lists: Sequence[str] = (), hashes: Sequence[str] = ()) -> Inspection:
    """Inspect the Redis at `url`, with the lengths of these lists and hashes. Raises ValueError, redis.RedisError, OSError."""
    with brief_client(url) as found:
        info: dict[str, Any] = found.info()
        try:
            append = {str(name): str(value) for name, value in found.config_get("append*").items()}
        except redis.ResponseError:  # managed servers forbid CONFIG
            append = None
        with found.pipeline(transaction=False) as pipeline:
            for name in lists:
                pipeline.llen(name)
            for name in hashes:
                pipeline.hlen(name)
            return Inspection(info, append, list(map(int, pipeline.execute())))


def queue_length(name: str) -> int:
    """Count the messages in a queue of the domain's own Redis. Raises redis.RedisError."""
    found: Any = client().llen(name)
    return int(found)


@memoized(maxsize=4)
def _hasty_client(settings: Config) -> redis.Redis:
    return redis.Redis.from_url(
        settings.effective_redis_url,
        socket_timeout=HASTE_S,
        socket_connect_timeout=HASTE_S,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )


def require_answer() -> None:
    """Raise redis.RedisError unless the data plane answers within HASTE_S, for callers that must not wait."""
    _hasty_client(config()).ping()
