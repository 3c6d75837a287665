"""Replicas converge, whatever the network does to them: the decisions of overlay/broadcast.py and overlay/exchange.py, simulated."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from eventing.overlay import broadcast
from eventing.overlay.dissemination_messages import DisseminationParameters
from eventing.overlay.graft_timer import GRAFT_S
from tests.overlay.simulated import ONE_BY_ONE, PATIENT, RpWorld

NAMES = ["a.example", "b.example", "c.example", "d.example", "e.example"]
RING_WITH_CHORD = [(NAMES[at], NAMES[(at + 1) % 5]) for at in range(5)] + [(NAMES[0], NAMES[2])]
SETTINGS = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)


@st.composite
def topologies(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Connected graphs of two to five replicas: a random tree, and some edges more."""
    names = NAMES[: draw(st.integers(2, 5))]
    tree = {(names[draw(st.integers(0, at - 1))], names[at]) for at in range(1, len(names))}
    pairs = [(one, other) for index, one in enumerate(names) for other in names[index + 1 :]]
    return sorted(tree | draw(st.sets(st.sampled_from(pairs))))


def check_converged(world: RpWorld) -> None:
    """Equal vectors everywhere, and every feed in its origin's order and words, holes only where something was trimmed."""
    vectors = {name: replica.vector for name, replica in world.replicas.items()}
    first = next(iter(vectors.values()))
    assert all(vector == first for vector in vectors.values()), vectors
    for replica in world.replicas.values():
        for key, one in replica.log.feeds.items():
            events = one.events
            for sequence, text in events.items():
                assert world.texts[key][sequence] == text
                assert sequence <= one.held
            oldest = min(events, default=one.held + 1)
            missing = set(range(oldest, one.held + 1)) - events.keys()
            assert missing <= set(one.skipped), "a hole that nobody was told of"


class Replication(RuleBasedStateMachine):
    """Publishing, trimming, partitions, crashes, lost data, and messages that are lost, doubled and reordered, in any order."""

    @initialize(pairs=topologies(), seed=st.integers(0, 2**32), parameters=st.sampled_from([PATIENT, ONE_BY_ONE]))
    def begin(self, pairs: list[tuple[str, str]], seed: int, parameters: DisseminationParameters) -> None:
        self.world = RpWorld(pairs, seed, parameters=parameters)

    def drawn(self, data: Any) -> str:
        name: str = data.draw(st.sampled_from(self.world.names))
        return name

    @rule(data=st.data(), count=st.integers(1, 15))
    def publish(self, data: Any, count: int) -> None:
        name = self.drawn(data)
        for _ in range(count):
            self.world.publish(name)

    @rule(data=st.data(), keep=st.integers(1, 12))
    def trim(self, data: Any, keep: int) -> None:
        self.world.replicas[self.drawn(data)].log.trim(keep)

    @rule(data=st.data())
    def cut(self, data: Any) -> None:
        pairs = self.world.pairs
        self.world.cut(data.draw(st.lists(st.sampled_from(pairs), max_size=len(pairs))))

    @rule()
    def heal(self) -> None:
        self.world.cut(())

    @rule(lost=st.sampled_from([0.0, 0.0, 0.2, 0.5]), twice=st.sampled_from([0.0, 0.0, 0.3]))
    def messages_are_lost_and_doubled(self, lost: float, twice: float) -> None:
        self.world.network.conditions.loss = lost
        self.world.twice = twice

    @rule(seconds=st.sampled_from([0.01, 0.05, 0.1, 0.3, 0.5, 1.0, 5.0, 60.0]))
    def time_passes(self, seconds: float) -> None:
        self.world.go_on(seconds)

    @rule(data=st.data())
    def crash(self, data: Any) -> None:
        self.world.fall_over(self.drawn(data))

    @rule(data=st.data())
    def data_lost(self, data: Any) -> None:
        name = self.drawn(data)
        if self.world.replicas[name].lives < 6:
            self.world.lose_data(name)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.cut(())
            self.world.network.conditions.loss = self.world.twice = 0.0
            self.world.settle()
            check_converged(self.world)


