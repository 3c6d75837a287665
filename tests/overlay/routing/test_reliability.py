"""Reliability of restricted flooding: exact, or honest bounds."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from eventing.overlay.routing.graph import GRAPH_LINKS_MAX, OWN_RISKS_MAX, RouteGraph, RouteLink
from eventing.overlay.routing.reliability import reliability_of
from eventing.sim.routes.graphs import bridge, counted, drawn_graph, graph_of, grid


def exact(graph: RouteGraph, origin: object, receiver: object) -> float:
    estimate = reliability_of(graph, graph.links, origin, [receiver])[receiver]
    assert estimate.exact
    return estimate.lower


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 0.999, 1.0])
def test_a_bridge_has_its_closed_form(p: float) -> None:
    assert exact(bridge(p), "s", "t") == pytest.approx(2 * p**2 + 2 * p**3 - 5 * p**4 + 2 * p**5, abs=1e-12)


def test_published_values_are_reproduced() -> None:
    assert exact(bridge(0.9), "s", "t") == pytest.approx(0.97848, abs=1e-12)
    assert exact(grid(3), (0, 0), (2, 2)) == pytest.approx(0.972502171407, abs=1e-12)
    assert exact(grid(4), (0, 0), (3, 3)) == pytest.approx(0.975046349577, abs=1e-12)
    assert exact(grid(5), (0, 0), (4, 4)) == pytest.approx(0.975556589505, abs=1e-12)
    assert exact(graph_of(combinations(range(4), 2)), 0, 3) == pytest.approx(0.997848, abs=1e-12)
    assert exact(graph_of(combinations(range(5), 2)), 0, 4) == pytest.approx(0.9997948026, abs=1e-10)


@pytest.mark.parametrize("rungs", [1, 2, 10, 300])
def test_a_ladder_of_any_length_agrees_with_its_recurrence(rungs: int) -> None:
    """After each rung both of its ends are reached, or one of them alone (as in the ladder of Brecht and Colbourn)."""
    p = 0.95
    ends = [((at, 0), (at, 1)) for at in range(rungs)]
    ends += [((at, side), (at + 1, side)) for at in range(rungs - 1) for side in (0, 1)]
    both, single = p, 1.0 - p
    for _ in range(rungs - 1):
        one_side = 2.0 * p * (1.0 - p)
        both, single = (
            both * (p * p + one_side * p) + single * p * p,
            both * one_side * (1.0 - p) + single * p * (1.0 - p),
        )
    graph = graph_of(ends, p)
    result = reliability_of(graph, graph.links, (0, 0), [(rungs - 1, 0), (rungs - 1, 1)])
    assert sum(estimate.lower for estimate in result.values()) == pytest.approx(2.0 * both + single, abs=1e-9)


def test_every_receiver_of_a_thousand_graphs_agrees_with_counting() -> None:
    chance = Random(18)
    worst = 0.0
    for _ in range(1_000):
        graph = drawn_graph(chance, links_max=9)
        receivers = sorted({end for link in graph.links for end in (link.a, link.b)} | {0})
        found = reliability_of(graph, graph.links, 0, receivers)
        for receiver, value in counted(graph, graph.links, 0, receivers).items():
            assert found[receiver].exact
            worst = max(worst, abs(found[receiver].lower - value))
    assert worst < 1e-9


def test_a_group_fails_for_all_of_its_links_at_once() -> None:
    """Two paths of 0.95 that share one element: 0.9966, 0.9884, 0.9791 for 0.999, 0.99, 0.98 of it, not 0.9975."""
    for survival, expected in ((1.0, 0.9975), (0.999, 0.9966), (0.99, 0.9884), (0.98, 0.9791)):
        own = 0.95 / survival
        links = (RouteLink("s", "t", own, 1.0, ("operator",)), RouteLink("s", "t", own, 2.0, ("operator",)))
        together = survival * (1 - (1 - own) ** 2)
        assert exact(RouteGraph(links, {"operator": survival}), "s", "t") == pytest.approx(together, abs=1e-12)
        assert together == pytest.approx(expected, abs=2e-4)


def test_a_relay_fails_with_its_operator_and_a_receiver_is_not_counted_while_its_own_is_down() -> None:
    links = (RouteLink("s", "x", 1.0), RouteLink("x", "t", 1.0), RouteLink("s", "y", 1.0), RouteLink("y", "t", 1.0))
    members = {"x": ("relays",), "y": ("relays",), "s": ("home",), "t": ("far",)}
    graph = RouteGraph(links, {"relays": 0.9, "home": 0.5, "far": 0.5}, members)
    assert exact(graph, "s", "t") == pytest.approx(0.9, abs=1e-12)
    assert exact(graph, "s", "x") == pytest.approx(1.0, abs=1e-12)


def test_states_given_up_leave_bounds_around_the_value() -> None:
    chance = Random(7)
    given_up = 0
    for _ in range(200):
        graph = drawn_graph(chance, links_max=9)
        receivers = sorted({end for link in graph.links for end in (link.a, link.b)} | {0})
        values = counted(graph, graph.links, 0, receivers)
        for receiver, bounds in reliability_of(graph, graph.links, 0, receivers, states_max=3).items():
            assert bounds.lower - 1e-12 <= values[receiver] <= bounds.upper + 1e-12
            given_up += not bounds.exact
    assert given_up > 50


def test_more_states_give_narrower_bounds_of_a_graph_of_hundreds_of_links() -> None:
    graph = graph_of(((at, (at + step) % 53) for at in range(53) for step in (1, 7, 12, 19)), 0.97)
    widths = []
    for states_max in (10, 60):
        estimate = reliability_of(graph, graph.links, 0, [30], states_max)[30]
        assert not estimate.exact
        assert 0.0 <= estimate.lower < estimate.upper <= 1.0
        widths.append(estimate.upper - estimate.lower)
    assert widths[1] < widths[0]


def test_an_origin_reaches_itself_and_nobody_reaches_strangers() -> None:
    graph = graph_of([("a", "b"), ("c", "d")])
    result = reliability_of(graph, graph.links, "a", ["a", "b", "d", "elsewhere"])
    assert [result[one].lower for one in ("a", "b", "d", "elsewhere")] == [1.0, 0.9, 0.0, 0.0]
    assert all(estimate.exact for estimate in result.values())


@pytest.mark.parametrize(
    "links",
    [
        [RouteLink("a", "a", 0.9)],
        [RouteLink("a", "b", 1.1)],
        [RouteLink("a", "b", float("nan"))],
        [RouteLink("a", "b", 0.9, 0.0)],
        [RouteLink("a", "b", 0.9, float("inf"))],
        [RouteLink("a", "b", 0.9, 1.0, ("unknown",))],
        [RouteLink("a", "b", 0.9, 1.0, ("known",) * (OWN_RISKS_MAX + 1))],
        [RouteLink("a", "b", 0.9), RouteLink("a", "b", 0.9)],
        [RouteLink("a", at, 0.9) for at in range(GRAPH_LINKS_MAX + 1)],
    ],
)
def test_a_graph_of_numbers_out_of_range_is_refused(links: list[RouteLink]) -> None:
    with pytest.raises(ValueError):
        RouteGraph(tuple(links), {"known": 0.9})


def test_a_survival_that_is_no_probability_is_refused() -> None:
    with pytest.raises(ValueError):
        RouteGraph((), {"operator": float("nan")})
