"""Marks on separate servers that form a data plane: which shard of how many each of them is.

Which RPs are at a server follows from its place in HERALD_REDIS_URL. Were servers named in another order, or one more or
less, every RP would have another home and its log would begin anew, as an empty one.
"""

from __future__ import annotations

from typing import Any

import redis

from eventing.core.data_plane import CLUSTER
from eventing.store.keys import SHARD_KEY
from eventing.store.routed import RoutedRedis


class ShardsExchanged(Exception):
    """A server was another shard before: its place and what it was, each `NUMBER of COUNT`."""

    def __init__(self, server: str, is_now: str, was: str) -> None:
        super().__init__(f"{server} is shard {is_now}, and was shard {was}")


def shards_verify(client: redis.Redis) -> None:
    """Mark each shard at its first use. Raises ShardsExchanged where one is marked as another, and redis.RedisError."""
    if not isinstance(client, RoutedRedis) or client.plane.address.kind == CLUSTER:
        return
    primaries = client.plane.primaries()
    if len(primaries) == 1:
        return
    for number, primary in enumerate(primaries, 1):
        node, mark = client.node(primary.place), f"{number} of {len(primaries)}"
        found: Any = None if node.set(SHARD_KEY, mark, nx=True) else node.get(SHARD_KEY)
        was = found.decode() if isinstance(found, bytes) else found
        if was is not None and was != mark:
            raise ShardsExchanged(primary.place.name, mark, was)
