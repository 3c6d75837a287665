"""State of a Redis server and its queues, for operators: doctor, supervisor, the page of the system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import redis

from eventing.conf import config
from eventing.core.config import Config
from eventing.core.container import memoized
from eventing.store.client import client
from eventing.store.connection import hasty_client, primaries_of
from eventing.store.plane import plane_of
from eventing.store.routed import RoutedRedis

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
    plane = plane_of(url)
    return _brief_node(url) if plane is None else RoutedRedis(plane, _brief_node, ANSWER_WITHIN_S)


def _brief_node(url: str) -> redis.Redis:
    found: redis.Redis = redis.Redis.from_url(
        url, decode_responses=True, socket_timeout=ANSWER_WITHIN_S, socket_connect_timeout=ANSWER_WITHIN_S, retry=None
    )
    return found


def inspected(url: str, lists: Sequence[str] = (), hashes: Sequence[str] = ()) -> Inspection:
    """Inspect the Redis at `url`, with the lengths of these lists and hashes; of several primaries the first one.

    Raises ValueError, redis.RedisError, OSError.
    """
    with brief_client(url) as found:
        info, append = _state(primaries_of(found)[0])
        with found.pipeline(transaction=False) as pipeline:
            for name in lists:
                pipeline.llen(name)
            for name in hashes:
                pipeline.hlen(name)
            return Inspection(info, append, list(map(int, pipeline.execute())))


class PrimaryInspection(NamedTuple):
    """A primary with its `Inspection`; None where it does not answer."""

    name: str
    found: Inspection | None


def primaries_inspected(url: str) -> list[PrimaryInspection]:
    """Inspect each primary of a data plane of several servers. Raises redis.RedisError where the topology is not known, and
    redis.AuthenticationError where a primary refuses the password."""
    with brief_client(url) as client:
        if not isinstance(client, RoutedRedis):
            return []
        found = []
        for primary in client.plane.primaries():
            try:
                inspection = Inspection(*_state(client.node(primary.place)), [])
            except redis.AuthenticationError:
                raise
            except (redis.RedisError, OSError):
                inspection = None
            found.append(PrimaryInspection(primary.place.name, inspection))
        return found


def _state(node: redis.Redis) -> tuple[dict[str, Any], dict[str, str] | None]:
    info: dict[str, Any] = node.info()
    try:
        return info, {str(name): str(value) for name, value in node.config_get("append*").items()}
    except redis.ResponseError:  # managed servers forbid CONFIG
        return info, None


def queue_length(name: str) -> int:
    """Count the messages in a queue of the domain's own Redis. Raises redis.RedisError."""
    found: Any = client().llen(name)
    return int(found)


@memoized(maxsize=4)
def _hasty_client(settings: Config) -> redis.Redis:
    return hasty_client(settings.effective_redis_url, HASTE_S)


def require_answer() -> None:
    """Raise redis.RedisError unless the data plane answers within HASTE_S, for callers that must not wait."""
    _hasty_client(config()).ping()
