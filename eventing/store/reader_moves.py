"""Moves of readers that are under way: a hash in Redis, by the moves' ids, and a channel that notifies gateways of changes.

Entries carry their own end; the hash is deleted a day after the last change. All functions raise redis.RedisError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventing.store.client import client
from eventing.store.connection import AsyncRedis
from eventing.store.keys import READER_MOVES_CHANNEL, READER_MOVES_KEY

KEPT_S = 2 * 86_400  # longer than any move


def reader_moves_stored() -> dict[str, bytes]:
    """Return all stored moves by id."""
    found: Any = client().hgetall(READER_MOVES_KEY)
    return {id.decode(): bytes(move) for id, move in found.items()}


async def reader_moves_read(redis: AsyncRedis) -> list[bytes]:
    """Return all stored moves, for a gateway."""
    found: Any = await redis.hvals(READER_MOVES_KEY)
    return [bytes(move) for move in found]


def reader_move_store(id: str, move: bytes, instead_of: Sequence[str] = ()) -> None:
    """Store a move, instead of these others, and notify all gateways."""
    pipeline = client().pipeline(transaction=True)
    if instead_of:
        pipeline.hdel(READER_MOVES_KEY, *instead_of)
    pipeline.hset(READER_MOVES_KEY, id, move)
    pipeline.expire(READER_MOVES_KEY, KEPT_S)
    pipeline.publish(READER_MOVES_CHANNEL, id)
    pipeline.execute()


def reader_moves_delete(*ids: str) -> int:
    """Delete moves, and notify all gateways; return how many there were."""
    if not ids:
        return 0
    pipeline = client().pipeline(transaction=True)
    pipeline.hdel(READER_MOVES_KEY, *ids)
    pipeline.publish(READER_MOVES_CHANNEL, ids[0])
    return int(pipeline.execute()[0])
