"""Vectors that wait for company (overlay/announcements.py), per peer: a sorted set of RPs, each by the time since which its vector waits.

Gateways note them where an event is only announced on a link; turns of forwarding take them, and put back what they do not send. What a
turn that died had taken is found by the comparison of the sweep (replication/forwarding/sweeping.py).

All raise redis.RedisError. Times are Unix seconds.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from eventing.store.client import client
from eventing.store.keys import REOPENING_KEY, VECTORS_URGENT_KEY, peer_key

_WHAT, _ANNOUNCED = "waiting", "announced"
ANNOUNCED_S = 30
"""For so long a peer that was only announced something may still lack it: links learn to wait for up to 16 s (overlay/graft_timer.py)."""


def vectors_note(waiting: Mapping[str, Collection[str]], since: float) -> bool:
    """Note that vectors of these RPs wait, by peer; those that wait already keep their time. Returns whether links
    fail, as `vectors_urgent_set` noted."""
    pipeline = client().pipeline(transaction=False)
    for peer, rps in waiting.items():
        if rps:
            pipeline.zadd(peer_key(peer, _WHAT), dict.fromkeys(rps, since), nx=True)
    pipeline.exists(VECTORS_URGENT_KEY)
    return bool(pipeline.execute()[-1])


def vectors_take(peer: str, count_max: int) -> dict[str, float]:
    """Remove and return the RPs whose vectors wait for a peer, with the time since when; at most so many, the oldest first. They are
    remembered for ANNOUNCED_S as announced."""
    found: Any = client().zpopmin(peer_key(peer, _WHAT), count_max)
    if found:
        now = time.time()
        pipeline = client().pipeline(transaction=False)
        pipeline.zadd(peer_key(peer, _ANNOUNCED), {rp: now for rp, _ in found})
        pipeline.zremrangebyscore(peer_key(peer, _ANNOUNCED), "-inf", now - ANNOUNCED_S)
        pipeline.expire(peer_key(peer, _ANNOUNCED), ANNOUNCED_S)
        pipeline.execute()
    return {rp.decode(): float(since) for rp, since in found}


def vectors_waiting(peers: Sequence[str]) -> dict[str, float]:
    """Return since when a vector waits for each of these peers; without peers for which none waits."""
    pipeline = client().pipeline(transaction=False)
    for peer in peers:
        pipeline.zrange(peer_key(peer, _WHAT), 0, 0, withscores=True)
    found = zip(peers, pipeline.execute(), strict=True)
    return {peer: float(entries[0][1]) for peer, entries in found if entries}


def vectors_lately(peers: Sequence[str], count_max: int) -> dict[str, list[str]]:
    """Return the RPs whose vectors wait for each of these peers, or were taken within ANNOUNCED_S, the newest first, at most so many; without
    peers for which there are none."""
    pipeline = client().pipeline(transaction=False)
    for peer in peers:
        for what in (_WHAT, _ANNOUNCED):
            pipeline.zrevrange(peer_key(peer, what), 0, count_max - 1)
    found = iter(pipeline.execute())
    lately = {
        peer: dict.fromkeys([*waiting, *announced])
        for peer, waiting, announced in zip(peers, found, found, strict=True)
    }
    return {peer: [rp.decode() for rp in islice(rps, count_max)] for peer, rps in lately.items() if rps}


def reopening_begins(now: float, for_s: float, every_s: float) -> bool:
    """Return whether this domain may reopen links now: for so long, and again so long after that began (overlay/reopening.py)."""
    pipeline = client().pipeline(transaction=False)
    pipeline.set(REOPENING_KEY, repr(now), nx=True, px=int(every_s * 1000))
    pipeline.get(REOPENING_KEY)
    began = pipeline.execute()[1]
    return began is None or now < float(began) + for_s


def vectors_urgent_set(kept_s: float) -> None:
    """Note for `kept_s` that links fail, so that vectors are sent soon by turns of their own."""
    client().set(VECTORS_URGENT_KEY, "1", px=max(1, int(kept_s * 1000)))
