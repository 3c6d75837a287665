"""The queue of push subscriptions that ended before their lease, and whose subscribers are to be notified, in Redis.

The deliverer takes what it sends: a message that a killed deliverer had taken is lost, as one to an endpoint that does
not answer is.
"""

from __future__ import annotations

from typing import Any

import msgspec

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.store.client import client
from eventing.store.keys import PUSH_ENDINGS_KEY

ENDINGS_MAX = 10_000  # bound: ended subscriptions whose message waits; the oldest is discarded


class PushEnding(msgspec.Struct, array_like=True, frozen=True):
    """An ended subscription.

    Attributes:
        sealed: secrets of its endpoint, as they were stored.
        status: why it ended, as its mode names it.
        reason: for people, in English.
        mode: of delivery.
        rp: id of the RP.
    """

    subscription: str
    sealed: bytes
    status: str
    reason: str
    mode: str = "ws-eventing"
    rp: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgpack_reader(PushEnding)


def endings_add(endings: list[PushEnding]) -> None:
    """Queue endings. Raises redis.RedisError."""
    pipeline = client().pipeline(transaction=False)
    pipeline.lpush(PUSH_ENDINGS_KEY, *[_encode(one) for one in endings])
    pipeline.ltrim(PUSH_ENDINGS_KEY, 0, ENDINGS_MAX - 1)
    pipeline.execute()


async def endings_take(asynchronous: Any, count: int) -> list[PushEnding]:
    """Take the oldest endings from the queue. Raises redis.RedisError.

    Args:
        asynchronous: the asynchronous client.
    """
    found = []
    for data in await asynchronous.rpop(PUSH_ENDINGS_KEY, count) or ():
        try:
            found.append(_decode(data))
        except Undecodable:  # written by another version
            continue
    return found
