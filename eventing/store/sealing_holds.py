"""RPs whose own feed is held back from sealing, and peers' claims to hold more of it
(replication/forwarding/holding.py).

All raise redis.RedisError. Times are Unix seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from eventing.store.client import client
from eventing.store.keys import SEALING_CLAIMS_KEY, SEALING_HELD_KEY


def held_since(rps: Sequence[str]) -> dict[str, float]:
    """Return which of `rps` are held back, and since when."""
    if not rps:
        return {}
    since: Any = client().zmscore(SEALING_HELD_KEY, list(rps))
    return {rp: float(at) for rp, at in zip(rps, since, strict=True) if at is not None}


def hold_note(rps: Collection[str], at: float, *, anew: bool) -> None:
    """Hold these RPs back from `at` on. `anew`: also those already held back, which otherwise keep their time."""
    if rps:
        client().zadd(SEALING_HELD_KEY, dict.fromkeys(rps, at), nx=not anew)


def hold_end(rps: Collection[str]) -> None:
    """End the holding back of these RPs."""
    if rps:
        client().zrem(SEALING_HELD_KEY, *rps)


def claims_forget(*, until: float, after: float | None = None) -> None:
    """Drop the claims before `until` and, if given, after `after`."""
    client().zremrangebyscore(SEALING_CLAIMS_KEY, "-inf", until)
    if after is not None:
        client().zremrangebyscore(SEALING_CLAIMS_KEY, f"({after}", "+inf")


def claims_note(names: Iterable[str], at: float) -> None:
    """Note claims; known ones keep their time."""
    client().zadd(SEALING_CLAIMS_KEY, dict.fromkeys(names, at), nx=True)


def claims_date(claims: Mapping[str, float]) -> None:
    """Change the time of known claims."""
    if claims:
        client().zadd(SEALING_CLAIMS_KEY, dict(claims), xx=True)


def claimed_at(names: Sequence[str]) -> list[float | None]:
    """Return when each of the claims was noted; None for an unknown one."""
    found: Any = client().zmscore(SEALING_CLAIMS_KEY, list(names))
    return list(found)
