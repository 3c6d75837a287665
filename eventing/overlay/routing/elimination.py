"""Order of links and domains in which the reliability of a graph is computed: relevant links only, few domains open at a time.

The cost of `reliability` grows with the number of *open* domains: those with links before and after a place of the order. The
smallest number over all orders is the graph's vertex separation, NP-hard to find; a greedy choice is close to it on sparse graphs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from eventing.overlay.machine import Id
from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.tree import links_by_end


class Branch(NamedTuple):
    """A link of the computation: groups of one link are part of its probability, groups of the same links are one."""

    a: Id
    b: Id
    probability: float
    risks: tuple[int, ...]


class Reduced(NamedTuple):
    """A graph without what cannot matter, in the order of computation.

    Attributes:
        branches: relevant links, in their order.
        survivals: of the groups that `Branch.risks` counts.
    """

    branches: tuple[Branch, ...]
    survivals: tuple[float, ...]


def reduced(graph: RouteGraph, links: Sequence[RouteLink], origin: Id, receivers: Collection[Id]) -> Reduced:
    """Reduce a choice of links to what matters for some receivers, and order it."""
    kept = _ordered(_relevant(links, origin, receivers), origin)
    members: dict[str, list[int]] = {}
    for place, link in enumerate(kept):
        for risk in graph.link_risks(link, origin):
            members.setdefault(risk, []).append(place)
    alike: dict[tuple[int, ...], float] = {}
    for risk, places in members.items():
        alike[tuple(places)] = alike.get(tuple(places), 1.0) * graph.risks[risk]
    own = [link.probability for link in kept]
    risks: list[list[int]] = [[] for _ in kept]
    survivals: list[float] = []
    for group, survival in alike.items():
        if len(group) == 1:
            own[group[0]] *= survival
        elif survival < 1.0:
            for place in group:
                risks[place].append(len(survivals))
            survivals.append(survival)
    branches = [Branch(link.a, link.b, p, tuple(of)) for link, p, of in zip(kept, own, risks, strict=True)]
    return Reduced(tuple(branches), tuple(survivals))


def _relevant(links: Sequence[RouteLink], origin: Id, receivers: Collection[Id]) -> list[RouteLink]:
    """Leave out links that never work, links out of reach of the origin, and dead ends without a receiver."""
    at = links_by_end([link for link in links if link.probability > 0.0])
    reached = {origin: None}
    queue = [origin]
    for domain in queue:
        for link in at.get(domain, ()):
            end = link.other(domain)
            if end not in reached:
                reached[end] = None
                queue.append(end)
    degree = {domain: len(at.get(domain, ())) for domain in reached}
    ends = [domain for domain in queue if degree[domain] == 1]
    wanted = dict.fromkeys([origin, *receivers])
    gone: dict[RouteLink, None] = {}
    for domain in ends:
        if domain in wanted:
            continue
        for link in at[domain]:
            if link not in gone:
                gone[link] = None
                end = link.other(domain)
                degree[end] -= 1
                if degree[end] == 1:
                    ends.append(end)
    return [link for link in links if link.probability > 0.0 and link.a in reached and link not in gone]


def _ordered(links: Sequence[RouteLink], origin: Id) -> list[RouteLink]:
    """Finish one open domain after the other: next the one that opens the fewest others, the longest open first."""
    at = links_by_end(links)
    left = {domain: dict.fromkeys(of) for domain, of in at.items()}
    order: list[RouteLink] = []
    opened = {origin: None} if origin in at else {}
    while opened:
        domain = min(opened, key=lambda one: _opening(one, left, opened))
        for link in sorted(left[domain], key=lambda one: one.other(domain) not in opened):
            end = link.other(domain)
            order.append(link)
            del left[end][link]
            opened.setdefault(end)
        left[domain] = {}
        opened = {one: None for one in opened if left[one]}
    return order


def _opening(domain: Id, left: Mapping[Id, Mapping[RouteLink, None]], opened: Mapping[Id, None]) -> int:
    return len(dict.fromkeys(link.other(domain) for link in left[domain] if link.other(domain) not in opened))
