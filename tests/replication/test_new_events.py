"""Which peers a new event wakes forwarding to, and what the sweep finds of the others later: new_events.py and sweeping.py."""

from __future__ import annotations

import math
import time

import msgspec
import pytest

from eventing.log import watermarks
from eventing.overlay.feed_tree import FeedTree
from eventing.overlay.graft_timer import GraftTimer
from eventing.overlay.presumed_vector import PresumedVector
from eventing.peering.rules.deliveries import Failure
from eventing.peering.selectors.deliveries import delivery_get
from eventing.peering.services.deliveries import delivery_failed
from eventing.replication.forwarding import comparing, wakeups
from eventing.replication.forwarding.new_events import events_forward
from eventing.replication.forwarding.sweeping import peers_sweep
from eventing.store import peer_state
from eventing.store.sweep_notes import sweep_notes
from eventing.store.waiting_vectors import vectors_note, vectors_urgent_set, vectors_waiting
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer, forward_woken, own, publish, shared

pytestmark = pytest.mark.usefixtures("shared_stores")


def met(b: OtherDomain, started: list[str]) -> str:
    """An RP of which b has stated what it holds."""
    rp = shared(b)
    forward_woken(rp)
    started.clear()
    sweep_notes(["b.test"], 60)  # no comparison finds anything
    return rp


def made_lazy(rp: str, b: OtherDomain) -> None:
    feed = own(rp)
    tree = FeedTree(lazy=frozenset([feed]), pruned=frozenset([feed]))
    watermarks.links_change(b.name, [rp], lambda _, link: msgspec.structs.replace(link, tree=tree))


def test_an_event_wakes_forwarding_to_peers_that_are_sent_it(
    peer: FakePeer, b: OtherDomain, started: list[str]
) -> None:
    rp = met(b, started)
    publish(rp, 1)
    events_forward({"b.test": [rp]})
    assert started == ["b.test"]
    assert vectors_waiting(["b.test"]) == {}


def backlog() -> int:
    """The backlog of b as it is shown after a comparison."""
    peer_state.compare_again(["b.test"])
    peers_sweep()
    row = delivery_get("b.test")
    return 0 if row is None else row.backlog


@pytest.mark.parametrize("where", ["sent", "announced", "presumed"])
def test_events_that_a_peer_is_about_to_have_are_no_backlog(
    peer: FakePeer, b: OtherDomain, started: list[str], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    rp = met(b, started)
    if where == "announced":
        made_lazy(rp, b)
    publish(rp, 2)
    if where == "presumed":
        presumed = PresumedVector({own(rp): 3}, {}, time.time() + 60)
        watermarks.links_change(b.name, [rp], lambda _, link: msgspec.structs.replace(link, presumed=presumed))
    assert backlog() == 0
    monkeypatch.setattr(comparing, "UNDER_WAY_S", 0.0)
    assert backlog() == (2 if where == "sent" else 0)
    delivery_failed(peer="b.test", failure=Failure.UNREACHABLE, detail="gone", jitter=0.5)
    assert backlog() == 2


def test_an_event_of_which_a_peer_is_sent_a_vector_only_wakes_nobody(
    peer: FakePeer, b: OtherDomain, started: list[str]
) -> None:
    rp = met(b, started)
    made_lazy(rp, b)
    began = time.time()
    for _ in range(2):
        publish(rp, 1)
        events_forward({"b.test": [rp]})
    assert started == []
    assert began <= vectors_waiting(["b.test"])["b.test"] <= time.time()
    assert not peer_state.is_dirty("b.test")


def test_while_links_fail_every_event_wakes_forwarding_to_all_peers(
    peer: FakePeer, b: OtherDomain, started: list[str]
) -> None:
    rp = met(b, started)
    made_lazy(rp, b)
    vectors_urgent_set(60.0)
    publish(rp, 1)
    events_forward({"b.test": [rp]})
    assert started == ["b.test"]


def test_a_peer_that_has_not_stated_what_it_holds_is_asked(peer: FakePeer, b: OtherDomain, started: list[str]) -> None:
    rp = shared(b, 1)
    events_forward({"b.test": [rp]})
    assert started == ["b.test"]


def test_a_vector_that_tells_the_peer_nothing_new_begins_no_turn(
    peer: FakePeer, b: OtherDomain, started: list[str]
) -> None:
    rp = met(b, started)
    vectors_note({"b.test": [rp]}, time.time() - 60.0)
    peers_sweep()
    assert started == []
    assert vectors_waiting(["b.test"]) == {}
    made_lazy(rp, b)
    publish(rp, 1)
    vectors_note({"b.test": [rp]}, time.time() - 60.0)
    peers_sweep()
    assert started == ["b.test"]
    assert list(vectors_waiting(["b.test"])) == ["b.test"], "for the turn"


def awaiting(rp: str, b: OtherDomain, sequence: int) -> None:
    """Have b's link wait for a sequence of the own feed, until now."""
    now = time.time()
    timer = GraftTimer(awaited={own(rp): sequence}, awaited_at=now - 1.0, ask_at=now - 0.5)
    watermarks.links_change(b.name, [rp], lambda _, link: msgspec.structs.replace(link, timer=timer))


def test_a_timer_for_what_has_arrived_by_another_link_begins_no_turn(
    peer: FakePeer, b: OtherDomain, started: list[str]
) -> None:
    rp = met(b, started)
    awaiting(rp, b, 0)
    peers_sweep()
    assert started == []
    assert sweep_notes(["b.test"], 60).timers_at.get("b.test", math.inf) > time.time()
    awaiting(rp, b, 5)
    peers_sweep()
    assert started == ["b.test"]
    assert sweep_notes(["b.test"], 60).timers_at["b.test"] <= time.time(), "for the turn"


def test_a_failure_that_redis_has_forgotten_is_noted_there_again(
    peer: FakePeer, b: OtherDomain, started: list[str]
) -> None:
    rp = met(b, started)
    delivery_failed(peer="b.test", failure=Failure.UNREACHABLE, detail="Cut.", jitter=0.5, retry_after_s=600)
    assert not peer_state.failing("b.test")
    peers_sweep()
    assert peer_state.failing("b.test")
    publish(rp, 1)
    sent = len(peer.requests)
    wakeups.wake("b.test", [rp], anyway=True)
    forward_woken(rp)
    assert len(peer.requests) == sent, "no attempt is due"
