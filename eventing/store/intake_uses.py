"""Times of the last use of intakes, per RP; a gateway writes those of some seconds together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eventing.store.client import client
from eventing.store.keys import intake_uses_key


def intake_uses_write(uses: Mapping[tuple[str, str], int], ttl_s: int) -> None:
    """Write the last use, Unix seconds, of intakes, each given with its RP before its id. Raises redis.RedisError.

    Args:
        ttl_s: seconds after the last use of an RP's intakes for which the times are kept.
    """
    pipeline = client().pipeline(transaction=False)
    for (rp, intake), at in uses.items():
        pipeline.hset(intake_uses_key(rp), intake, at)
    for rp in dict.fromkeys(rp for rp, _ in uses):
        pipeline.expire(intake_uses_key(rp), ttl_s)
    pipeline.execute()


def intake_uses_read(rp: str, intakes: Sequence[str]) -> list[int | None]:
    """Return the last use of each of these intakes at an RP, Unix seconds; None for none. Raises redis.RedisError."""
    if not intakes:
        return []
    found = client().hmget(intake_uses_key(rp), intakes)
    return [None if at is None else int(at) for at in found]


def intake_uses_forget(rp: str, intake: str) -> None:
    """Forget an intake. Raises redis.RedisError."""
    client().hdel(intake_uses_key(rp), intake)
