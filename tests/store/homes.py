"""The servers behind a client in tests: the single one, or the primaries of a cluster."""

from __future__ import annotations

import redis
import redis.asyncio

from eventing.store.connection import primaries_of
from eventing.store.routed import RoutedRedis
from eventing.store.routed_async import RoutedAsyncRedis, known


def home_of(client: redis.Redis, key: str) -> redis.Redis:
    """The client of the server that holds a key or channel."""
    return client.node(client.plane.home_of_key(key).place) if isinstance(client, RoutedRedis) else client


async def home_of_async(client: redis.asyncio.Redis, key: str) -> redis.asyncio.Redis:
    """As `home_of`, asynchronous."""
    if not isinstance(client, RoutedAsyncRedis):
        return client
    await known(client.plane)
    return client.node(client.plane.home_of_key(key).place)


def calls(client: redis.Redis, *commands: str) -> int:
    """How often the servers have carried out commands, also those inside scripts."""
    stats = [one.info("commandstats") for one in primaries_of(client)]
    return sum(int(one.get(f"cmdstat_{name}", {}).get("calls", 0)) for one in stats for name in commands)


def others_disconnected(client: redis.Redis) -> None:
    """Close all connections to the servers but those of `client`."""
    for server in primaries_of(client):
        own = str(server.client_id())
        for one in server.client_list(_type="normal"):
            if one["id"] != own:
                server.client_kill_filter(_id=one["id"])


def notifications_cut(client: redis.Redis) -> int:
    """Close all connections for notifications; their number."""
    return sum(server.client_kill_filter(_type="pubsub") for server in primaries_of(client))
