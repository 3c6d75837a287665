"""Graphs of routes: known ones, drawn ones, and their reliability by counting every combination of failures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product

from eventing.overlay.machine import Chance, Id
from eventing.overlay.routing.graph import RouteGraph, RouteLink


def graph_of(ends: Iterable[tuple[Id, Id]], probability: float = 0.9) -> RouteGraph:
    """Make a graph of equal links."""
    return RouteGraph(tuple(RouteLink(a, b, probability) for a, b in ends))


def bridge(probability: float = 0.9) -> RouteGraph:
    """Make the bridge: two paths of two links from "s" to "t", and a link between their middles."""
    return graph_of([("s", "x"), ("s", "y"), ("x", "y"), ("x", "t"), ("y", "t")], probability)


def grid(side: int) -> RouteGraph:
    """Make a square grid of links of 0.9."""
    across = [((row, at), (row, at + 1)) for row in range(side) for at in range(side - 1)]
    return graph_of(across + [((at, row), (at + 1, row)) for row in range(side) for at in range(side - 1)])


def malachi() -> RouteGraph:
    """Make a graph of two destinations: the best path delivers 0.951 to one and 0.922 to the other; several links could help."""
    ends = {
        ("origin", "one"): 0.951,
        ("origin", "two"): 0.922,
        ("origin", "relay"): 0.99,
        ("relay", "one"): 0.95,
        ("relay", "two"): 0.95,
        ("one", "two"): 0.98,
        ("origin", "far"): 0.97,
        ("far", "one"): 0.93,
        ("far", "two"): 0.94,
    }
    return RouteGraph(tuple(RouteLink(a, b, probability) for (a, b), probability in ends.items()))


def drawn_graph(chance: Chance, domains_max: int = 7, links_max: int = 12, risks_max: int = 3) -> RouteGraph:
    """Draw a small graph: parallel links, certain and dead ones, unreachable domains and shared risks are among them."""
    domains = 2 + chance.randrange(domains_max - 1)
    risks = {f"risk {at}": chance.choice((chance.random(), 0.99)) for at in range(chance.randrange(risks_max + 1))}
    links = []
    for at in range(1 + chance.randrange(links_max)):
        a, b = chance.sample(range(domains), 2)
        probability = chance.choice((chance.random(), 0.9, 0.99, 1.0, 0.0))
        shared = tuple(risk for risk in risks if chance.random() < 0.3)
        links.append(RouteLink(a, b, probability, float(at + 1), shared))
    members = {domain: tuple(risk for risk in risks if chance.random() < 0.2) for domain in range(domains)}
    return RouteGraph(tuple(links), risks, members)


def drawn_federation(chance: Chance, domains: int = 30, near: int = 2, far: int = 2) -> RouteGraph:
    """Draw domains on a map, each with links to the nearest ones and to some drawn ones; losses and costs differ."""
    places = [(chance.random(), chance.random()) for _ in range(domains)]
    ends: dict[tuple[int, int], None] = {}
    for one in range(domains):
        x, y = places[one]
        others = sorted(
            (other for other in range(domains) if other != one),
            key=lambda other: (places[other][0] - x) ** 2 + (places[other][1] - y) ** 2,
        )
        for other in others[:near] + chance.sample(others, far):
            ends[min(one, other), max(one, other)] = None
    return RouteGraph(tuple(_drawn_link(chance, a, b, 0.93, 0.995) for a, b in ends))


def drawn_dense(chance: Chance, domains: int, links: int) -> RouteGraph:
    """Draw some of all links between a few domains."""
    ends = chance.sample(list(combinations(range(domains), 2)), links)
    return RouteGraph(tuple(_drawn_link(chance, a, b, 0.9, 0.99) for a, b in ends))


def _drawn_link(chance: Chance, a: int, b: int, least: float, most: float) -> RouteLink:
    return RouteLink(a, b, round(least + (most - least) * chance.random(), 4), float(1 + chance.randrange(5)))


def counted(graph: RouteGraph, links: Sequence[RouteLink], origin: Id, receivers: Sequence[Id]) -> dict[Id, float]:
    """Compute reliabilities from all combinations of working and failed links and groups.

    Each is given that the groups of the origin and the receiver survive; 0 where these never do together.
    """
    names = list(graph.risks)
    bit = {name: 1 << at for at, name in enumerate(names)}

    def mask(risks: Iterable[str]) -> int:
        return sum(bit[risk] for risk in dict.fromkeys(risks))

    own = {one: mask((*graph.members.get(one, ()), *graph.members.get(origin, ()))) for one in receivers}
    needs = [mask((*link.risks, *graph.members.get(link.a, ()), *graph.members.get(link.b, ()))) for link in links]
    reached = [_reached(links, ups, origin, receivers) for ups in product((False, True), repeat=len(links))]
    result, given = dict.fromkeys(receivers, 0.0), dict.fromkeys(receivers, 0.0)
    for survived in range(1 << len(names)):
        weight = 1.0
        for name in names:
            weight *= graph.risks[name] if survived & bit[name] else 1.0 - graph.risks[name]
        for one in receivers:
            given[one] += weight if survived & own[one] == own[one] else 0.0
        weights = [weight]
        for link, need in zip(links, needs, strict=True):
            works = link.probability if survived & need == need else 0.0
            weights = [one * part for one in weights for part in (1.0 - works, works)]
        for share, ends in zip(weights, reached, strict=True):
            if share:
                for end in ends:
                    if survived & own[end] == own[end]:
                        result[end] += share
    return {one: result[one] / given[one] if given[one] else 0.0 for one in receivers}


def _reached(links: Sequence[RouteLink], ups: Sequence[bool], origin: Id, receivers: Sequence[Id]) -> list[Id]:
    working = [link for link, up in zip(links, ups, strict=True) if up]
    seen = {origin: None}
    grown = True
    while grown:
        grown = False
        for link in working:
            if (link.a in seen) != (link.b in seen):
                seen[link.other(link.a if link.a in seen else link.b)] = None
                grown = True
    return [end for end in receivers if end in seen]
