"""The queue of push subscriptions that ended before their lease, and whose subscribers are to be notified, in Redis.

An ending stays in a second list while its message is sent; the next deliverer repeats the message if this one is killed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.store.client import client
from eventing.store.keys import PUSH_ENDINGS_KEY, PUSH_ENDINGS_TAKEN_KEY

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


async def endings_requeue(asynchronous: Any) -> None:
    """Return to the queue, as its oldest, the endings that a former deliverer had taken. Raises redis.RedisError.

    Args:
        asynchronous: the asynchronous client.
    """
    while await asynchronous.lmove(PUSH_ENDINGS_TAKEN_KEY, PUSH_ENDINGS_KEY, "LEFT", "RIGHT") is not None:
        pass


async def ending_take(asynchronous: Any) -> tuple[bytes, PushEnding | None] | None:
    """Take the oldest ending from the queue; None if there is none. Raises redis.RedisError.

    Returns:
        its bytes, for `ending_done`, and the ending; None for one that another version wrote.
    """
    data: bytes | None = await asynchronous.lmove(PUSH_ENDINGS_KEY, PUSH_ENDINGS_TAKEN_KEY, "RIGHT", "LEFT")
    if data is None:
        return None
    try:
        return data, _decode(data)
    except Undecodable:
        return data, None


async def ending_done(asynchronous: Any, data: bytes) -> None:
    """Discard a taken ending, whose message was sent or given up. Raises redis.RedisError."""
    await asynchronous.lrem(PUSH_ENDINGS_TAKEN_KEY, 1, data)