TestReplication = Replication.TestCase
TestReplication.settings = SETTINGS


def run_for(world: RpWorld, seconds: float, per_s: float) -> None:
    """Publish at random replicas at this rate, everything else as it comes."""
    for _ in range(int(seconds / 0.05)):
        while world.chance.random() < per_s * 0.05 / (1 + per_s * 0.05):
            world.publish(world.chance.choice(world.names))
        world.go_on(0.05)


def copies_of(world: RpWorld, seconds: float, per_s: float) -> float:
    """Redundant copies per event published within that time."""
    redundant, published = world.redundant, world.published
    run_for(world, seconds, per_s)
    return (world.redundant - redundant) / (world.published - published)


@pytest.mark.parametrize("seed", range(3))
def test_each_event_reaches_each_replica_about_once_in_a_ring_with_a_chord(seed: int) -> None:
    world = RpWorld(RING_WITH_CHORD, seed)
    run_for(world, 10.0, 40)
    assert copies_of(world, 30.0, 40) <= 0.005, "the links came to rest, and stay there"
    world.settle()
    check_converged(world)
    assert world.published > 1000
    assert world.redundant / world.published <= 0.05, (world.redundant, world.published)
    assert world.copies <= 4.05 * world.published
    assert world.futile == 0


@pytest.mark.parametrize("delay_s", [0.3, 0.6])
@pytest.mark.parametrize("seed", range(4))
def test_few_copies_come_in_a_ring_of_busy_machines(seed: int, delay_s: float) -> None:
    """Four hops take as long as a link waits at first: 0.00 to 0.10 copies, where it learned nothing of what came by itself."""
    world = RpWorld(RING_WITH_CHORD, seed, delay_s=delay_s)
    run_for(world, 20.0, 50)  # as long as the bench lets links come to rest (bench/scenarios/federation.py)
    assert copies_of(world, 20.0, 50) <= 0.05
    world.settle()
    check_converged(world)
    assert world.futile == 0


@pytest.mark.parametrize("seed", range(2))
def test_links_come_to_rest_where_runs_take_longer_than_a_graft_waits_at_first(seed: int) -> None:
    world = RpWorld(RING_WITH_CHORD, seed, delay_s=1.0)
    run_for(world, 60.0, 20)
    assert copies_of(world, 60.0, 20) <= 0.15  # 0.25 with a timer that learns nothing
    assert any(link.timer.patience_s > GRAFT_S for link in world.all_links)
    world.settle()
    check_converged(world)


@pytest.mark.parametrize("seed", range(4))
def test_who_lost_what_came_through_it_gets_it_back_from_who_lost_it_too(seed: int) -> None:
    """The run's path names d when it comes back to a from b; d, empty, has nothing to say that would show otherwise."""
    world = RpWorld([("a.example", "b.example"), ("a.example", "c.example"), ("a.example", "d.example")], seed)
    world.publish("d.example")
    world.settle()
    world.lose_data("a.example")
    world.lose_data("d.example")
    world.settle()
    check_converged(world)
    assert world.replicas["d.example"].vector


def test_with_one_publisher_the_links_become_a_tree() -> None:
    world = RpWorld(RING_WITH_CHORD, 1)
    for _ in range(100):
        world.publish(NAMES[0])
        world.go_on(0.3)
    feed = world.replicas[NAMES[0]].own.key
    eager = {
        frozenset((name, peer))
        for name in world.names
        for peer in world.neighbours(name)
        if feed not in world.link(name, peer).tree.lazy and feed not in world.link(peer, name).tree.lazy
    }
    assert len(eager) == 4
    check_converged(world)


