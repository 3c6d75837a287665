"""Domains that choose their links for themselves, each from a map in which rows are missing or old: cost, and what receivers get."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

from eventing.overlay.machine import Chance
from eventing.overlay.routing.choosing import cost_of
from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.link_estimates import LinkEstimate, observed, stepped
from eventing.overlay.routing.local_choice import corrected_choice, first_choice
from eventing.overlay.routing.planning import plan_routes
from eventing.overlay.routing.reliability import reliability_of
from eventing.sim.routes.long_search import long_search

OBSERVATIONS = 10_000
"""Runs and probes that each estimate rests on: half a day of a probe every five seconds."""
MISSING = 0.02
"""Share of rows that a map lacks."""
OLD = 0.05
"""Share of rows that are of an earlier time: their estimates rest on other observations."""
ROUNDS = 2
"""Corrections of each domain."""


class LocalResult(NamedTuple):
    """Outcome for one graph.

    Attributes:
        best: cost of the best choice of a long search with the whole map.
        planned: cost of the plan with the whole map.
        first, corrected: cost of the links that domains chose, before and after corrections.
        first_met, corrected_met: share of receivers whose true reliability is at the target.
    """

    best: float
    planned: float
    first: float
    corrected: float
    first_met: float
    corrected_met: float


class _Row(NamedTuple):
    """Estimates of the links of one domain, by their other end: the present row and an earlier one."""

    present: dict[int, float]
    earlier: dict[int, float]


def decide_locally(true: RouteGraph, target: float, chance: Chance, search_rounds: int) -> LocalResult:
    """Let all domains of a graph decide, and search for the best choice with the whole map."""
    domains = sorted(dict.fromkeys(end for link in true.links for end in (link.a, link.b)))
    origin = domains[0]
    rows = _rows(true, domains, chance)
    whole = _graph(true, {one: rows[one].present for one in domains})
    plan = plan_routes(whole, origin, domains, target)
    views = {one: _graph(true, _seen(one, true, rows, chance)) for one in domains}
    announced = {one: first_choice(views[one], one, origin, domains, target).neighbours for one in domains}
    first, first_met = _measured(true, origin, domains, announced, target)
    for _ in range(ROUNDS):
        for one in chance.sample(domains, len(domains)):
            announced[one] = corrected_choice(views[one], one, announced, origin, domains, target).neighbours
    corrected, corrected_met = _measured(true, origin, domains, announced, target)
    best = long_search(whole, origin, domains, target, plan.links, chance, search_rounds)
    return LocalResult(best, plan.cost, first, corrected, first_met, corrected_met)


def _rows(true: RouteGraph, domains: list[int], chance: Chance) -> dict[int, _Row]:
    rows = {one: _Row({}, {}) for one in domains}
    for link in true.links:
        present, earlier = (_estimated(link.probability, chance) for _ in range(2))
        for end in (link.a, link.b):
            rows[end].present[link.other(end)] = present
            rows[end].earlier[link.other(end)] = earlier
    return rows


def _estimated(probability: float, chance: Chance) -> float:
    """Return the lower bound, rounded as rows state it, that a link of some delivery is planned with (losses drawn by the sum of twelve numbers)."""
    spread = sqrt(OBSERVATIONS * probability * (1.0 - probability)) * (sum(chance.random() for _ in range(12)) - 6.0)
    lost = max(OBSERVATIONS * (1.0 - probability) + spread, 0.0)
    return stepped(observed(LinkEstimate(), 0.0, delivered=OBSERVATIONS - lost, lost=lost).planned)


def _seen(me: int, true: RouteGraph, rows: dict[int, _Row], chance: Chance) -> dict[int, dict[int, float]]:
    """Return the rows of one domain's map: those of its neighbours and its own are present always."""
    near = {end for link in true.links if me in (link.a, link.b) for end in (link.a, link.b)}
    seen = {}
    for one, row in rows.items():
        luck = 1.0 if one in near else chance.random()
        if luck >= MISSING:
            seen[one] = row.earlier if luck < MISSING + OLD else row.present
    return seen


def _graph(true: RouteGraph, rows: dict[int, dict[int, float]]) -> RouteGraph:
    """Return the graph that rows describe: the row of the smaller end counts, if there is one."""
    links = []
    for link in true.links:
        of = rows.get(link.a) or rows.get(link.b)
        if of is not None:
            other = link.b if link.a in rows else link.a
            links.append(RouteLink(link.a, link.b, of[other], link.cost))
    return RouteGraph(tuple(links))


def _measured(
    true: RouteGraph, origin: int, domains: list[int], announced: dict[int, tuple[int, ...]], target: float
) -> tuple[float, float]:
    links = [link for link in true.links if link.b in announced[link.a] or link.a in announced[link.b]]
    reliability = reliability_of(true, links, origin, domains)
    return cost_of(links), sum(of.lower >= target for of in reliability.values()) / len(domains)
