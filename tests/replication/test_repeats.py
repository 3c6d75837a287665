"""A domain that states to have lost what it was sent is sent it again: a whole history once, and beyond that no more than its budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.access.rules.rates import Rate
from eventing.core.events.vectors import SEQUENCE_MAX
from eventing.peering.models import Acquaintance, Peer
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError
from eventing.replication import operating
from eventing.replication.forwarding import repeats as forwarding
from eventing.replication.rules import repeats
from eventing.replication.rules.repeats import RATES, Repeat, RepeatBudgets, SentRun
from eventing.store import peer_state
from tests.peering.other_domain import OtherDomain
from tests.planes import principal
from tests.replication.answering import FakePeer, forward_woken, own, publish
from tests.replication.shared_rp import counted, link, new_rp, send

EVENTS = 100
HISTORY_BYTES = 8_000
"""For one copy of the events, not for two."""
BUDGET_BYTES = 20_000
"""For three more."""
TIMES = 20


@pytest.fixture
def rp(shared_stores: None, b: OtherDomain, monkeypatch: pytest.MonkeyPatch) -> str:
    """An RP with EVENTS events that is shared with b, and budgets that nothing is added to."""
    for key in RATES:
        monkeypatch.setitem(RATES, key, Rate(1e-3, BUDGET_BYTES / 1e-3))
    made = new_rp(max_events=EVENTS * 2, max_bytes=HISTORY_BYTES)
    link(made, b)
    publish(made, EVENTS)
    return made


def lose(peer: FakePeer, rp: str, upto: int = 0) -> None:
    """Have b hold less than before, and ask for what it lacks."""
    peer.vectors[rp] = {own(rp): upto} if upto else {}
    send(Peer.objects.get(name="b.test"), wire.RpPart(rp, peer.vectors[rp], graft=[own(rp)]))
    forward_woken(rp)


def noted() -> int:
    return counted().get(("false-loss", "b.test", ""), 0)


def test_a_peer_that_was_restored_from_a_copy_gets_the_whole_history_again_at_once(
    peer: FakePeer, rp: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RATES, (Repeat.LOST, False), Rate(1e-3, 1.0))
    forward_woken(rp)
    lose(peer, rp)
    assert peer.vectors[rp] == {own(rp): EVENTS}
    assert peer.events() == 2 * EVENTS
    publish(rp, 1)
    forward_woken(rp)
    assert peer.vectors[rp] == {own(rp): EVENTS + 1}
    assert noted() == 0


@pytest.mark.parametrize("upto", [0, EVENTS // 2])
def test_a_peer_that_loses_the_same_events_again_and_again_is_sent_no_more_than_its_budget_and_is_noted(
    peer: FakePeer, rp: str, upto: int
) -> None:
    forward_woken(rp)
    for _ in range(EVENTS // 10, EVENTS, 10):  # more runs, so that a part can be lost
        publish(rp, 1)
        forward_woken(rp)
    sent = peer.events()
    for _ in range(TIMES):
        lose(peer, rp, upto)
    again = peer.events() - sent
    assert EVENTS <= again < TIMES * EVENTS / 2
    assert noted() == 1
    held = dict(peer.vectors[rp])
    assert held.get(own(rp), 0) <= upto, "what it was sent before waits"
    assert not peer_state.failing("b.test")


def test_what_is_new_to_it_is_sent_all_the_same(peer: FakePeer, rp: str, b: OtherDomain) -> None:
    forward_woken(rp)
    for _ in range(TIMES):
        lose(peer, rp)
    assert noted() == 1
    other = new_rp()
    link(other, b)
    publish(other, 3)
    forward_woken(other)
    assert peer.vectors[other] == {own(other): 3}
    peer.vectors[rp] = {own(rp): EVENTS}
    publish(rp, 1)
    send(Peer.objects.get(name="b.test"), wire.RpPart(rp, peer.vectors[rp], graft=[own(rp)]))
    forward_woken(rp)
    assert peer.vectors[rp] == {own(rp): EVENTS + 1}


def test_what_a_peer_grafts_and_never_takes_is_sent_no_more_than_its_budget(peer: FakePeer, rp: str) -> None:
    peer.deaf = True
    for _ in range(TIMES):
        lose(peer, rp)
    assert 0 < peer.events() < TIMES * EVENTS / 2
    assert noted() == 0, "it may have its reasons, and it is shown as one that takes nothing"


def test_a_peer_that_hangs_up_and_calls_at_once_is_sent_no_more_than_its_budget(peer: FakePeer, rp: str) -> None:
    forward_woken(rp)
    peer.vectors[rp] = {}
    tried = 0
    for _ in range(TIMES):
        peer.fails = [PeerError("unreachable", "It hung up.")]
        lose(peer, rp)
        tried += not peer.fails
    assert 0 < tried < TIMES / 2


def test_an_operator_who_has_a_history_sent_again_lets_a_further_copy_pass(peer: FakePeer, rp: str) -> None:
    forward_woken(rp)
    for _ in range(TIMES):
        lose(peer, rp)
    assert peer.vectors[rp] == {}
    operating.replay(principal=principal("root", admin=True), name="b.test", reference=rp)
    forward_woken(rp)
    assert peer.vectors[rp] == {own(rp): EVENTS}
    for _ in range(TIMES):
        lose(peer, rp)
    assert peer.vectors[rp] == {}, "once"
    assert noted() == 1


def test_an_acquaintance_may_lose_less_than_a_peer(shared_stores: None) -> None:
    for kind in Repeat:
        assert RATES[kind, True].per_s < RATES[kind, False].per_s
        assert RATES[kind, True].burst < RATES[kind, False].burst
    burst = int(RATES[Repeat.LOST, True].burst)
    run = SentRun("f" * 16, 1, 10, burst + burst // 4)
    for partner, expected in ((Acquaintance(name="c.test"), 1), (Peer(name="d.test"), 0)):
        forwarding.runs_sent(partner, {"r" * 26: [run]})
        forwarding.runs_acknowledged(partner.name, {"r" * 26: {"f" * 16: 10}})
        for _ in range(2):
            forwarding.runs_sent(partner, {"r" * 26: [run]})
        assert counted().get(("false-loss", partner.name, ""), 0) == expected


# -- rules ----------------------------------------------------------------------------------------------------------------


def test_a_budget_recovers_and_a_copy_is_free_again_the_next_day() -> None:
    kept, run = RepeatBudgets(), SentRun("f", 1, 10, 1000)
    assert kept.sent("b", "r", [run]) == {}
    assert kept.sent("b", "r", [run]) == {Repeat.UNTAKEN: 1000}
    kept.acknowledged("b", "r", {"f": 50, "g": 7})
    assert kept.sent("b", "r", [run]) == {Repeat.LOST: 1000}
    assert kept.is_copy("b", "r", 1000, 1500, 0.0)
    assert not kept.is_copy("b", "r", 1000, 1500, repeats.COPY_S - 1)
    assert kept.is_copy("b", "r", 1000, 1500, repeats.COPY_S)
    burst = int(RATES[Repeat.LOST, False].burst)
    assert not kept.charge("b", Repeat.LOST, burst - 1000, 0.0, acquaintance=False)
    assert kept.charge("b", Repeat.LOST, repeats.LOST_BYTES_PER_S + 1000, 0.0, acquaintance=False)
    assert kept.overdrawn("b", 0.9) == {Repeat.LOST}
    assert kept.without(frozenset({Repeat.LOST}), "b", "r", {}) == {"f": SEQUENCE_MAX}
    assert kept.without(frozenset({Repeat.LOST}), "b", "r", {"f": 10}) == {"f": 10}, "what is new is sent"
    assert kept.overdrawn("b", 1.1) == frozenset()


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "PAIRS_MAX", 3)
    kept, run = RepeatBudgets(), SentRun("f", 1, 10, 1000)
    for number in range(4):
        kept.sent("b", f"r{number}", [run])
    assert [bool(kept.sent("b", f"r{number}", [run])) for number in (3, 2, 1, 0)] == [True, True, True, False]
    assert kept.is_copy("b", "unknown", 10**9, 0, 0.0), "what was forgotten counts as new"


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 10)), max_size=40))
def test_nothing_is_a_repeat_that_was_not_sent_before(runs: list[tuple[int, int]]) -> None:
    kept = RepeatBudgets()
    sent: set[int] = set()
    highest = 0
    for first, count in runs:
        run = SentRun("f", first + 1, first + count, 1)
        again = kept.sent("b", "r", [run])
        if run.last > highest:
            assert not again
        elif sent.issuperset(range(run.first, run.last + 1)):
            assert again
        sent.update(range(run.first, run.last + 1))
        highest = max(highest, run.last)
