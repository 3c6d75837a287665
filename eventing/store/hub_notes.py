"""Notes of what foreign WebSub hubs stated last about the subscriptions of intakes, in Redis. They expire by themselves."""

from __future__ import annotations

from typing import Any

from eventing.store.keys import hub_note_key

NOTED_S = 40 * 86_400


async def hub_note_read(asynchronous: Any, intake: str) -> bytes | None:
    """Return the note of an intake; None for none. Raises redis.RedisError.

    Args:
        asynchronous: the asynchronous client.
    """
    held: bytes | None = await asynchronous.get(hub_note_key(intake))
    return held


async def hub_note_write(asynchronous: Any, intake: str, note: bytes) -> None:
    """Replace the note of an intake. Raises redis.RedisError."""
    await asynchronous.set(hub_note_key(intake), note, ex=NOTED_S)
