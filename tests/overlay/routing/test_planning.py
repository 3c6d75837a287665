"""Plans: the target is met for each receiver, with few and cheap links, or it is said that nothing can."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from random import Random

import pytest

from eventing.overlay.routing.exhaustion import EXHAUSTION_LINKS_MAX, cheapest_choice
from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.planning import plan_routes
from eventing.overlay.routing.reliability import reliability_of
from eventing.sim.routes.graphs import drawn_dense, drawn_federation, malachi

ORIGIN = "origin"


def test_malachis_partners_raise_both_destinations_as_published() -> None:
    for best, partner, together in ((0.951, 0.9388, 0.997), (0.922, 0.9487, 0.996), (0.951, 0.922, 0.996178)):
        links = (RouteLink(ORIGIN, "there", best), RouteLink(ORIGIN, "there", partner))
        reached = reliability_of(RouteGraph(links), links, ORIGIN, ["there"])["there"]
        assert reached.lower == pytest.approx(together, abs=2e-6)


@pytest.mark.parametrize("target", [0.95, 0.99, 0.995, 0.999])
def test_malachis_destinations_meet_a_target_with_the_fewest_links_of_all_choices(target: float) -> None:
    graph = malachi()
    plan = plan_routes(graph, ORIGIN, ["one", "two"], target)
    assert not plan.missed
    assert all(plan.reliability[one].lower >= target for one in ("one", "two"))
    for size in range(len(plan.links)):
        for links in combinations(graph.links, size):
            found = reliability_of(graph, links, ORIGIN, ["one", "two"])
            assert min(of.lower for of in found.values()) < target


def test_a_target_of_zero_is_the_tree() -> None:
    plan = plan_routes(malachi(), ORIGIN, ["one", "two", "relay", "far"], 0.0)
    assert (len(plan.tree), plan.added, plan.missed) == (4, (), {})


def test_what_no_choice_can_reach_is_said_with_the_best() -> None:
    links = (RouteLink(ORIGIN, "near", 0.99), RouteLink("near", "far", 0.9), RouteLink("near", "far", 0.8))
    plan = plan_routes(RouteGraph(links), ORIGIN, ["near", "far", "nowhere"], 0.985)
    assert plan.missed == {"far": "unreachable: best 0.9702", "nowhere": "unreachable: best 0"}
    assert plan.reliability["near"].lower == pytest.approx(0.99)


def test_a_path_that_shares_a_risk_is_not_counted_as_a_second_one() -> None:
    links = (
        RouteLink(ORIGIN, "there", 0.99, 1.0, ("operator",)),
        RouteLink(ORIGIN, "there", 0.98, 1.0, ("operator",)),
        RouteLink(ORIGIN, "there", 0.95, 3.0),
    )
    plan = plan_routes(RouteGraph(links, {"operator": 0.97}), ORIGIN, ["there"], 0.99)
    assert plan.added == (links[2],)
    assert not plan.missed


def test_the_product_of_paths_is_not_what_ranks_pairs() -> None:
    """The pair (0.90, 0.90) has the larger product and misses 0.995; (0.99, 0.80) meets it."""
    links = tuple(RouteLink(ORIGIN, "there", p, cost) for p, cost in ((0.9, 1.0), (0.9, 1.1), (0.99, 1.2), (0.8, 1.0)))
    plan = plan_routes(RouteGraph(links), ORIGIN, ["there"], 0.995)
    assert not plan.missed
    assert plan.cost == pytest.approx(2.2)


@pytest.mark.parametrize("target", [-0.1, 1.0, float("nan")])
def test_a_target_that_cannot_be_planned_for_is_refused(target: float) -> None:
    with pytest.raises(ValueError):
        plan_routes(malachi(), ORIGIN, ["one"], target)


@pytest.mark.parametrize(
    ("seed", "target"), [(0, 0.99), pytest.param(2, 0.999, marks=[pytest.mark.long, pytest.mark.soak])]
)
def test_a_plan_for_thirty_domains_meets_the_target_at_all_of_them(seed: int, target: float) -> None:
    graph = drawn_federation(Random(seed))
    plan = plan_routes(graph, 0, range(30), target)
    assert not plan.missed
    assert all(estimate.lower >= target for estimate in plan.reliability.values())
    assert plan.cost < 0.5 * sum(link.cost for link in graph.links)
    for link in plan.links:  # none is idle
        less = [one for one in plan.links if one != link]
        assert min(of.lower for of in reliability_of(graph, less, 0, range(30)).values()) < target


def test_equal_arguments_give_equal_plans_in_whatever_order_receivers_are_named() -> None:
    graph = drawn_federation(Random(4), domains=14)
    assert plan_routes(graph, 0, range(14), 0.99) == plan_routes(graph, 0, list(range(13, -1, -1)), 0.99)


def test_plans_close_to_the_optimum_are_found_without_trying_all_choices() -> None:
    """Six-domain graphs of 13 links: one more than are tried exhaustively."""
    costs = []
    for seed in range(12):
        graph = drawn_dense(Random(seed), domains=6, links=EXHAUSTION_LINKS_MAX + 1)
        plan = plan_routes(graph, 0, range(6), 0.98)

        def meets(links: Sequence[RouteLink], graph: RouteGraph = graph) -> bool:
            return all(of.lower >= 0.98 for of in reliability_of(graph, links, 0, range(6)).values())

        best = cheapest_choice(graph.links, range(6), 0.98, meets)
        assert best is not None
        costs.append(plan.cost / sum(link.cost for link in best))
    assert min(costs) >= 1.0 - 1e-9  # nothing is cheaper than the optimum
    assert sorted(costs)[len(costs) // 2] <= 1.05
    assert max(costs) <= 1.25
