"""overlay/announcements.py: few messages for each event, and what an eager link did not bring is announced all the same."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest

from eventing.overlay.announcements import (
    ALONE_S,
    DISTURBED_S,
    RIDE_S,
    SECOND_S,
    WAITING_MAX,
    WaitingVectors,
    is_first,
)
from eventing.overlay.dissemination_messages import DisseminationParameters, LinkRequest
from eventing.overlay.graft_timer import GRAFT_S
from eventing.overlay.presumed_vector import PRESUMED_S
from tests.overlay.simulated import ONE_BY_ONE, PATIENT, RpWorld
from tests.overlay.test_convergence import check_converged

NAMES = [f"{letter}.test" for letter in "abcdefghijkl"]
LINKS = 48
"""Eight for each of twelve domains, as the overlay makes them (docs/federation/numbers.md)."""
EVENTS, EVERY_S = 40, 1.5


def overlay(seed: int) -> list[tuple[str, str]]:
    """A random connected graph of the twelve."""
    chance = Random(seed)
    links = {(NAMES[chance.randrange(at)], NAMES[at]) for at in range(1, len(NAMES))}
    pairs = [(one, other) for at, one in enumerate(NAMES) for other in NAMES[at + 1 :]]
    chance.shuffle(pairs)
    for pair in pairs:
        if len(links) < LINKS:
            links.add(pair)
    return sorted(links)


class CountedWorld(RpWorld):
    """Twelve domains, whose requests are counted by what they carry."""

    def __init__(self, seed: int, parameters: DisseminationParameters) -> None:
        self.with_runs = self.with_vectors = 0
        super().__init__(overlay(seed), seed, parameters=parameters)
        self.meter = self._meter

    def _meter(self, source: int, target: int, message: Any) -> None:
        if type(message) is LinkRequest:
            self.with_runs += bool(message.runs)
            self.with_vectors += not message.runs

    def publish_all(self, count: int) -> None:
        for _ in range(count):
            self.publish(self.chance.choice(self.names))
            self.go_on(EVERY_S)


def per_event(seed: int, parameters: DisseminationParameters) -> tuple[float, float, float]:
    """Requests with runs, requests with vectors only, and redundant copies, for each event once the trees are at rest."""
    world = CountedWorld(seed, parameters)
    world.publish_all(2 * len(NAMES))
    world.with_runs = world.with_vectors = 0
    redundant = world.redundant
    world.publish_all(EVENTS)
    found = world.with_runs / EVENTS, world.with_vectors / EVENTS, (world.redundant - redundant) / EVENTS
    world.settle()
    check_converged(world)
    return found


@pytest.mark.parametrize("seed", range(2))
def test_an_event_among_twelve_domains_takes_at_most_35_requests(seed: int) -> None:
    runs, vectors, redundant = per_event(seed, PATIENT)
    assert runs <= 12.0, "one for each receiver, and few for those that come twice"
    assert runs + vectors <= 35.0
    assert redundant <= 0.25
    if seed == 0:
        before = per_event(seed, ONE_BY_ONE)
        assert before[0] + before[1] >= 60.0, "what it takes where both ends of each link announce at once"


@pytest.mark.parametrize("seed", range(4))
def test_what_a_domain_lost_without_a_sign_does_not_bring_comes_by_another_link_soon(seed: int) -> None:
    world = CountedWorld(seed, PATIENT)
    world.publish_all(2 * len(NAMES))
    gone = world.names[seed]
    world.crash(world.replicas[gone].number, silently=True)
    left = [one for name, one in world.replicas.items() if name != gone]
    for origin in (name for name in world.names if name != gone):
        world.publish(origin)
        began, feed = world.now, world.replicas[origin].own.key
        while len({one.vector.get(feed, 0) for one in left}) > 1:
            world.go_on(0.05)
            assert world.now - began <= 2 * (ALONE_S + SECOND_S + 2 * GRAFT_S)


def test_one_end_of_each_link_is_first_about_as_often_as_not() -> None:
    pairs = [(one, other) for at, one in enumerate(NAMES) for other in NAMES[at + 1 :]]
    assert all(is_first(one, other) is not is_first(other, one) for one, other in pairs)
    assert 0.3 * len(pairs) <= sum(is_first(one, other) for one, other in pairs) <= 0.7 * len(pairs)


def ends() -> tuple[str, str]:
    """A domain that is first towards the other, and the other."""
    return ("a.test", "b.test") if is_first("a.test", "b.test") else ("b.test", "a.test")


def test_a_vector_waits_for_company_then_goes_with_others_then_alone() -> None:
    me, peer = ends()
    one = WaitingVectors(me)
    assert not one.rides(peer, 100.0)
    assert one.due_at(peer, 100.0) == math.inf
    one.waits(peer, 100.0)
    one.waits(peer, 101.0)
    assert not one.rides(peer, 100.0 + RIDE_S - 0.01)
    assert one.rides(peer, 100.0 + RIDE_S)
    assert one.due_at(peer, 101.0) == 100.0 + ALONE_S, "as long as the first that waits"
    one.over(peer)
    assert one.due_at(peer, 101.0) == math.inf


def test_the_second_end_waits_until_the_first_has_been_answered_and_both_before_anybody_is_asked() -> None:
    first, second = ends()
    one = WaitingVectors(second)
    one.waits(first, 100.0)
    assert one.due_at(first, 100.0) == 100.0 + ALONE_S + SECOND_S
    assert ALONE_S + SECOND_S + GRAFT_S < PRESUMED_S


def test_while_links_fail_vectors_wait_shortly_at_both_ends() -> None:
    first, second = ends()
    for me, peer in ((first, second), (second, first)):
        one = WaitingVectors(me)
        one.waits(peer, 100.0)
        assert one.disturbed(100.1) == [peer]
        assert one.due_at(peer, 100.1) == 100.0 + RIDE_S
        one.over(peer)
        one.waits(peer, 100.1 + DISTURBED_S)
        assert one.due_at(peer, 100.1 + DISTURBED_S) >= 100.1 + DISTURBED_S + ALONE_S


def test_peers_for_which_vectors_wait_are_bounded() -> None:
    one = WaitingVectors("a.test")
    for at in range(2 * WAITING_MAX):
        one.waits(f"{at}.test", 100.0)
    assert len(one.disturbed(101.0)) <= WAITING_MAX
