"""Listening to channels in tests, on a single Redis and on a cluster, where channels are sharded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.client import PubSub

from demo.harness.servers import wait_for
from eventing.store.routed import RoutedRedis


def subscribers(client: redis.Redis, channel: str) -> int:
    """The number of connections that are subscribed to a channel."""
    if isinstance(client, RoutedRedis):
        home: Any = client.node(client.plane.home_of_key(channel).place)
        return int(home.execute_command("PUBSUB", "SHARDNUMSUB", channel)[1])
    return int(client.pubsub_numsub(channel)[0][1])


@contextmanager
def listening(client: redis.Redis, channel: str) -> Iterator[PubSub]:
    """A subscription, already confirmed, whose messages are read with `get_message`."""
    if isinstance(client, RoutedRedis):
        home: Any = client.node(client.plane.home_of_key(channel).place)
        listener = home.pubsub(ignore_subscribe_messages=True)
        listener.ssubscribe(channel)
    else:
        listener = client.pubsub(ignore_subscribe_messages=True)
        listener.subscribe(channel)
    wait_for(lambda: subscribers(client, channel) > 0, about="subscribed")
    try:
        yield listener
    finally:
        listener.close()
