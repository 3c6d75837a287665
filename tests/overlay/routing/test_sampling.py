"""A sample of failures agrees with the exact computation, whatever fails together."""

from __future__ import annotations

from math import sqrt
from random import Random

import pytest

from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.planning import plan_routes
from eventing.overlay.routing.reliability import reliability_of
from eventing.overlay.routing.sampling import TRIALS_MAX, FailureSample
from eventing.sim.routes.graphs import drawn_graph


def test_delivery_in_a_million_trials_is_within_three_sigma_of_the_exact_value() -> None:
    chance = Random(31)
    trials = 1_000_000
    for _ in range(3):
        graph = drawn_graph(chance, links_max=9)
        receivers = sorted({end for link in graph.links for end in (link.a, link.b)})
        sample = FailureSample(graph, 0, trials, lambda _, count: chance.getrandbits(count))
        measured = sample.reliability(graph.links, receivers)
        for receiver, exact in reliability_of(graph, graph.links, 0, receivers).items():
            given = graph.own_survival(receiver, 0) or 1.0
            sigma = sqrt(exact.lower * (1.0 - exact.lower) / (trials * given))
            assert abs(measured[receiver] - exact.lower) <= 3.0 * sigma + 1e-6


def test_a_plan_that_ignores_a_shared_risk_misses_and_one_that_knows_it_delivers() -> None:
    links = [RouteLink("s", relay, 0.99, 1.0) for relay in ("x", "y", "z")] + [
        RouteLink("x", "t", 0.99, 1.0),
        RouteLink("y", "t", 0.99, 1.0),
        RouteLink("z", "t", 0.99, 2.0),
    ]
    members = {"x": ("operator",), "y": ("operator",)}
    true = RouteGraph(tuple(links), {"operator": 0.98}, members)
    chance = Random(5)
    sample = FailureSample(true, "s", 200_000, lambda _, count: chance.getrandbits(count))
    blind = plan_routes(RouteGraph(tuple(links)), "s", ["t"], 0.999)
    aware = plan_routes(true, "s", ["t"], 0.999)
    assert not blind.missed
    assert blind.reliability["t"].lower >= 0.999
    assert sample.reliability(blind.links, ["t"])["t"] < 0.985
    assert not aware.missed
    assert sample.reliability(aware.links, ["t"])["t"] >= 0.999 - 3 * sqrt(0.001 / 200_000)


def test_the_same_names_fail_in_the_same_trials_for_everybody() -> None:
    links = (RouteLink("s", "x", 0.9), RouteLink("x", "t", 0.8), RouteLink("s", "t", 0.7))
    whole = FailureSample(RouteGraph(links), "s", 1_000).reliability(links[:2], ["t"])
    partial = FailureSample(RouteGraph(links[:2]), "s", 1_000).reliability(links[:2], ["t"])
    assert whole == partial


@pytest.mark.parametrize("trials", [0, TRIALS_MAX + 1])
def test_a_sample_of_no_trials_or_too_many_is_refused(trials: int) -> None:
    with pytest.raises(ValueError):
        FailureSample(RouteGraph(()), "s", trials)
