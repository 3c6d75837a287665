"""Shared risks: what domains state, and what losses that come together show."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from eventing.overlay.routing.graph import RouteGraph, RouteLink
from eventing.overlay.routing.reliability import reliability_of
from eventing.overlay.routing.shared_risks import (
    SURVIVAL,
    JointLosses,
    groups_by_losses,
    groups_by_traits,
    interval_counted,
    own_delivery,
)


def test_domains_of_one_operator_are_a_group_and_a_trait_of_one_domain_is_none() -> None:
    risks, members = groups_by_traits(
        {
            "a": {"operator": "north", "zone": "eu"},
            "b": {"operator": "north", "zone": ""},
            "c": {"operator": "south", "colour": "green"},
            "d": {"colour": "green", "zone": "eu"},
        }
    )
    assert risks == {"operator:north": SURVIVAL["operator"], "zone:eu": SURVIVAL["zone"]}
    assert members == {"a": ("operator:north", "zone:eu"), "b": ("operator:north",), "d": ("zone:eu",)}


def measured(
    links: int, intervals: int, lost: float, shared: dict[int, float], seed: int
) -> dict[tuple[int, int], JointLosses]:
    """Measure pairs of links that lose independently, and of which some fail together."""
    chance = Random(seed)
    pairs = {pair: JointLosses() for pair in combinations(range(links), 2)}
    for interval in range(intervals):
        common = chance.random()
        losing = [chance.random() < lost or common < shared.get(link, 0.0) for link in range(links)]
        for one, other in pairs:
            pairs[one, other] = interval_counted(pairs[one, other], float(interval), losing[one], losing[other])
    return pairs


def test_links_that_fail_together_are_found_and_others_are_not() -> None:
    pairs = measured(8, 4_000, 0.01, {1: 0.02, 4: 0.02, 6: 0.02}, seed=3)
    (links, survival), *others = groups_by_losses(pairs)
    assert others == []
    assert sorted(links) == [1, 4, 6]
    assert survival == pytest.approx(0.98, abs=0.01)


def test_independent_losses_make_no_group() -> None:
    for seed in range(10):
        assert groups_by_losses(measured(8, 1_000, 0.05, {}, seed)) == []


def test_a_few_common_losses_are_chance() -> None:
    together = JointLosses(intervals=1_000.0, first=5.0, second=5.0, both=4.0, at=0.0)
    assert together.correlation > 0.7
    assert not together.shared


def test_common_losses_are_forgotten_with_time() -> None:
    together = JointLosses(intervals=1_000.0, first=20.0, second=20.0, both=15.0, at=0.0)
    assert together.shared
    assert not interval_counted(together, 3 * 86_400.0, False, False).shared


def test_what_a_group_explains_is_not_counted_as_a_links_own_loss() -> None:
    survival = 0.98
    own = own_delivery(0.95, [survival])
    links = (RouteLink("a", "b", own, 1.0, ("cable",)), RouteLink("a", "b", own, 2.0, ("cable",)))
    graph = RouteGraph(links, {"cable": survival})
    assert reliability_of(graph, links[:1], "a", ["b"])["b"].lower == pytest.approx(0.95)
    assert reliability_of(graph, links, "a", ["b"])["b"].lower == pytest.approx(0.9791, abs=1e-4)
