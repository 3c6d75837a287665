"""Vectors of lazy links wait for company: outbound.py by the times of overlay/announcements.py, against a peer that answers."""

from __future__ import annotations

import time

import msgspec
import pytest

from demo.harness.servers import wait_for
from eventing.log import watermarks
from eventing.overlay import announcements
from eventing.overlay.feed_tree import FeedTree
from eventing.peering.wire.client import PeerError
from eventing.replication.forwarding import outbound, wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.forwarding.sweeping import peers_sweep
from eventing.replication.forwarding.vector_times import vector_times
from eventing.replication.ports import forward_start, forwards_waiting
from eventing.store.sweep_notes import sweep_notes
from eventing.store.waiting_vectors import vectors_waiting
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer, forward_woken, own, publish, shared
from tests.replication.shared_rp import peer_made

pytestmark = pytest.mark.usefixtures("shared_stores")
LONG_S = 600.0


@pytest.fixture(autouse=True)
def _patient(shared_stores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors get no message of their own, and turns are short."""
    monkeypatch.setattr(announcements, "ALONE_S", LONG_S)
    monkeypatch.setattr(outbound, "TURN_S_MAX", 0.05)


def lazy(b: OtherDomain) -> str:
    """A rendezvous point of which b is sent vectors only, that has an event which b lacks."""
    rp = shared(b)
    forward_woken(rp)
    feed = own(rp)
    tree = FeedTree(lazy=frozenset([feed]), pruned=frozenset([feed]))
    watermarks.links_change(b.name, [rp], lambda _, link: msgspec.structs.replace(link, tree=tree))
    publish(rp, 1)
    return rp


def vector_due_at() -> float:
    """When the vectors that wait for b get a request of their own."""
    since = vectors_waiting(["b.test"])["b.test"]
    return vector_times().due_after("b.test", since, time.time())


def sent(peer: FakePeer) -> list[dict[str, int]]:
    """The number of runs by rendezvous point, of each request."""
    return [{part.rp: len(part.runs) for part in request.parts} for request in peer.requests]


def test_a_vector_waits_and_goes_with_what_is_sent_to_the_peer_anyway(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcements, "RIDE_S", 0.0)
    rp, busy = lazy(b), shared(b)
    forward_woken(busy)
    peer.requests.clear()
    forward_woken(rp)
    assert sent(peer) == []
    publish(busy, 1)
    forward_woken(busy)
    assert sent(peer) == [{busy: 1, rp: 0}]
    forward_woken(rp)
    assert len(peer.requests) == 1, "b lacks it still, and is sent the vector again with something else"


def test_a_vector_that_nothing_carries_gets_a_request_of_its_own(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    rp = lazy(b)
    monkeypatch.setattr(announcements, "ALONE_S", 0.3)
    monkeypatch.setattr(outbound, "TURN_S_MAX", 60.0)
    peer.requests.clear()
    began = time.monotonic()
    forward_woken(rp)
    assert sent(peer) == []
    started: list[str] = []
    forward_start.connect(started.append)
    wait_for(lambda: peers_sweep() and started, 30.0, every_s=0.05, about="the vector is due")
    forward("b.test")
    assert time.monotonic() - began >= 0.3
    assert sent(peer)[0] == {rp: 0}


def test_a_vector_does_not_begin_to_wait_anew_with_each_turn(peer: FakePeer, b: OtherDomain) -> None:
    rp = lazy(b)
    peer.requests.clear()
    forward_woken(rp)
    due_at = vector_due_at()
    publish(rp, 1)
    forward_woken(rp)
    assert sent(peer) == []
    assert vector_due_at() == due_at


def test_vectors_hold_no_thread_that_other_peers_wait_for_and_are_sent_all_the_same(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    rp = lazy(b)
    peer.requests.clear()
    monkeypatch.setattr(announcements, "ALONE_S", 4.0)  # longer than a turn takes on a busy machine
    monkeypatch.setattr(outbound, "TURN_S_MAX", 60.0)
    monkeypatch.setattr(outbound, "OTHERS_S", 0.05)
    forwards_waiting.connect(lambda: 1)
    sweep_notes(["b.test"], 60)  # no comparison finds it
    wakeups.wake("b.test", [rp])
    assert forward("b.test") is False
    assert sent(peer) == []
    started: list[str] = []
    forward_start.connect(started.append)
    wait_for(lambda: peers_sweep() and started, 30.0, every_s=0.1, about="the vector is due")
    forward("b.test")
    assert sent(peer) == [{rp: 0}]


def test_runs_do_not_wait_for_vectors(peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch) -> None:
    rp, busy = lazy(b), shared(b)
    forward_woken(busy)
    monkeypatch.setattr(announcements, "RIDE_S", LONG_S / 2)  # less than ALONE_S: a turn waits for so long
    peer.requests.clear()
    publish(busy, 1)
    wakeups.wake("b.test", [rp])
    forward_woken(busy)
    assert sent(peer) == [{busy: 1}]


def test_when_forwarding_to_a_peer_fails_the_vectors_for_others_go_at_once(peer: FakePeer, b: OtherDomain) -> None:
    rp, c = lazy(b), OtherDomain("c.test")
    peer_made(c)
    other = shared(c)
    peer.requests.clear()
    forward_woken(rp)
    assert sent(peer) == []
    started: list[str] = []
    forward_start.connect(started.append)
    peer.fails = [PeerError("unreachable", "Cut.")]

    def tried() -> bool:
        """On a busy machine a turn may be over before its request is built."""
        wakeups.wake("c.test", [other])
        forward("c.test")
        return "b.test" in started

    wait_for(tried, 30.0, every_s=0.05, about="a request to c has failed")
    forward("b.test")
    assert sent(peer) == [{rp: 0}]
