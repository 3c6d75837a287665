"""The evaluator agrees with Graphillion, which computes reliabilities by zero-suppressed decision diagrams."""

from __future__ import annotations

from random import Random

import pytest
from graphillion import GraphSet

from eventing.overlay.machine import Id
from eventing.overlay.routing.graph import RouteGraph
from eventing.overlay.routing.reliability import reliability_of
from eventing.sim.routes.graphs import drawn_dense, drawn_federation, grid


def by_graphillion(graph: RouteGraph, origin: Id, receiver: Id) -> float:
    ends = {(link.a, link.b): link.probability for link in graph.links}
    GraphSet.set_universe(list(ends))
    return float(GraphSet.reliability(ends, [origin, receiver]))


@pytest.mark.parametrize(
    ("graph", "origin", "receivers"),
    [
        (grid(4), (0, 0), [(3, 3), (0, 3), (2, 2)]),
        (drawn_dense(Random(1), domains=9, links=20), 0, [1, 8]),
        (drawn_federation(Random(3), domains=13, near=2, far=1), 0, [5, 10]),
    ],
    ids=["grid", "dense", "federation"],
)
def test_reliabilities_agree_with_graphillion(graph: RouteGraph, origin: Id, receivers: list[Id]) -> None:
    found = reliability_of(graph, graph.links, origin, receivers, states_max=100_000)
    for receiver in receivers:
        assert found[receiver].exact
        assert found[receiver].lower == pytest.approx(by_graphillion(graph, origin, receiver), abs=1e-9)
