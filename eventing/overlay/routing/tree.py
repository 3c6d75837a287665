"""Tree of the most reliable path to each receiver: Dijkstra's algorithm on the negative logarithm of survival."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import heappop, heappush
from math import inf

from eventing.overlay.machine import Id
from eventing.overlay.routing.graph import RouteGraph, RouteLink


def links_by_end(links: Sequence[RouteLink]) -> dict[Id, list[RouteLink]]:
    """Return the links of each domain, in their order."""
    at: dict[Id, list[RouteLink]] = {}
    for link in links:
        at.setdefault(link.a, []).append(link)
        at.setdefault(link.b, []).append(link)
    return at


def lengths_of(graph: RouteGraph, origin: Id) -> dict[RouteLink, float]:
    """Return the length of each link (`RouteGraph.length`)."""
    return {link: graph.length(link, origin) for link in graph.links}


def shortest_tree(
    at: Mapping[Id, Sequence[RouteLink]], lengths: Mapping[RouteLink, float], origin: Id
) -> dict[Id, RouteLink]:
    """Return the last link of the shortest path to each domain in reach; of equal paths the one found first."""
    distance: dict[Id, float] = {origin: 0.0}
    via: dict[Id, RouteLink] = {}
    heap: list[tuple[float, int, Id]] = [(0.0, 0, origin)]
    entered, settled = 0, dict[Id, None]()
    while heap:
        far, _, domain = heappop(heap)
        if domain in settled:
            continue
        settled[domain] = None
        for link in at.get(domain, ()):
            end, length = link.other(domain), lengths.get(link, inf)
            if length < inf and far + length < distance.get(end, inf):
                distance[end] = far + length
                via[end] = link
                entered += 1
                heappush(heap, (far + length, entered, end))
    return via


def path_to(via: Mapping[Id, RouteLink], origin: Id, receiver: Id) -> list[RouteLink] | None:
    """Return the path from the origin to a receiver; None if it is out of reach."""
    path: list[RouteLink] = []
    while receiver != origin:
        link = via.get(receiver)
        if link is None:
            return None
        path.append(link)
        receiver = link.other(receiver)
    return path[::-1]


def reliability_tree(graph: RouteGraph, origin: Id, receivers: Collection[Id]) -> tuple[RouteLink, ...]:
    """Return the links of the most reliable paths to all receivers in reach."""
    via = shortest_tree(links_by_end(graph.links), lengths_of(graph, origin), origin)
    kept: dict[RouteLink, None] = {}
    for receiver in receivers:
        kept.update(dict.fromkeys(path_to(via, origin, receiver) or ()))
    return tuple(kept)
