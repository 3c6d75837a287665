"""Decisions of a replica about runs received from a peer, and about forwarding them. Pure.

The live code (eventing/replication) and the simulator (tests/overlay/test_convergence.py) call the same functions;
broadcast.py decides which messages are sent to whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eventing.core.events.vectors import Vector

# The same as in peering/wire/messages.py: PATH_MAX.
HOPS_MAX = 32  # bound: domains that a run passes through; the run is not forwarded further on that path
# bound: seconds to wait for events that no link claims to hold; a gap without a signed low-water mark is accepted
GAP_PATIENCE_S = 10.0
# Partitions last longer than seconds.
GAP_PATIENCE_S_MAX = 3600.0  # bound: seconds to wait for events while a link is silent; the gap is accepted


class FeedGap(NamedTuple):
    """Events missing before a run: sequences `first` to `last`; `signed` if the origin itself states that they were removed."""

    first: int
    last: int
    signed: bool


def path_problem(path: Sequence[str], origin: str, sender: str) -> str:
    """Describe why a run's path cannot be true, in a sentence; empty if it can."""
    if not path or path[0] != origin:
        return "A run's path begins with its origin."
    if path[-1] != sender:
        return "A run's path ends with the domain that sends it."
    if len(path) > HOPS_MAX:
        return f"A run passes through at most {HOPS_MAX} domains."
    if len(set(path)) != len(path):
        return "A run's path contains a cycle."
    return ""


def onward(path: Sequence[str], me: str) -> list[str] | None:
    """Make the path for forwarding a run, given its path on arrival (empty: an own run); None at the hop bound.

    A loop back to this domain, after it had lost the run, is left out.
    """
    way = list(path)
    if me in way:
        way = way[: way.index(me)]
    return [*way, me] if len(way) < HOPS_MAX else None


def gap_before(held: int, first: int, withheld: int, low_water_mark: int) -> FeedGap | None:
    """Compute the gap before a run; None if there is none.

    Args:
        held: the last sequence held of the feed.
        first, withheld: the run's first sequence, and how many of its first events the sender no longer holds.
        low_water_mark: oldest sequence that the origin still keeps, by its low-water mark; 0 for none.
    """
    here = first + withheld
    if here <= held + 1:
        return None
    return FeedGap(held + 1, here - 1, low_water_mark >= here)


def gap_accepted(gap: FeedGap, waited_s: float, nobody_else: bool) -> bool:
    """Return True if the feed may continue after a gap: at once if the origin signed it, else after a time in which no
    peer could fill it.

    Args:
        waited_s: seconds since the gap was noticed.
        nobody_else: whether all other links have sent a message since then, and none holds the missing events. A peer
            behind a partition may hold them: otherwise a peer that withholds events could make the loss final by
            waiting for a partition.
    """
    return gap.signed or waited_s >= (GAP_PATIENCE_S if nobody_else else GAP_PATIENCE_S_MAX)


def overclaims(have: Vector, own_feed: str, own_last: int) -> bool:
    """Return True if a peer claims, by its vector `have`, more of the own feed than was ever published (`own_last`)."""
    return have.get(own_feed, 0) > own_last


def claim_credible(claimed: int, *, last: int, since_s: float, per_s: float) -> bool:
    """Return True if this domain can have published `claimed` events in a feed and lost the memory of some.

    Args:
        claimed: sequence that a peer claims to hold.
        last: greatest sequence known here.
        since_s: upper bound of the seconds since `last` was published.
        per_s: admitted rate of the rendezvous point here, events per second.
    """
    return claimed <= last + per_s * max(0.0, since_s)