def test_a_cut_link_of_the_tree_is_replaced_by_a_lazy_one() -> None:
    world = RpWorld([("a.example", "b.example"), ("b.example", "c.example"), ("a.example", "c.example")], 3)
    for _ in range(20):
        world.publish("a.example")
        world.go_on(0.05)
    world.settle()
    feed = world.replicas["a.example"].own.key
    lazy = [peer for peer in ("a.example", "b.example") if feed in world.link("c.example", peer).tree.pruned]
    assert len(lazy) == 1
    feeder = ({"a.example", "b.example"} - set(lazy)).pop()
    world.cut([("c.example", feeder)])
    began = world.now
    world.publish("a.example")
    while world.replicas["c.example"].vector != world.replicas["a.example"].vector:
        world.go_on(0.05)
        assert world.now < began + 5.0
    assert feed not in world.link("c.example", lazy[0]).tree.pruned


def test_a_gap_that_the_origin_signed_is_accepted_at_once_and_any_other_after_a_while() -> None:
    for signed in (True, False):
        world = RpWorld([("a.example", "b.example")], 5)
        origin = world.replicas["a.example"]
        for _ in range(30):
            world.publish("a.example")
        origin.log.trim(12)
        if not signed:
            origin.log.low_water_marks.clear()
        began = world.now
        while not world.replicas["b.example"].vector and world.now < began + 60:
            world.go_on(0.05)
        assert (world.now - began < 5.0) is signed
        world.settle()
        check_converged(world)
        assert world.replicas["b.example"].log.feeds[origin.own.key].skipped == tuple(range(1, 19))


@pytest.mark.parametrize("seed", range(100))
def test_two_that_lack_the_same_are_not_waited_for_each_for_the_sake_of_the_other(seed: int) -> None:
    """a lost its data and got the last event back from c, which had kept no more; b has heard of it from both.

    Found by the machine above: about one seed of twenty had b wait for an hour.
    """
    world = RpWorld([("a.example", "b.example"), ("a.example", "c.example"), ("b.example", "c.example")], seed)
    for _ in range(2):
        world.publish("a.example")
    for _ in range(5):
        world.go_on(0.05)
    world.lose_data("a.example")
    world.replicas["c.example"].log.trim(1)
    world.settle()
    check_converged(world)


@settings(max_examples=15, deadline=None, database=None)
@given(pairs=topologies(), seed=st.integers(0, 2**32))
def test_a_stable_network_falls_silent(pairs: list[tuple[str, str]], seed: int) -> None:
    world = RpWorld(pairs, seed)
    for name in world.names:
        world.publish(name)
    world.settle()
    check_converged(world)
    sent = world.sent
    world.go_on(120.0)
    assert world.sent == sent, "something is sent though everybody holds everything"


@pytest.mark.parametrize("seed", range(5))
def test_a_planned_feed_arrives_by_the_second_link_without_waiting_for_a_graft_and_loses_nothing_when_the_plan_ends(
    seed: int,
) -> None:
    """A triangle whose links are planned for a's feed: c gets each event from a and from b, whichever link fails."""
    a, b, c = "a.example", "b.example", "c.example"
    world = RpWorld([(a, b), (b, c), (a, c)], seed)

    def plan(feeds: frozenset[str]) -> None:
        for name in world.names:
            for one in world.replicas[name].peers.values():
                one.link = broadcast.planned(one.link, feeds)

    for _ in range(20):
        world.publish(a)
        world.go_on(0.05)
    world.settle()
    plan(frozenset((world.replicas[a].own.key,)))
    world.settle()
    for cut in (a, b, a, b):
        world.cut([(c, cut)])
        world.publish(a)
        began = world.now
        while world.replicas[c].vector != world.replicas[a].vector:
            assert world.now - began < GRAFT_S, f"it waited for a timer while {cut} was cut off"
            world.go_on(0.01)
        world.cut(())
        world.settle()
    redundant, published = world.redundant, world.published
    for _ in range(20):
        world.publish(a)
        world.go_on(0.3)
    assert (world.redundant - redundant) / (world.published - published) >= 0.9, "the second copy is wanted"
    plan(frozenset())
    for _ in range(10):
        world.publish(a)
        world.go_on(0.3)
    redundant = world.redundant
    for _ in range(20):
        world.publish(a)
        world.go_on(0.3)
    assert world.redundant - redundant <= 1, "the links are a tree again"
    world.settle()
    check_converged(world)
