"""Independent histories: domains of which no two share a risk. Pure.

The home counts as the first. The greatest set is an independent set in the graph of shared risks, which is found exactly for up to
EXACT_MAX domains (enough for all replicas that an RP can have) and greedily beyond.
"""

from __future__ import annotations

from collections.abc import Sequence

from eventing.operations.placement.rules.views import PlacedDomain

EXACT_MAX = 16  # bound: domains among which the largest set is searched; of more, a large one is found greedily


def share_risk(one: PlacedDomain, other: PlacedDomain) -> bool:
    """Return whether two domains share a risk group."""
    return any(group in other.groups for group in one.groups)


def independent(home: PlacedDomain, domains: Sequence[PlacedDomain], most: int) -> list[PlacedDomain]:
    """Return domains that share no risk with the home or each other, as many as there are, `most` at most.

    Among sets of one size, the one whose domains are earlier in `domains`.
    """
    free = [one for one in domains if not share_risk(home, one)]
    if len(free) > EXACT_MAX:
        return _greedy(free, most)
    return _largest(free, most)


def _greedy(domains: Sequence[PlacedDomain], most: int) -> list[PlacedDomain]:
    chosen: list[PlacedDomain] = []
    for one in domains:
        if len(chosen) < most and not any(share_risk(one, other) for other in chosen):
            chosen.append(one)
    return chosen


def _largest(domains: Sequence[PlacedDomain], most: int) -> list[PlacedDomain]:
    """Search with pruning: a branch that cannot beat the best is left."""
    best: list[PlacedDomain] = []

    def search(at: int, chosen: list[PlacedDomain]) -> None:
        nonlocal best
        if len(chosen) > len(best):
            best = list(chosen)
        if len(best) >= most or len(chosen) + len(domains) - at <= len(best):
            return
        for index in range(at, len(domains)):
            if not any(share_risk(domains[index], other) for other in chosen):
                search(index + 1, [*chosen, domains[index]])
                if len(best) >= most:
                    return

    search(0, [])
    return best[:most]
