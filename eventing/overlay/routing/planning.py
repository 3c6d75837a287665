"""Plan of the links that carry an RP's feeds: a tree, and the cheapest links beside it that a target reliability needs.

The objective is the exact reliability of restricted flooding over all chosen links together (`reliability`), for each receiver. It is not the
product of the reliabilities of paths, which ranks pairs wrongly: (0.90, 0.90) has the larger product and delivers 0.990, (0.99, 0.80)
delivers 0.998; nor a count of disjoint paths, which knows nothing of shared-risk groups.

    tree      the most reliable path to each receiver
    add       while a receiver is below the target: of the candidates for the receiver that is furthest below it, the one that closes the
              most of all receivers' distance for its cost
    remove    the most expensive links without which the target is met too, those of the tree included
    replace   some chosen links by a cheaper one
    verify    add and remove once more, by the exact computation instead of the sample of failures that served until here

Finding the cheapest choice is NP-hard (it contains the cheapest 2-edge-connected subgraph). A graph of few links gets it all the
same (`exhaustion`); tests compare larger plans with long searches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import sqrt

import msgspec

from eventing.overlay.machine import Id
from eventing.overlay.routing.candidates import RouteCandidates
from eventing.overlay.routing.choosing import Choice, Choosing, cost_of
from eventing.overlay.routing.exact_judge import ExactJudge
from eventing.overlay.routing.exhaustion import EXHAUSTION_LINKS_MAX, cheapest_choice
from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.reliability import Estimate, reliability_of
from eventing.overlay.routing.sampling import FailureSample
from eventing.overlay.routing.tree import reliability_tree

PLAN_STATES_MAX = (
    500  # bound: states of each step while a plan is verified; reliabilities are bounds, the lower one counts
)
TARGET_MAX = 0.999999
"""Of a target: the most that estimates of links can distinguish from certainty."""
SAMPLE_LOSSES = 200
"""Trials of a sample in which a receiver that just meets the target is missed: its reliability is known to 7 % of the losses."""
SAMPLE_SIGMAS = 4.0
"""Standard deviations by which a receiver may be below the target in a sample, and be looked at exactly all the same."""
SAMPLE_TRIALS_MAX = (
    200_000  # bound: trials of the sample of one plan; above a target of 0.998 the exact computation corrects more
)


class RoutePlan(msgspec.Struct, frozen=True):
    """Links for the feeds of one origin, with what they promise.

    Attributes:
        tree: chosen links of the most reliable paths.
        added: chosen links beside them.
        reliability: of each receiver over all chosen links.
        missed: receivers below the target, with the reason for people: "unreachable: best 0.981".
    """

    tree: tuple[RouteLink, ...]
    added: tuple[RouteLink, ...]
    reliability: dict[Id, Estimate]
    missed: dict[Id, str]

    @property
    def links(self) -> tuple[RouteLink, ...]:
        """Return all chosen links."""
        return self.tree + self.added

    @property
    def cost(self) -> float:
        """Return the cost of all chosen links."""
        return cost_of(self.links)


def plan_routes(graph: RouteGraph, origin: Id, receivers: Collection[Id], target: float) -> RoutePlan:
    """Choose links so that a run of the origin reaches each receiver with the target reliability.

    A receiver that no choice can bring to the target keeps its most reliable path; it is listed as missed with the best that all
    links together could do. Equal arguments give equal plans, at every domain.

    Args:
        receivers: domains that the target holds for; other domains may relay.
        target: 0 to TARGET_MAX; 0 asks for the tree only.

    Raises:
        ValueError: if the target is out of its range.
    """
    if not 0.0 <= target <= TARGET_MAX:
        raise ValueError(f"target {target} is not from 0 to {TARGET_MAX}")
    wanted = sorted(dict.fromkeys(one for one in receivers if one != origin))
    return _Planning(graph, origin, wanted, target).plan()


class _Planning:
    """State of one plan."""

    def __init__(self, graph: RouteGraph, origin: Id, receivers: Sequence[Id], target: float) -> None:
        self._graph = graph
        self._origin = origin
        self._receivers = receivers
        self._target = target
        self._candidates = RouteCandidates(graph, origin)
        self._exact = ExactJudge(graph, origin)
        self._best: dict[Id, Estimate] = {}

    def plan(self) -> RoutePlan:
        tree = reliability_tree(self._graph, self._origin, self._receivers)
        chosen = dict.fromkeys(tree)
        if self._target > 0.0:
            small = len(self._candidates.useful) <= EXHAUSTION_LINKS_MAX
            chosen = self._cheapest() if small else self._near_cheapest(chosen)
        reliability = reliability_of(self._graph, list(chosen), self._origin, self._receivers)
        return RoutePlan(
            tree=tuple(link for link in tree if link in chosen),
            added=tuple(link for link in chosen if link not in tree),
            reliability=reliability,
            missed={one: self._reason(one) for one in self._receivers if reliability[one].lower < self._target},
        )

    def _cheapest(self) -> Choice:
        """Try all choices; receivers out of reach of the target keep their best paths."""
        useful = self._candidates.useful
        best = self._exact.reliability(useful, self._receivers)
        met = [one for one in self._receivers if best[one] >= self._target]
        exact = Choosing(self._candidates, met, self._target, self._exact)
        links = cheapest_choice(useful, met, self._target, lambda links: exact.meets(dict.fromkeys(links)))
        return dict.fromkeys(links or ()) | self._paths_of([one for one in self._receivers if one not in met])

    def _near_cheapest(self, chosen: Choice) -> Choice:
        trials = min(round(SAMPLE_LOSSES / (1.0 - self._target)), SAMPLE_TRIALS_MAX)
        sampled = FailureSample(self._graph, self._origin, trials)
        best = sampled.reliability(self._candidates.useful, self._receivers)
        slack = SAMPLE_SIGMAS * sqrt(self._target * (1.0 - self._target) / trials)
        met = [one for one in self._receivers if best[one] >= self._target - slack]
        choosing, chosen, _ = self._raised(
            chosen, met, lambda of: Choosing(self._candidates, of, self._target, sampled)
        )
        chosen = choosing.rerouted(choosing.replaced(choosing.without_idle(chosen)))
        choosing, chosen, met = self._raised(
            chosen, met, lambda of: Choosing(self._candidates, of, self._target, self._exact, sampled, slack)
        )
        chosen = choosing.without_idle(chosen)
        return chosen | self._paths_of([one for one in self._receivers if one not in met])

    def _raised(
        self, chosen: Choice, receivers: Sequence[Id], steps_for: Callable[[Sequence[Id]], Choosing]
    ) -> tuple[Choosing, Choice, list[Id]]:
        """Add what receivers lack; return those that meet the target then, with the steps for these alone."""
        chosen, short = steps_for(receivers).raised(chosen)
        met = [one for one in receivers if one not in short]
        return steps_for(met), chosen, met

    def _paths_of(self, receivers: Sequence[Id]) -> Choice:
        return dict.fromkeys(link for one in receivers for link in self._candidates.best_path(one))

    def _reason(self, receiver: Id) -> str:
        """Tell the best that all links together could do."""
        if not self._best:
            self._best = reliability_of(self._graph, self._candidates.useful, self._origin, self._receivers)
        best = self._best[receiver]
        if best.upper < self._target:
            return f"unreachable: best {_shown(best.upper)}"
        if best.exact:
            return f"not reached by this plan: best {_shown(best.upper)}"
        return f"not reached by this plan: best between {_shown(best.lower)} and {_shown(best.upper)}"


def _shown(reliability: float) -> str:
    """Round down, so that nothing below a target reads as equal to it."""
    return f"{int(reliability * 1e6) / 1e6:g}"
