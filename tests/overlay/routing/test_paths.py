"""Paths among the candidates: found together where one alone would mislead."""

from __future__ import annotations

from itertools import pairwise, permutations
from random import Random

import pytest

from eventing.overlay.machine import Id
from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.paths import disjoint_pair, shortest_paths
from eventing.overlay.routing.tree import lengths_of, links_by_end, reliability_tree
from eventing.sim.routes.graphs import drawn_dense


def simple_paths(links: tuple[RouteLink, ...], origin: Id, receiver: Id) -> list[list[RouteLink]]:
    """List all paths without a loop."""
    domains = sorted({end for link in links for end in (link.a, link.b)} - {origin, receiver})
    of = {frozenset((link.a, link.b)): link for link in links}
    found = []
    for count in range(len(domains) + 1):
        for between in permutations(domains, count):
            stops = [origin, *between, receiver]
            hops = [of.get(frozenset(pair)) for pair in pairwise(stops)]
            if all(hops):
                found.append([hop for hop in hops if hop is not None])
    return found


def test_the_pair_is_found_although_the_best_path_is_part_of_none() -> None:
    """Suurballe's trap: without the links of the best path s-a-b-t nothing leads from s to t."""
    links = (
        RouteLink("s", "a", 0.99),
        RouteLink("a", "b", 0.99),
        RouteLink("b", "t", 0.99),
        RouteLink("s", "b", 0.9),
        RouteLink("a", "t", 0.9),
    )
    pair = disjoint_pair(links_by_end(links), lengths_of(RouteGraph(links), "s"), "s", "t")
    assert pair is not None
    assert sorted(sorted((link.a, link.b) for link in path) for path in pair) == [
        [("a", "t"), ("s", "a")],
        [("b", "t"), ("s", "b")],
    ]


@pytest.mark.parametrize("seed", range(30))
def test_pairs_and_shortest_paths_are_those_of_trying_all(seed: int) -> None:
    graph = drawn_dense(Random(seed), domains=6, links=9)
    at, lengths = links_by_end(graph.links), lengths_of(graph, 0)

    def length(path: list[RouteLink]) -> float:
        return sum(lengths[link] for link in path)

    every = sorted(simple_paths(graph.links, 0, 5), key=length)
    found = shortest_paths(at, lengths, 0, 5, 4)
    assert [length(path) for path in found] == pytest.approx([length(path) for path in every[:4]])
    pairs = [length(one) + length(other) for one in every for other in every if not set(one) & set(other)]
    pair = disjoint_pair(at, lengths, 0, 5)
    if not pairs:
        assert pair is None
    else:
        assert pair is not None
        assert not set(pair[0]) & set(pair[1])
        assert length(pair[0]) + length(pair[1]) == pytest.approx(min(pairs))


def test_the_two_paths_may_meet_at_a_domain() -> None:
    ends = [("s", "a"), ("s", "b"), ("a", "x"), ("b", "x"), ("x", "c"), ("x", "d"), ("c", "t"), ("d", "t")]
    links = tuple(RouteLink(a, b, 0.9) for a, b in ends)
    pair = disjoint_pair(links_by_end(links), lengths_of(RouteGraph(links), "s"), "s", "t")
    assert pair is not None
    assert sorted(len(path) for path in pair) == [4, 4]


def test_there_is_no_path_to_who_is_out_of_reach() -> None:
    links = (RouteLink("s", "a", 0.9), RouteLink("b", "t", 0.9), RouteLink("a", "b", 0.0))
    graph = RouteGraph(links)
    at, lengths = links_by_end(links), lengths_of(graph, "s")
    assert disjoint_pair(at, lengths, "s", "t") is None
    assert shortest_paths(at, lengths, "s", "t", 3) == []
    assert reliability_tree(graph, "s", ["t", "a"]) == links[:1]
