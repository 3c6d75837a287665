"""Small federations need few links, and those are enough."""

from __future__ import annotations

import itertools
import random

import pytest

from eventing.membership.rules.link_counts import link_parameters
from eventing.overlay.links import SUSPICIOUS


@pytest.mark.parametrize(("domains", "chosen"), [(0, 3), (1, 3), (3, 3), (12, 4), (17, 5), (33, 6), (10_000, 6)])
def test_the_number_of_chosen_links_grows_with_the_federation(domains: int, chosen: int) -> None:
    assert link_parameters(domains).chosen == chosen


def test_a_large_federation_has_the_sizes_against_liars() -> None:
    assert link_parameters(64) is SUSPICIOUS


def test_twelve_domains_stay_connected_whichever_three_fail() -> None:
    """Of 50 drawn overlays of 12 domains, none falls apart by any of the 220 ways to lose three."""
    chosen = link_parameters(12).chosen
    for seed in range(50):
        chance = random.Random(seed)
        links: dict[int, set[int]] = {one: set() for one in range(12)}
        for one in range(12):
            for other in chance.sample([two for two in range(12) if two != one], chosen):
                links[one].add(other)
                links[other].add(one)
        for lost in itertools.combinations(range(12), 3):
            up = set(range(12)) - set(lost)
            reached, todo = set(), [min(up)]
            while todo:
                one = todo.pop()
                if one not in reached:
                    reached.add(one)
                    todo += links[one] & up
            assert reached == up, (seed, lost)
