"""Local decisions: domains that know the same choose links that fit together; what maps lack is corrected by those whom it concerns."""

from __future__ import annotations

from random import Random

import pytest

from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.local_choice import Announced, corrected_choice, first_choice
from eventing.overlay.routing.planning import plan_routes
from eventing.overlay.routing.reliability import reliability_of
from eventing.sim.routes.graphs import drawn_federation, malachi
from eventing.sim.routes.local_decisions import decide_locally

DESTINATIONS = ("one", "two")


def carried(graph: RouteGraph, announced: Announced) -> list[RouteLink]:
    return [one for one in graph.links if one.b in announced.get(one.a, ()) or one.a in announced.get(one.b, ())]


def test_equal_maps_give_choices_that_are_the_plan_together() -> None:
    graph = malachi()
    plan = plan_routes(graph, "origin", DESTINATIONS, 0.99)
    domains = ("far", "one", "origin", "relay", "two")
    announced = {one: first_choice(graph, one, "origin", DESTINATIONS, 0.99).neighbours for one in domains}
    assert sorted((one.a, one.b) for one in carried(graph, announced)) == sorted((one.a, one.b) for one in plan.links)
    for one in domains:  # and nobody has anything to correct
        choice = corrected_choice(graph, one, announced, "origin", DESTINATIONS, 0.99)
        assert choice.neighbours == announced[one]


def test_a_receiver_below_the_target_adds_links_of_its_own_until_it_is_met() -> None:
    graph = malachi()
    announced: dict[str, tuple[str, ...]] = {"origin": ("one", "two", "relay")}
    choice = corrected_choice(graph, "one", announced, "origin", DESTINATIONS, 0.99)
    assert choice.reliability >= 0.99
    assert choice.neighbours
    announced["one"] = choice.neighbours
    found = reliability_of(graph, carried(graph, announced), "origin", ["one"])
    assert found["one"].lower == pytest.approx(choice.reliability)


def test_a_receiver_that_nothing_can_bring_to_the_target_takes_what_there_is() -> None:
    graph = RouteGraph((RouteLink("origin", "one", 0.9), RouteLink("origin", "two", 0.9)))
    choice = corrected_choice(graph, "one", {}, "origin", DESTINATIONS, 0.99)
    assert choice.neighbours == ("origin",)
    assert choice.reliability == pytest.approx(0.9)


def test_of_two_ends_that_chose_an_idle_link_one_gives_it_up() -> None:
    graph = malachi()
    plan = plan_routes(graph, "origin", DESTINATIONS, 0.95)
    domains = ("far", "one", "origin", "relay", "two")
    announced = {one: first_choice(graph, one, "origin", DESTINATIONS, 0.95).neighbours for one in domains}
    announced["far"] = (*announced["far"], "one")
    announced["one"] = ("far", *announced["one"])
    assert corrected_choice(graph, "one", announced, "origin", DESTINATIONS, 0.95).neighbours == announced["one"]
    announced["far"] = corrected_choice(graph, "far", announced, "origin", DESTINATIONS, 0.95).neighbours
    announced["one"] = corrected_choice(graph, "one", announced, "origin", DESTINATIONS, 0.95).neighbours
    assert len(carried(graph, announced)) == len(plan.links)


def test_domains_with_different_maps_meet_the_target_near_the_cost_of_one_plan() -> None:
    chance = Random(3)
    result = decide_locally(drawn_federation(chance, domains=10), 0.99, chance, search_rounds=0)
    assert result.corrected_met >= 0.99
    assert result.corrected <= 1.15 * result.planned
