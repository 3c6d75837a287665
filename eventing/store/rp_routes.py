"""Routes of RPs with a target reliability, in Redis: the decision in force, and counts of events that arrived at other participants in time.

Counts decay like tallies of links (link_tallies.py). All functions raise redis.RedisError.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from eventing.store.client import client, run_script_all
from eventing.store.keys import ROUTED_KEY, arrivals_key, routes_key
from eventing.store.link_tallies import HALF_LIFE_S, KEPT_S, TALLY_SCRIPT

ARRIVALS_DOMAINS_MAX = 64  # bound: participants whose arrivals are read at once; the others are shown as not measured


class Arrivals(NamedTuple):
    """Events that were held here, decayed: those that a participant held within the stated time, and those that it did not."""

    arrived: float = 0.0
    late: float = 0.0

    @property
    def share(self) -> float | None:
        """The share that arrived in time; None where nothing was measured."""
        return self.arrived / (self.arrived + self.late) if self.arrived + self.late > 0.0 else None


def decision_store(rp: str, data: bytes) -> None:
    """Store the decision in force at an RP."""
    pipeline = client().pipeline(transaction=False)
    pipeline.sadd(ROUTED_KEY, rp)
    pipeline.set(routes_key(rp), data)
    pipeline.execute()


def decisions_stored(rps: Sequence[str]) -> dict[str, bytes | None]:
    """Return the decisions in force at these RPs; None where there is none."""
    pipeline = client().pipeline(transaction=False)
    for rp in rps:
        pipeline.get(routes_key(rp))
    return dict(zip(rps, pipeline.execute(), strict=True))


def routed_rps() -> list[str]:
    """Return the RPs with a decision."""
    found: Any = client().smembers(ROUTED_KEY)
    return sorted(rp.decode() for rp in found)


def routes_forget(rp: str, peers: Iterable[str]) -> None:
    """Remove the decision at an RP, and what arrived at these participants."""
    pipeline = client().pipeline(transaction=False)
    pipeline.srem(ROUTED_KEY, rp)
    pipeline.delete(routes_key(rp), *(arrivals_key(rp, peer) for peer in peers))
    pipeline.execute()


def arrivals_add(counts: Mapping[tuple[str, str], tuple[int, int]]) -> None:
    """Add events that arrived in time and that did not, by RP and participant."""
    now = time.time()
    entries = [
        [1, arrivals_key(rp, peer), now, HALF_LIFE_S, KEPT_S * 1000, 1, arrived, late, 0, 0, 0, 0, 0]
        for (rp, peer), (arrived, late) in counts.items()
    ]
    for answer in run_script_all(TALLY_SCRIPT, entries):
        if isinstance(answer, Exception):
            raise answer


def arrivals_read(rp: str, peers: Sequence[str]) -> dict[str, Arrivals]:
    """Return what arrived at these participants."""
    some = list(peers)[:ARRIVALS_DOMAINS_MAX]
    pipeline = client().pipeline(transaction=False)
    for peer in some:
        pipeline.hmget(arrivals_key(rp, peer), ("delivered", "lost"))
    return {
        peer: Arrivals(float(arrived or 0), float(late or 0))
        for peer, (arrived, late) in zip(some, pipeline.execute(), strict=True)
    }
