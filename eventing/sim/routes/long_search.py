"""A long search for a cheap choice of links, as a measure for plans: the true optimum of a graph of 90 links is out of reach.

The plan is changed at random and repaired, over and over (large neighbourhood search: Shaw, 1998); what is as cheap or cheaper is
kept. A choice counts if the exact computation confirms it.
"""

from __future__ import annotations

from collections.abc import Collection

from eventing.overlay.machine import Chance, Id
from eventing.overlay.routing.candidates import RouteCandidates
from eventing.overlay.routing.choosing import Choice, Choosing, cost_of
from eventing.overlay.routing.exact_judge import ExactJudge
from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.sampling import FailureSample

TRIALS = 20_000
"""Trials of the sample on which choices are compared."""
RUINED_MAX = 8
"""Links that one change takes away at most."""


def long_search(
    graph: RouteGraph,
    origin: Id,
    receivers: Collection[Id],
    target: float,
    start: Collection[RouteLink],
    chance: Chance,
    rounds: int,
) -> float:
    """Return the cost of the cheapest choice found that meets the target.

    Args:
        start: a choice that meets the target.
        rounds: changes to try.
    """
    wanted = [one for one in receivers if one != origin]
    candidates = RouteCandidates(graph, origin)
    sampled = Choosing(candidates, wanted, target, FailureSample(graph, origin, TRIALS))
    exact = Choosing(candidates, wanted, target, ExactJudge(graph, origin))
    chosen: Choice = dict.fromkeys(start)
    best = cost_of(chosen)
    for _ in range(rounds):
        other = _changed(sampled, graph, chosen, chance)
        if other is None or cost_of(other) > cost_of(chosen):
            continue
        if cost_of(other) < best - 1e-9:
            other, short = exact.raised(other)
            if not short:
                other = exact.without_idle(other)
                best = min(best, cost_of(other))
        chosen = other
    return best


def _changed(sampled: Choosing, graph: RouteGraph, chosen: Choice, chance: Chance) -> Choice | None:
    """Take some links near each other away and add some others, then repair; None if that fails."""
    centre = chance.choice(list(chosen))
    near = [link for link in chosen if {link.a, link.b} & {centre.a, centre.b}]
    others = [link for link in chosen if link not in near]
    gone = near + chance.sample(others, min(len(others), chance.randrange(RUINED_MAX)))
    left = {link: None for link in chosen if link not in gone}
    unused = [link for link in graph.links if link not in chosen]
    more = left | dict.fromkeys(chance.sample(unused, min(len(unused), 1 + chance.randrange(4))))
    changed, short = sampled.raised(more)
    return None if short else sampled.without_idle(changed)
