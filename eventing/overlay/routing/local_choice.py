"""Local decisions: each domain chooses among its own links, from the map as it holds it and from what others announce.

    first       every domain plans from its map, and chooses its own links of that plan. Equal maps give equal plans, so most of the choices
                fit together without a word between domains.
    announce    a domain's choice is part of its row of the map. A link carries runs if one of its ends has chosen it.
    correct     maps differ by rows that are late or missing. A receiver that is below the target over what is announced adds links of its own,
                the best for their cost first. A domain gives up own links without which every receiver meets the target, or loses
                nothing, the most expensive first: one that both ends chose is given up by its smaller end alone, so that two ends do not
                rely on each other.

Domains correct at different times (the caller adds jitter), so each sees what the one before it announced.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from eventing.overlay.machine import Id
from eventing.overlay.routing.exact_judge import ExactJudge
from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.planning import plan_routes

Announced = Mapping[Id, Collection[Id]]
"""Neighbours that each domain has chosen links to, by domain."""


class LocalChoice(msgspec.Struct, frozen=True):
    """Links of one domain that are to carry runs of an origin.

    Attributes:
        neighbours: their other ends.
        reliability: of this domain over all announced links and these, as far as its map is complete.
    """

    neighbours: tuple[Id, ...]
    reliability: float


def first_choice(graph: RouteGraph, me: Id, origin: Id, receivers: Collection[Id], target: float) -> LocalChoice:
    """Choose the own links of the plan that the own map gives."""
    plan = plan_routes(graph, origin, receivers, target)
    reached = plan.reliability[me].lower if me in plan.reliability else 1.0
    return LocalChoice(_neighbours(plan.links, me), reached)


def corrected_choice(
    graph: RouteGraph, me: Id, announced: Announced, origin: Id, receivers: Collection[Id], target: float
) -> LocalChoice:
    """Add own links that this domain needs, and give up those that nobody needs.

    Args:
        graph: the own map.
        announced: choices of all domains, this one's included; links that the own map does not have do not count.
    """
    judge = ExactJudge(graph, origin)
    own = {link: None for link in graph.links if me in (link.a, link.b)}
    chosen = {
        link: None for link in graph.links if link.b in announced.get(link.a, ()) or link.a in announced.get(link.b, ())
    }
    mine = {link: None for link in own if link.other(me) in announced.get(me, ())}
    if me in receivers and me != origin:
        for link in _needed(judge, list(chosen), own, me, target):
            chosen[link] = mine[link] = None
    floor = {one: min(value, target) for one, value in judge.reliability(chosen, receivers).items()}
    for link in sorted(mine, key=lambda one: -one.cost):
        other = link.other(me)
        if me in announced.get(other, ()) and other < me:
            continue
        less = [one for one in chosen if one != link]
        if all(value >= floor[one] for one, value in judge.reliability(less, receivers).items()):
            chosen = dict.fromkeys(less)
            del mine[link]
    return LocalChoice(_neighbours(mine, me), judge.reliability(chosen, [me])[me])


def _needed(
    judge: ExactJudge, chosen: Sequence[RouteLink], own: Collection[RouteLink], me: Id, target: float
) -> list[RouteLink]:
    """Return own links that bring this domain to the target, or as near as they can."""
    added: list[RouteLink] = []
    now = judge.reliability(chosen, [me])[me]
    while now < target:
        gains = []
        for place, link in enumerate(own):
            if link not in chosen and link not in added:
                then = judge.raised([*chosen, *added], [link], [me])[me]
                gains.append((-(min(then, target) - now) / link.cost, place, then, link))
        if not gains or min(gains)[0] >= 0.0:
            break
        _, _, now, link = min(gains)
        added.append(link)
    return added


def _neighbours(links: Collection[RouteLink], me: Id) -> tuple[Id, ...]:
    return tuple(sorted(link.other(me) for link in links if me in (link.a, link.b)))
