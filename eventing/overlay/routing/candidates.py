"""RouteCandidates of a plan: links, and what is lacking of whole paths, that may raise the reliability of one receiver."""

from __future__ import annotations

from collections.abc import Collection
from math import inf

from eventing.overlay.machine import Id
from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.paths import disjoint_pair, shortest_paths
from eventing.overlay.routing.tree import lengths_of, links_by_end, path_to, shortest_tree

PATHS = 4
"""Shortest paths among the candidates for one receiver (guess: more repeat the same links)."""

Bundle = tuple[RouteLink, ...]


class RouteCandidates:
    """RouteCandidates for all receivers of one origin.

    Attributes:
        useful: links that work at times.
    """

    def __init__(self, graph: RouteGraph, origin: Id) -> None:
        self._graph = graph
        self._origin = origin
        self._at = links_by_end(graph.links)
        self._lengths = lengths_of(graph, origin)
        self._via = shortest_tree(self._at, self._lengths, origin)
        self._paths: dict[Id, list[list[RouteLink]]] = {}
        self.useful = tuple(link for link in graph.links if self._lengths[link] < inf)

    def best_path(self, receiver: Id) -> list[RouteLink]:
        """Return the most reliable path; empty if there is none."""
        return path_to(self._via, self._origin, receiver) or []

    def bundles(self, chosen: Collection[RouteLink], receiver: Id) -> list[Bundle]:
        """Return single links that are not chosen, and what the chosen ones lack of paths to a receiver."""
        if receiver not in self._paths:
            self._paths[receiver] = self._paths_to(receiver)
        found: dict[Bundle, None] = {(link,): None for link in self.useful if link not in chosen}
        for path in self._paths[receiver]:
            lacking = tuple(dict.fromkeys(link for link in path if link not in chosen))
            if lacking:
                found.setdefault(lacking)
        return list(found)

    def _paths_to(self, receiver: Id) -> list[list[RouteLink]]:
        paths = shortest_paths(self._at, self._lengths, self._origin, receiver, PATHS)
        pair = disjoint_pair(self._at, self._lengths, self._origin, receiver)
        if pair:
            paths += [*pair, pair[0] + pair[1]]
        apart = self._apart(receiver)
        return [*paths, apart] if apart else paths

    def _apart(self, receiver: Id) -> list[RouteLink] | None:
        """Return the shortest path without a link or a risk of the most reliable one, if there is one."""
        first = self.best_path(receiver)
        risks = dict.fromkeys(risk for link in first for risk in self._passed(link, receiver))
        left = {
            link: length
            for link, length in self._lengths.items()
            if link not in first and not any(risk in risks for risk in self._passed(link, receiver))
        }
        return path_to(shortest_tree(self._at, left, self._origin), self._origin, receiver)

    def _passed(self, link: RouteLink, receiver: Id) -> list[str]:
        """Return the groups of a link, and of its ends that would relay."""
        relays = [end for end in (link.a, link.b) if end not in (self._origin, receiver)]
        return [*link.risks, *(risk for end in relays for risk in self._graph.members.get(end, ()))]
