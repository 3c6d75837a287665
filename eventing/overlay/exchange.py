"""Exchange: what a replica decides about the runs that a peer sends it, and how it sends them on. Pure.

The live code (eventing/replication) and the simulated one (tests/federation/test_convergence.py) ask the same functions;
broadcast.py decides what goes where.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eventing.core.events.vectors import Vector

HOPS_MAX = 16  # domains that a run passes through (peering/wire/messages.py: PATH_MAX)
GAP_PATIENCE_S = 10.0  # how long what is missing may still come though all other links say that it is not there
GAP_PATIENCE_S_MAX = 3600.0  # how long a link that is silent may still bring it: partitions last longer than seconds


class Gap(NamedTuple):
    """What is missing before a run: sequences `first` to `last`; `signed` if the origin itself says that they are gone."""

    first: int
    last: int
    signed: bool


def path_problem(path: Sequence[str], origin: str, sender: str) -> str:
    """Why a run's path cannot be true, as a sentence; empty if it may be."""
    if not path or path[0] != origin:
        return "A run's path begins with its origin."
    if path[-1] != sender:
        return "A run's path ends with the domain that sends it."
    if len(path) > HOPS_MAX:
        return f"A run goes through at most {HOPS_MAX} domains."
    if len(set(path)) != len(path):
        return "A run's path goes in a circle."
    return ""


def onward(path: Sequence[str], me: str) -> list[str] | None:
    """The path as we send the run on, given the path by which it came (empty: it is ours); None at the hop bound.

    Where it came back to us, after we had lost it, the detour is left out.
    """
    way = list(path)
    if me in way:
        way = way[: way.index(me)]
    return [*way, me] if len(way) < HOPS_MAX else None


def gap_before(held: int, first: int, withheld: int, floor: int) -> Gap | None:
    """What a run leaves missing; None if nothing.

    Args:
        held: the last sequence held of the feed.
        first, withheld: the run's first sequence, and how many of its first events the sender no longer holds.
        floor: the oldest sequence that the origin still keeps, by its own statement; 0 for none.
    """
    here = first + withheld
    if here <= held + 1:
        return None
    return Gap(held + 1, here - 1, floor >= here)


def gap_accepted(gap: Gap, waited_s: float, nobody_else: bool) -> bool:
    """Whether to go on behind a gap: at once if the origin signed it, else when nobody could fill it for a while.

    Args:
        waited_s: since it was noticed.
        nobody_else: all other links were heard since then, and none holds what is missing. One that is cut off may hold it:
            whoever withholds events would have them lost for good by waiting for a partition.
    """
    return gap.signed or waited_s >= (GAP_PATIENCE_S if nobody_else else GAP_PATIENCE_S_MAX)


def overclaims(have: Vector, own_feed: str, own_last: int) -> bool:
    """Whether a peer claims to hold more of our own feed than we ever published."""
    return have.get(own_feed, 0) > own_last


def claim_credible(claimed: int, *, last: int, since_s: float, per_s: float) -> bool:
    """Whether this domain can have published `claimed` events in a feed, though it has forgotten some of them since.

    Args:
        claimed: sequence that a peer says to hold.
        last: greatest sequence known here.
        since_s: seconds since that was published, at most.
        per_s: events per second that the rendezvous point admits here.
    """
    return claimed <= last + per_s * max(0.0, since_s)
