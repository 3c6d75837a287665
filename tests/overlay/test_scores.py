"""Scores: every fault has an effect, every effect is read, and no good deed pays for a fault elsewhere."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.overlay import broadcast
from eventing.overlay.link_state import NEW
from eventing.overlay.links import SUSPICIOUS, FindLinks, LinkDown, Neighbor, NeighborReply, Reason
from eventing.overlay.machine import Chance, Fired, MessageReceived, SendMessage
from eventing.overlay.member import OverlayMember
from eventing.overlay.scores import (
    BACK_OFF_S,
    BACK_OFF_S_MAX,
    CONDEMNED_AT,
    DEMOTED_AT,
    EFFECTS,
    FLOOR,
    GOOD_MAX,
    HALF_LIFE_S,
    LEVELS,
    LOOK_S,
    NOT_CHOSEN_AT,
    QUEUE_PATIENCE_S,
    SCORED_MAX,
    SCORES_DUE,
    WEIGHTS,
    Condemned,
    Deed,
    Demoted,
    NotChosen,
    Noted,
    OwnQueuesFull,
    Pardoned,
    QueuesFull,
    Scores,
    VectorsShown,
)
from eventing.sim.federation import member_make, sponsor_of, table_make
from eventing.sim.network import SimulatedNetwork
from eventing.sim.world import World

CHANCE = Random(1)
FAULTS = [deed for deed in Deed if WEIGHTS[deed].each < 0]


def given_all(to: Scores, *inputs: Any, now: float = 0.0) -> list[Any]:
    return [output for one in inputs for output in to.handle(one, now, CHANCE) if type(output) in EFFECTS]


# Nothing is computed that nothing reads


@pytest.mark.parametrize("deed", FAULTS, ids=lambda deed: deed.name)
def test_every_fault_alone_leads_to_every_effect_though_the_peer_does_all_the_good_it_can(deed: Deed) -> None:
    made = Scores()
    given_all(made, Noted("a", 1, Deed.FIRST, 10_000))
    effects = given_all(made, Noted("a", 1, deed, 10_000))
    assert [type(effect) for effect in effects] == [Demoted, NotChosen, Condemned]
    assert {effect.reason for effect in effects} == {deed.value}


def test_the_most_that_faults_of_a_kind_cost_exceeds_all_that_good_deeds_earn() -> None:
    for deed in FAULTS:
        assert WEIGHTS[deed].most + GOOD_MAX <= CONDEMNED_AT
    assert sum(weight.most for weight in WEIGHTS.values() if weight.each > 0) == GOOD_MAX


def test_every_deed_has_a_weight() -> None:
    assert set(WEIGHTS) == set(Deed)


def test_every_effect_changes_what_the_member_does() -> None:
    """Each level is read by the member: a score that nothing reads would leave all three answers as they were."""
    made = OverlayMember(0, member_make(0, table_make()).directory, scoring=Scores())

    def answers() -> list[bool]:
        return [made.may_be_eager("a", 1), made.suitable("a", 1), not made.links.unwelcome(1, 1.0)]

    seen = [answers()]
    for _, effect in LEVELS:
        out: list[Any] = []
        while effect not in map(type, out):
            out = made.handle(Noted("a", 1, Deed.SILENT), 0.0, CHANCE)
        seen.append(answers())
    assert seen == [[True, True, True], [False, True, True], [False, False, True], [False, False, False]]
    assert {effect for _, effect in LEVELS} | {Pardoned, OwnQueuesFull} == set(EFFECTS)


def test_a_demoted_link_is_lazy_for_all_feeds_and_announces_only() -> None:
    link = broadcast.demoted(NEW, {"a-1": 5, "b-1": 2})
    assert link.tree.lazy == {"a-1", "b-1"}
    assert not broadcast.feeds(link, "a-1")


def test_a_peer_that_is_not_chosen_in_one_region_is_suitable_in_another() -> None:
    member = member_make(0, table_make())
    made = OverlayMember(0, member.directory, scoring=Scores())
    made.handle(Noted("a", 1, Deed.INVALID, 2), 0.0, CHANCE)
    assert not made.suitable("a", 1)
    assert made.suitable("b", 1)
    assert made.suitable("a", 2)


# Regions, bounds, decay


def test_good_deeds_in_one_region_pay_for_nothing_in_another() -> None:
    made = Scores()
    given_all(made, Noted("a", 1, Deed.FIRST, 10_000))
    effects = given_all(made, Noted("b", 1, Deed.SILENT, 10_000))
    assert isinstance(effects[-1], Condemned)
    assert effects[-1].region == "b"
    assert made.score("a", 1) == GOOD_MAX
    assert made.held_back(1, 1.0)


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.sampled_from(Deed), st.integers(1, 50)), max_size=60
    )
)
def test_scores_stay_within_bounds_and_effects_name_their_reason(deeds: list[tuple[str, int, Deed, int]]) -> None:
    made = Scores()
    for at, (region, peer, deed, count) in enumerate(deeds):
        for effect in given_all(made, Noted(region, peer, deed, count), now=10.0 * at):
            assert not isinstance(effect, Demoted | NotChosen | Condemned) or effect.reason in {
                one.value for one in FAULTS
            }
        assert FLOOR <= made.score(region, peer) <= GOOD_MAX


def test_a_few_faults_that_happen_to_anybody_are_free() -> None:
    made = Scores()
    noted = [Noted("a", 1, deed, int(WEIGHTS[deed].free)) for deed in FAULTS if deed is not Deed.DEFICIT]
    assert given_all(made, *noted) == []
    assert made.score("a", 1) == 0.0


def test_scores_decay_and_the_peer_gets_its_place_back() -> None:
    made = Scores()
    given_all(made, Noted("a", 1, Deed.INVALID, 2))
    assert not made.allows(NotChosen, "a", 1)
    effects = []
    now = 0.0
    while ("a", 1) in made.accounts and now < 40 * HALF_LIFE_S:
        now += LOOK_S
        effects += given_all(made, Fired(SCORES_DUE), now=now)
    assert {effect.of for effect in effects} == {"Demoted", "NotChosen"}
    assert made.allows(NotChosen, "a", 1)
    assert made.accounts == {}


def test_a_condemned_peer_is_held_back_longer_each_time() -> None:
    made = Scores()
    times = []
    now = 0.0
    for _ in range(9):
        effects = given_all(made, Noted("a", 1, Deed.INVALID, 4), now=now)
        times += [effect.back_off_s for effect in effects if isinstance(effect, Condemned)]
        while not made.allows(Condemned, "a", 1):
            assert made.held_back(1, now)
            now += LOOK_S
            given_all(made, Fired(SCORES_DUE), now=now)
    assert times[:3] == [BACK_OFF_S, 2 * BACK_OFF_S, 4 * BACK_OFF_S]
    assert times[-1] == BACK_OFF_S_MAX


def test_the_number_of_scores_is_bounded() -> None:
    made = Scores()
    for peer in range(SCORED_MAX + 50):
        given_all(made, Noted("a", peer, Deed.FLAPPING))
    assert len(made.accounts) == SCORED_MAX


def test_scores_are_dumped_to_plain_data_and_taken_up() -> None:
    made = Scores()
    given_all(made, Noted("a", 1, Deed.INVALID, 4), Noted("b", 2, Deed.FIRST))
    again = Scores()
    again.load(msgspec.msgpack.decode(msgspec.msgpack.encode(made.dump())))
    assert again.dump() == made.dump()
    assert again.held_back(1, 1.0)
    assert not again.allows(Condemned, "a", 1)


# Deficits and queues


def shown(made: Scores, ours: int, others: tuple[int, ...], peer: int, *, now: float) -> list[Any]:
    theirs = {1: {"f": peer}} | {10 + at: {"f": last} for at, last in enumerate(others)}
    return given_all(made, VectorsShown("a", {"f": ours}, theirs), now=now)


def test_a_link_that_falls_behind_the_others_is_demoted_and_then_dropped() -> None:
    made = Scores()
    effects = [one for look in range(1, 12) for one in shown(made, 10 * look, (10 * look,) * 3, 5, now=LOOK_S * look)]
    assert [type(effect) for effect in effects if effect.peer == 1] == [Demoted, NotChosen, Condemned]
    assert {effect.peer for effect in effects} == {1}


def test_a_link_that_is_one_look_behind_is_not_scored() -> None:
    made = Scores()
    for look in range(1, 20):
        assert shown(made, 10 * look, (10 * look,) * 3, 10 * (look - 1), now=LOOK_S * look) == []
    assert made.score("a", 1) == 0.0


def test_events_that_most_links_lack_as_well_are_no_fault() -> None:
    made = Scores()
    for look in range(1, 20):
        assert shown(made, 10 * look, (10 * look, 5, 5), 5, now=LOOK_S * look) == []


def test_claims_of_events_that_this_domain_does_not_hold_count_for_nothing() -> None:
    made = Scores()
    for look in range(1, 20):
        assert shown(made, 7, (2**53 + look,) * 3, 7, now=LOOK_S * look) == []


def test_two_links_are_not_compared() -> None:
    made = Scores()
    for look in range(1, 20):
        assert shown(made, 10 * look, (10 * look,), 0, now=LOOK_S * look) == []


def test_a_quiet_region_costs_nobody_anything() -> None:
    made = Scores()
    for look in range(1, 50):
        assert shown(made, 100, (100, 100, 100), 90, now=LOOK_S * look) == []


def test_many_full_queues_are_a_deficit_of_this_domain() -> None:
    made = Scores()
    full = tuple(("a", peer) for peer in range(6))
    for at in range(20):
        assert given_all(made, QueuesFull(full, 10), now=10.0 * at) == [OwnQueuesFull(6, 10)]
    assert made.accounts == {}


def test_a_single_full_queue_counts_after_a_while_and_not_once_it_has_drained() -> None:
    made = Scores()
    for at in range(6):
        given_all(made, QueuesFull((("a", 1),), 10), now=10.0 * at)
    given_all(made, QueuesFull((), 10), now=60.0)
    assert made.accounts == {}
    effects = [
        one
        for at in range(100)
        for one in given_all(made, QueuesFull((("a", 1),), 10), now=70 + QUEUE_PATIENCE_S / 2 * at)
    ]
    assert [type(effect) for effect in effects][:2] == [Demoted, NotChosen]


# In a federation


def test_a_condemned_link_is_dropped_as_quarantine_and_neither_side_gets_it_back() -> None:
    chance = Random(3)
    table = table_make()
    members = [OverlayMember(me, member_make(me, table).directory, SUSPICIOUS, scoring=Scores()) for me in range(20)]
    events: list[tuple[int, Any, float]] = []
    world = World(members, SimulatedNetwork(20, chance), chance, lambda *event: events.append(event))
    for me in range(20):
        sponsorship = sponsor_of(me)
        world.later(me, FindLinks(() if sponsorship is None else (sponsorship.sponsor,)), me / 10)
    world.run(120.0)
    peer = next(iter(members[5].links.active))
    world.give(5, Noted("a", peer, Deed.INVALID, 4))
    assert LinkDown(peer, Reason.QUARANTINE) in [event for me, event, _ in events if me == 5]
    world.run(170.0)
    assert peer not in members[5].links.active
    assert 5 not in members[peer].links.active
    assert members[5].handle(MessageReceived(peer, Neighbor(True)), 170.0, chance) == [
        SendMessage(peer, NeighborReply(False))
    ]
    assert len(members[5].links.chosen) == SUSPICIOUS.chosen


def test_links_of_approved_peers_are_not_dropped() -> None:
    made = OverlayMember(0, member_make(0, table_make()).directory, anchors=frozenset({1}), scoring=Scores())
    effects = made.handle(Noted("a", 1, Deed.INVALID, 4), 0.0, CHANCE)
    assert Condemned in map(type, effects)
    assert LinkDown not in map(type, effects)


class FloodingNode:
    """A domain that floods events of two regions; `mute` forwards none of region b, and shows none."""

    def __init__(self, me: int, peers: list[int], mute: bool) -> None:
        self.me, self.peers, self.mute = me, peers, mute
        self.held: dict[str, dict[str, int]] = {"a": {}, "b": {}}
        self.theirs: dict[str, dict[int, dict[str, int]]] = {"a": {}, "b": {}}
        self.scores = Scores()
        self.effects: list[Any] = []

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        out: list[Any] = []
        if isinstance(given, MessageReceived):
            kind, region, vector = given.message
            new = {feed: last for feed, last in vector.items() if last > self.held[region].get(feed, 0)}
            if kind == "runs" and new:
                self.held[region].update(new)
                self._observe(Noted(region, given.peer, Deed.FIRST), now)
                out += self._flood(region, new)
            elif kind == "have":
                self.theirs[region][given.peer] = dict(vector)
        elif given == "publish":
            for region, of in self.held.items():
                feed = str(self.me)
                of[feed] = of.get(feed, 0) + 1
                out += self._flood(region, {feed: of[feed]})
        elif given == "show":
            for region, of in self.held.items():
                shown_vector = {} if self.mute and region == "b" else dict(of)
                out += [SendMessage(peer, ("have", region, shown_vector)) for peer in self.peers]
                out += [SendMessage(peer, ("runs", region, dict(of))) for peer in self.peers if shown_vector != {}]
        elif given == "look":
            for region, of in self.held.items():
                self._observe(VectorsShown(region, dict(of), dict(self.theirs[region])), now)
            self._observe(Fired(SCORES_DUE), now)
        return out

    def _flood(self, region: str, new: dict[str, int]) -> list[Any]:
        return [] if self.mute and region == "b" else [SendMessage(peer, ("runs", region, new)) for peer in self.peers]

    def _observe(self, given: Any, now: float) -> None:
        self.effects += [one for one in self.scores.handle(given, now, CHANCE) if type(one) in EFFECTS]


def test_a_peer_that_serves_one_region_and_is_mute_in_another_is_dropped_by_all_and_nobody_else_is() -> None:
    count, mute, chance = 16, 3, Random(5)
    peers: list[set[int]] = [set() for _ in range(count)]
    for me in range(count):
        for peer in chance.sample([one for one in range(count) if one != me], 3):
            peers[me].add(peer)
            peers[peer].add(me)
    nodes = [FloodingNode(me, sorted(peers[me]), me == mute) for me in range(count)]
    world = World(nodes, SimulatedNetwork(count, chance), chance)
    world.network.conditions.loss = 0.05
    for second in range(5, 600, 5):
        world.run(float(second))
        world.give(chance.randrange(count), "publish")
        for node in nodes:
            world.give(node.me, "show")
            if second % int(LOOK_S) == 0:
                world.give(node.me, "look")
    for node in nodes:
        condemned = {(one.region, one.peer) for one in node.effects if isinstance(one, Condemned)}
        named = {(one.region, one.peer) for one in node.effects}
        expected = {("b", mute)} if mute in node.peers else set()
        if node.me != mute:
            assert condemned == named == expected
            assert mute not in node.peers or node.scores.score("a", mute) >= 0.0
    assert any(node.scores.score("a", mute) > 0 for node in nodes)


def test_thresholds_are_in_order() -> None:
    assert GOOD_MAX > 0 > DEMOTED_AT > NOT_CHOSEN_AT > CONDEMNED_AT > FLOOR
