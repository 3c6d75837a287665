"""The sweep of target reliabilities, in the process that forwards: tallies of links, arrivals, plans."""

from __future__ import annotations

from eventing.replication.reliability.arrivals import arrivals_measure
from eventing.replication.reliability.planning import routes_plan
from eventing.store.link_tallies import tallies_flush


def reliability_sweep() -> int:
    """Keep measurements and plans up to date. Returns how many decisions about routes changed. Raises redis.RedisError,
    DatabaseError."""
    tallies_flush()
    arrivals_measure()
    return routes_plan()
