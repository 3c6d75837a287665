"""Suspicion: silent domains are known to all, living ones are suspected by nobody, whatever others accuse them of."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.overlay.gossip import Contribute
from eventing.overlay.gossip_messages import GossipMessage, GossipPart
from eventing.overlay.gossip_object import SignedRow
from eventing.overlay.machine import Fired, MessageReceived, SendMessage
from eventing.overlay.monitors import EPOCH_S, MONITORS, SLACK, MonitorRing, epoch_of
from eventing.overlay.suspicion import (
    GROUPS,
    LOOK_DUE,
    QUORUM,
    REBUT_S,
    AccusesAgain,
    AccusesNobody,
    MonitorPing,
    Rebutted,
    Suspected,
    SuspicionEnded,
)
from eventing.overlay.suspicion_rows import ACCUSED_MAX, Accusations, accusation_payload, accused_of
from eventing.sim.federation import STARTED_S
from tests.overlay.gossiping import HASHES
from tests.overlay.suspecting import GROUP_SIZE, SuspectingNode, SuspectingWorld

NOW = int(STARTED_S)
CHANCE = Random(1)
EPOCH = epoch_of(STARTED_S)


def ring_of(count: int, epoch: int = EPOCH, *, but: int = -1) -> MonitorRing:
    return MonitorRing([one for one in range(count) if one != but], epoch, HASHES.__getitem__)


def test_every_domain_has_ten_monitors_and_as_many_targets() -> None:
    ring = ring_of(200)
    for domain in range(200):
        assert len(dict.fromkeys(ring.monitors(domain))) == MONITORS
        assert domain not in ring.monitors(domain)
        for target in ring.targets(domain):
            assert domain in ring.monitors(target)
    assert sum(len(ring.targets(domain)) for domain in range(200)) == 200 * MONITORS


def test_monitors_are_others_in_another_epoch() -> None:
    common = [set(ring_of(2000).monitors(one)) & set(ring_of(2000, EPOCH + 1).monitors(one)) for one in range(100)]
    assert sum(map(len, common)) < 20


def test_a_directory_that_lacks_a_domain_accepts_the_same_monitors() -> None:
    ring, other = ring_of(200), ring_of(200, but=17)
    for domain in range(200):
        expected = [one for one in ring.monitors(domain) if one != 17]
        assert set(expected) <= set(other.monitors(domain, MONITORS + SLACK))


def test_a_federation_of_three_is_no_ring_of_repetitions() -> None:
    assert sorted(ring_of(3).monitors(1)) == [0, 2]
    assert ring_of(1).monitors(0) == []


@pytest.fixture
def node() -> SuspectingNode:
    """Domain 0 of 200."""
    made = SuspectingNode(0, bytes(200), {})
    made.peers = [1]
    return made


def accused(node: SuspectingNode, domain: int, by: list[int], *, rebutted: int = 0, now: float = 0.0) -> list[Any]:
    """Let accusations reach a domain, and let it look twice, before and after the time to rebut."""
    payload = accusation_payload(((domain, rebutted),))
    rows = tuple(SignedRow(one, NOW, NOW + 1800, payload, b"s" * 64) for one in by)
    events = node.handle(MessageReceived(1, GossipMessage((GossipPart("accusations", rows=rows),))), now, CHANCE)
    for at in (now, now + REBUT_S - 1, now + REBUT_S + 1):
        events += node.handle(Fired(LOOK_DUE), at, CHANCE)
    return [event for event in events if isinstance(event, Suspected | Rebutted)]


def monitors_of(domain: int) -> list[int]:
    return ring_of(200).monitors(domain)


def test_a_quorum_of_monitors_of_several_groups_has_a_domain_suspected_after_the_time_to_rebut(
    node: SuspectingNode,
) -> None:
    by = monitors_of(9)[:QUORUM]
    assert accused(node, 9, by) == [Suspected(9, tuple(by))]


def test_fewer_monitors_than_a_quorum_suspect_nobody(node: SuspectingNode) -> None:
    assert accused(node, 9, monitors_of(9)[: QUORUM - 1]) == []


def test_domains_that_are_no_monitors_suspect_nobody(node: SuspectingNode) -> None:
    others = [one for one in range(200) if one not in ring_of(200).monitors(9, MONITORS + SLACK) and one != 9]
    assert accused(node, 9, others) == []


def test_monitors_of_too_few_groups_suspect_nobody(node: SuspectingNode) -> None:
    by = monitors_of(9)[: QUORUM + 2]
    node.suspicion._group = lambda domain: by.index(domain) % (GROUPS - 1) if domain in by else domain
    assert accused(node, 9, by) == []


def test_where_all_monitors_are_of_one_group_the_quorum_suffices(node: SuspectingNode) -> None:
    node.suspicion._group = lambda domain: "the one sponsor"
    assert accused(node, 9, monitors_of(9)) == [Suspected(9, tuple(monitors_of(9)))]


def test_an_accusation_that_names_a_rebuttal_that_was_never_signed_counts_for_nothing(node: SuspectingNode) -> None:
    assert accused(node, 9, monitors_of(9), rebutted=2**40 - 1) == []


def test_the_answer_of_the_accused_voids_all_accusations_before_it(node: SuspectingNode) -> None:
    rebuttal = SignedRow(9, NOW, NOW + 600, b"", b"s" * 64)
    node.handle(MessageReceived(1, GossipMessage((GossipPart("rebuttals", rows=(rebuttal,)),))), 0.0, CHANCE)
    assert accused(node, 9, monitors_of(9)) == []


def test_an_accused_domain_rebuts_a_quorum_and_ignores_a_single_liar(node: SuspectingNode) -> None:
    assert accused(node, 0, monitors_of(0)[:1]) == []
    assert accused(node, 0, monitors_of(0)[:QUORUM], now=100.0)[0] == Rebutted(tuple(monitors_of(0)[:QUORUM]))
    assert 0 in node.gossip.sets["rebuttals"].rows


@given(st.binary(max_size=200))
def test_accusations_are_bounded_and_raise_nothing(payload: bytes) -> None:
    found = accused_of(payload)
    assert Accusations().valid(1, payload) is (found is not None)
    assert found is None or len(found) <= ACCUSED_MAX


@pytest.fixture(scope="module")
def crashed() -> SuspectingWorld:
    """60 domains of which one has crashed at 120 s; read only."""
    made = SuspectingWorld(60, 1)
    made.world.run(120.0)
    made.world.crash(7)
    made.world.run(240.0)
    return made


def test_all_find_out_within_120_s_that_a_domain_is_silent(crashed: SuspectingWorld) -> None:
    assert crashed.suspecting(7) == set(range(60)) - {7}
    times = [at - 120.0 for _, event, at in crashed.of(Suspected) if event.domain == 7]
    assert max(times) <= 120.0
    assert min(times) >= REBUT_S


def test_only_the_silent_domain_is_suspected_and_its_accusers_are_its_monitors(crashed: SuspectingWorld) -> None:
    monitors = set(crashed.nodes[0].suspicion._ring_now(240.0).monitors(7))
    for _, event, _ in crashed.of(Suspected):
        assert event.domain == 7
        assert set(event.accusers) <= monitors


def test_a_domain_that_comes_back_rebuts_and_is_suspected_no_longer() -> None:
    made = SuspectingWorld(40, 2)
    made.world.run(60.0)
    made.world.crash(7)
    made.world.run(200.0)
    assert len(made.suspecting(7)) == 39
    made.restart(7)
    made.world.run(270.0)
    assert made.suspecting(7) == set()
    assert [domain for domain, _, _ in made.of(Rebutted)][:1] == [7]
    assert {event.why for _, event, _ in made.of(SuspicionEnded)} == {"rebutted"}


def test_an_accused_domain_that_gossip_does_not_reach_learns_of_it_by_pings() -> None:
    made = SuspectingWorld(40, 3)
    made.nodes[7].peers = []
    for node in made.nodes:
        node.peers = [peer for peer in node.peers if peer != 7]
    accusers = made.nodes[0].suspicion._ring_now(0.0).monitors(7)[:QUORUM]
    made.world.run(30.0)
    for one in accusers:
        made.world.give(one, Contribute("accusations", accusation_payload(((7, 0),))))
    made.world.run(33.0)
    accuser = made.nodes[accusers[0]]
    accuser.handle(Fired(LOOK_DUE), 33.0, CHANCE)
    evidence = accuser.suspicion.evidence(7)
    assert evidence is not None
    made.nodes[7].gossip.sets["accusations"].rows.clear()
    made.world.give(7, MessageReceived(accusers[0], evidence))
    made.world.run(45.0)
    assert 7 in [domain for domain, _, _ in made.of(Rebutted)]


@pytest.mark.long
def test_a_coalition_of_all_monitors_does_not_have_a_living_domain_suspected() -> None:
    made = SuspectingWorld(40, 4)
    made.world.run(30.0)
    liars = made.nodes[0].suspicion._ring_now(0.0).monitors(7)
    for second in range(30, 330, 10):
        rebutted = made.nodes[0].suspicion._rebutted(7)
        for one in liars:
            made.world.give(one, Contribute("accusations", accusation_payload(((7, rebutted),))))
        made.world.run(float(second + 10))
    assert made.of(Rebutted)
    assert not made.of(Suspected)


def test_a_half_detached_domain_accuses_nobody_and_says_so() -> None:
    made = SuspectingWorld(40, 5)
    made.world.run(60.0)
    made.world.network.conditions.one_way = frozenset((other, 7) for other in range(40) if other != 7)
    made.world.run(300.0)
    assert [domain for domain, _, _ in made.of(AccusesNobody)] == [7]
    assert made.nodes[7].suspicion.suspected == {}
    assert not made.nodes[0].gossip.sets["accusations"].rows.get(7)
    made.world.network.conditions.one_way = frozenset()
    made.world.run(400.0)
    assert [domain for domain, _, _ in made.of(AccusesAgain)] == [7]


def test_a_domain_that_restarts_with_an_old_accusation_withdraws_it() -> None:
    made = SuspectingWorld(20, 9)
    made.world.give(3, Contribute("accusations", accusation_payload(((7, 0),))))
    made.world.run(100.0)
    assert [accused_of(one.payload) for one in made.nodes[5].gossip.sets["accusations"].rows.values()] == [()]


def test_after_a_partition_nobody_is_suspected_any_more() -> None:
    made = SuspectingWorld(40, 6)
    made.world.run(60.0)
    made.world.network.conditions.sides = bytearray(one % 2 for one in range(40))
    made.world.run(360.0)
    assert len(made.of(AccusesNobody)) > 20
    made.world.network.conditions.sides = None
    made.world.run(480.0)
    assert all(not node.suspicion.suspected for node in made.nodes)


def eventful(count: int, hours: float, seed: int, *, pauses_per_hour: float) -> SuspectingWorld:
    """Run domains with 5 % loss and pauses of 10 s."""
    made = SuspectingWorld(count, seed)
    made.world.network.conditions.loss = 0.05
    chance = Random(seed)
    while made.world.now < hours * 3600:
        made.world.run(made.world.now + 10.0)
        for node in made.nodes:
            if not node.paused and chance.random() < pauses_per_hour * 10 / 3600:
                made.pause(node.me, 10.0)
    return made


def test_loss_and_pauses_have_nobody_suspected() -> None:
    made = eventful(50, 0.2, 7, pauses_per_hour=6.0)
    assert not made.of(Suspected)


@pytest.mark.long
def test_loss_and_a_hundred_times_as_many_pauses_have_nobody_suspected_in_200_domain_hours() -> None:
    made = eventful(100, 2.0, 8, pauses_per_hour=1.0)
    assert not made.of(Suspected)
    assert not made.of(Rebutted)


def test_pings_are_answered_whoever_sends_them(node: SuspectingNode) -> None:
    (answer,) = node.handle(MessageReceived(77, MonitorPing()), 0.0, CHANCE)
    assert isinstance(answer, SendMessage)
    assert answer.peer == 77


def test_groups_of_this_world_are_smaller_than_a_quorum_needs() -> None:
    assert GROUP_SIZE * (GROUPS - 1) >= QUORUM, "else the quorum alone would ask for the groups"
    assert EPOCH_S > 100 * REBUT_S
