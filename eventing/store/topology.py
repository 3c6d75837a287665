"""What the servers of a data plane say about themselves: primaries, slots. Looked up by redis-py, with short waits."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable
from typing import Any

import redis
from redis.exceptions import ConnectionError, RedisError
from redis.sentinel import Sentinel

from eventing.core.data_plane import (
    CLUSTER,
    SENTINEL,
    DataPlaneAddress,
    Place,
    Topology,
    cluster_topology,
    divided,
)

LOOK_S = 1.0  # bound: seconds that a server may take to state the topology; the next one is asked


def look_up(address: DataPlaneAddress, known: Iterable[Place] = ()) -> Topology:
    """Return the present topology of a data plane of several servers.

    Args:
        known: servers that belonged to it, asked before those that the address names.

    Raises redis.RedisError where no server states it.
    """
    if address.kind == CLUSTER:
        return _of_cluster(address, known)
    if address.kind == SENTINEL:
        return _of_sentinels(address)
    return divided(address.places)


def _of_cluster(address: DataPlaneAddress, known: Iterable[Place]) -> Topology:
    """Ask one node after the other, in random order, until one says that the cluster is whole: a node that was cut off
    keeps the topology of its past."""
    places = list({*known, *address.places})
    random.shuffle(places)  # spreads the load of looking up
    partial: Topology | None = None
    problem: Exception | None = None
    for place in places:
        try:
            with brief(address.url_of(place)) as node, node.pipeline(transaction=False) as pipeline:
                pipeline.execute_command("CLUSTER", "INFO")
                pipeline.execute_command("CLUSTER", "SLOTS")
                info, slots = pipeline.execute()
            found = cluster_topology(slots, place)
        except (RedisError, OSError, ValueError) as error:
            problem = error
            continue
        if b"cluster_state:ok" in info:
            return found
        partial = found
    if partial is not None and partial.primaries:
        return partial
    raise ConnectionError(f"no node of the cluster states its slots ({problem})")


def _of_sentinels(address: DataPlaneAddress) -> Topology:
    """Ask the Sentinels where the primary of each name is."""
    sentinels: Any = Sentinel(  # type: ignore[no-untyped-call]
        list(address.places), socket_timeout=LOOK_S, socket_connect_timeout=LOOK_S
    )
    try:
        return divided([Place(*sentinels.discover_master(name)) for name in address.masters])
    finally:
        for one in sentinels.sentinels:
            with contextlib.suppress(RedisError, OSError):
                one.close()


def brief(url: str) -> redis.Redis:
    """Make a client for a few quick questions, without retries. The caller closes it. Raises ValueError for a malformed URL."""
    made: Any = redis.Redis.from_url(url, socket_timeout=LOOK_S, socket_connect_timeout=LOOK_S, retry=None, protocol=2)
    return made  # type: ignore[no-any-return]
