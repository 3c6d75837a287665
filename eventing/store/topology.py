"""Topology of a data plane as its servers state it: primaries, slots. Looked up by redis-py, with short waits."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

import redis
from redis.exceptions import AuthenticationError, ConnectionError, NoPermissionError, RedisError, ResponseError

from eventing.core.data_plane import (
    CLUSTER,
    SENTINEL,
    DataPlaneAddress,
    ServerAddress,
    Topology,
    cluster_topology,
    divided,
)

LOOK_S = 1.0  # bound: seconds that a server may take to state the topology; the next one is asked


def look_up(address: DataPlaneAddress, known: Iterable[ServerAddress] = ()) -> Topology:
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


def _of_cluster(address: DataPlaneAddress, known: Iterable[ServerAddress]) -> Topology:
    """Ask one node after the other, in random order, until one states that the cluster is whole: a node that was cut off
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


class _View(NamedTuple):
    """Statement of one Sentinel about a primary.

    Attributes:
        epoch: number of the failover that it knows of last.
        place: the primary.
        down: it finds the primary down.
    """

    epoch: int
    place: ServerAddress
    down: bool


def _of_sentinels(address: DataPlaneAddress) -> Topology:
    """Ask the Sentinels, all at once, where the primary of each name is; the one that knows of the last failover is right: one that was cut off keeps the
    primary of its past. The look ends as soon as most of them agree."""
    pool = ThreadPoolExecutor(len(address.places), thread_name_prefix="sentinels")
    asked = [pool.submit(_views, address, place) for place in address.places]
    pool.shutdown(wait=False)  # one that does not answer delays nobody
    answers: list[dict[str, _View]] = []
    refusal: RedisError | None = None
    for answer in as_completed(asked):
        try:
            answers.append(answer.result())
        except (AuthenticationError, NoPermissionError) as error:
            refusal = error
            continue
        if all(_agree(_said(answers, name), len(address.places)) for name in address.masters):
            break
    if refusal is not None and not any(answers):
        raise refusal
    return divided([_newest(name, _said(answers, name)) for name in address.masters])


def _views(address: DataPlaneAddress, place: ServerAddress) -> dict[str, _View]:
    """Ask one Sentinel about all names; what it does not answer is left out.

    Raises AuthenticationError or NoPermissionError where it refuses to answer.
    """
    found: dict[str, _View] = {}
    try:
        with brief(address.sentinel_url_of(place)) as sentinel:
            for name in address.masters:
                with contextlib.suppress(ResponseError):  # it does not watch this name
                    found[name] = _view(sentinel.sentinel_master(name), sentinel.sentinel_get_master_addr_by_name(name))
    except (AuthenticationError, NoPermissionError) as error:
        raise type(error)(f"the Sentinel at {place.name} refuses: {error}") from None
    except (RedisError, OSError, ValueError):
        pass
    return found


def _view(state: dict[str, Any], address: tuple[Any, int]) -> _View:
    """Read the answers; while a Sentinel carries out a failover, its state is still of the old primary, its address of the new one."""
    host = address[0].decode() if isinstance(address[0], bytes) else str(address[0])
    is_down = not state["is_master"] or state["is_sdown"] or state["is_odown"]
    is_of_address = (state["ip"], state["port"]) == (host, address[1])
    return _View(int(state["config-epoch"]), ServerAddress(host, int(address[1])), is_down and is_of_address)


def _said(answers: Iterable[dict[str, _View]], name: str) -> list[_View]:
    return [views[name] for views in answers if name in views]


def _agree(views: list[_View], sentinels: int) -> bool:
    return any(2 * views.count(view) > sentinels and not view.down for view in views)


def _newest(name: str, views: list[_View]) -> ServerAddress:
    """Return the primary of the last failover. Raises redis.RedisError where none of those who know of it finds it up."""
    last = max((view.epoch for view in views), default=0)
    for view in views:
        if view.epoch == last and not view.down:
            return view.place
    raise ConnectionError(f"no Sentinel names a primary {name!r} that is up")


def brief(url: str) -> redis.Redis:
    """Make a client for a few quick questions, without retries. The caller closes it. Raises ValueError for a malformed URL."""
    made: Any = redis.Redis.from_url(url, socket_timeout=LOOK_S, socket_connect_timeout=LOOK_S, retry=None, protocol=2)
    return made  # type: ignore[no-any-return]
