"""The cheapest choice of links of a small graph, by trying choices in the order of their cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush

from eventing.overlay.machine import Id
from eventing.overlay.routing.graph import RouteLink

EXHAUSTION_LINKS_MAX = (
    12  # bound: links of a graph whose choices are all tried, 4,096; larger graphs get a plan near the optimum
)

Meets = Callable[[Sequence[RouteLink]], bool]


def cheapest_choice(
    useful: Sequence[RouteLink], receivers: Sequence[Id], target: float, meets: Meets
) -> tuple[RouteLink, ...] | None:
    """Return the cheapest choice that meets the target, of equally cheap ones the first with the fewest links; None if there is none.

    Args:
        useful: links to choose from.
        receivers: domains that each need links enough of their own: choices without are left out before `meets` looks at them.
        meets: whether a choice brings every receiver to the target.
    """
    for links in _by_cost(useful):
        if all(reach_most(links, one) >= target for one in receivers) and meets(links):
            return links
    return None


def reach_most(links: Sequence[RouteLink], receiver: Id) -> float:
    """Return an upper bound of a receiver's reliability: the probability that any of its own links delivers.

    Shared-risk groups count as certain to survive, so the bound holds whatever they share.
    """
    none = 1.0
    for link in links:
        if receiver in (link.a, link.b):
            none *= 1.0 - link.probability
    return 1.0 - none


def _by_cost(links: Sequence[RouteLink]) -> Iterator[tuple[RouteLink, ...]]:
    """Yield all choices of links, the empty one too, in the order of cost, then of number."""
    ranked = sorted(links, key=lambda link: link.cost)
    yield ()
    if not ranked:
        return
    heap: list[tuple[float, int, tuple[int, ...]]] = [(ranked[0].cost, 1, (0,))]
    while heap:
        cost, count, places = heappop(heap)
        yield tuple(ranked[at] for at in places)
        last = places[-1]
        if last + 1 < len(ranked):
            step = ranked[last + 1].cost
            heappush(heap, (cost + step, count + 1, (*places, last + 1)))
            heappush(heap, (cost - ranked[last].cost + step, count, (*places[:-1], last + 1)))
