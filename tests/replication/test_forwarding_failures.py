"""Failures of delivery: retries after growing pauses, pauses that a peer asks for, and what stops delivery for good."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from eventing.peering.models import PeerDelivery
from eventing.peering.selectors.deliveries import delivery_get
from eventing.peering.services.deliveries import delivery_resumed
from eventing.peering.wire.client import PeerError
from eventing.replication.forwarding import wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.forwarding.sweeping import peers_sweep
from eventing.replication.ports import forward_start
from eventing.store import peer_state
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer, delivery, forward_woken, own, shared

pytestmark = pytest.mark.usefixtures("shared_stores")


def make_due(in_s: float = -1.0) -> None:
    PeerDelivery.objects.update(next_try_at=timezone.now() + timedelta(seconds=in_s))


@pytest.mark.parametrize("kind", ["unreachable", "busy"])
def test_what_passes_is_tried_again_after_pauses_that_grow(peer: FakePeer, b: OtherDomain, kind: str) -> None:
    rp = shared(b, 1)
    pauses = []
    for failures in range(1, 6):
        peer.fails = [PeerError(kind, "No.")]  # type: ignore[arg-type]
        wakeups.wake("b.test", [rp])
        forward("b.test")
        row = delivery()
        assert (row.failures, row.failure, row.detail, row.stopped_at) == (failures, kind, "No.", None)
        assert row.next_try_at is not None
        pauses.append((row.next_try_at - row.changed_at).total_seconds())
        make_due(60)  # pauses of a quarter of a second are over on a busy machine
        forward("b.test")  # too early: not tried
        assert delivery().failures == failures
        make_due()
    assert all(0.25 * 2**n <= pause <= 0.5 * 2**n for n, pause in enumerate(pauses))
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 1}
    row = delivery()
    assert (row.failures, row.failure, row.detail, row.first_failure_at, row.next_try_at) == (0, "", "", None, None)
    assert not peer_state.failing("b.test")


def test_retry_after_is_honoured_and_clamped(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 1)
    for asked, waited in ((30, 30.0), (10**9, 3600.0)):
        peer.fails = [PeerError("busy", "Later.", asked)]
        wakeups.wake("b.test", [rp])
        forward("b.test")
        row = delivery()
        assert row.next_try_at is not None
        assert (row.next_try_at - row.changed_at).total_seconds() == pytest.approx(waited, abs=1)
        make_due()


@pytest.mark.parametrize("kind", ["refused", "invalid"])
def test_what_does_not_pass_stops_until_somebody_changes_something(peer: FakePeer, b: OtherDomain, kind: str) -> None:
    rp = shared(b, 1)
    peer.fails = [PeerError(kind, "Never.")]  # type: ignore[arg-type]
    wakeups.wake("b.test", [rp])
    forward("b.test")
    assert delivery().stopped_at is not None
    assert delivery().next_try_at is None
    peers_sweep()
    forward("b.test")
    assert peer.requests == []
    assert delivery_resumed(peer="b.test")
    peers_sweep()
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 1}


@pytest.mark.parametrize(
    "data",
    [
        b"\x93\x01\x91\x92\xa2\xff\xfe\x80\x00",
        b"\xa1\xff",
        b"\x93\x01\x90\xcb\x7f\xf8" + bytes(6),
        b"\x91" * 100_000,
        b"",
    ],
    ids=["an id that is not UTF-8", "text that is not UTF-8", "a pause of NaN", "deep nesting", "nothing"],
)
def test_an_answer_that_is_malformed_stops_forwarding_to_that_peer(peer: FakePeer, b: OtherDomain, data: bytes) -> None:
    rp = shared(b, 1)
    peer.says = [data]
    wakeups.wake("b.test", [rp])
    forward("b.test")
    row = delivery()
    assert (row.failure, row.failures) == ("invalid", 1)
    assert row.stopped_at is not None
    assert "not understood" in row.detail
    assert delivery_resumed(peer="b.test")
    peers_sweep()
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 1}


@pytest.mark.parametrize(
    ("kind", "tried"), [("unreachable", True), ("refused", True), ("busy", False), ("invalid", False)]
)
def test_contact_by_the_peer_has_it_tried_once(peer: FakePeer, b: OtherDomain, kind: str, tried: bool) -> None:
    rp = shared(b, 1)
    peer.fails = [PeerError(kind, "No.", 60)]  # type: ignore[arg-type]
    wakeups.wake("b.test", [rp])
    forward("b.test")
    wakeups.probe("b.test")
    assert delivery().failures == 1
    forward("b.test")
    assert (rp in peer.vectors) is tried


def test_a_peer_that_fails_is_sent_no_task_until_it_is_time_and_then_by_the_sweep(
    peer: FakePeer, b: OtherDomain
) -> None:
    sent: list[str] = []
    rp = shared(b, 1)
    peer.fails = [PeerError("busy", "Later.", 60)]
    forward_woken(rp)
    forward_start.connect(sent.append)
    for _ in range(5):
        wakeups.wake("b.test", [rp])
    peers_sweep()
    assert sent == []
    make_due()
    peers_sweep()
    assert sent == ["b.test"]
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 1}


@pytest.mark.parametrize("kind", ["refused", "invalid", "busy"])
def test_what_is_published_while_delivery_is_stopped_costs_no_task_each(
    peer: FakePeer, b: OtherDomain, kind: str
) -> None:
    sent: list[str] = []
    rp = shared(b, 1)
    peer.fails = [PeerError(kind, "Never.", 60)]  # type: ignore[arg-type]
    forward_woken(rp)

    def send_now(name: str) -> None:
        sent.append(name)
        forward(name)

    forward_start.connect(send_now)
    for looked_too_early in (False, True):
        if looked_too_early:
            forward("b.test")
        for _ in range(50):
            wakeups.wake("b.test", [rp])
        assert len(sent) <= 1
    assert peer.requests == []
    assert delivery_resumed(peer="b.test")
    peers_sweep()
    assert peer.vectors[rp] == {own(rp): 1}, "it is not held off when somebody changed something"


@pytest.mark.parametrize(("asked_s", "left_alone_s"), [(60.0, 60), (3600.0, 3600)])
def test_a_peer_that_asks_for_a_long_pause_is_left_alone_and_holds_no_thread(
    peer: FakePeer, b: OtherDomain, asked_s: float, left_alone_s: float
) -> None:
    sent: list[str] = []
    rp = shared(b, 1)
    peer.pause_s = asked_s
    began = time.monotonic()
    wakeups.wake("b.test", [rp])
    assert forward("b.test") is False
    assert time.monotonic() - began < 30.0
    (paused_ms,) = [redis_client().pttl("herald:peer:{b.test}:paused")]
    assert left_alone_s - 1 < paused_ms / 1000 <= left_alone_s
    assert delivery_get("b.test") is None, "nothing failed"
    forward_start.connect(sent.append)
    peers_sweep()
    for _ in range(5):
        wakeups.wake("b.test", [rp])
    forward("b.test")
    assert sent == []
    assert len(peer.requests) == 1
    peer.pause_s = 0.0
    for key in ("paused", "sent"):
        redis_client().delete("herald:peer:{b.test}:" + key)  # as when it is over
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 1}


def test_a_pause_wakes_the_peer_when_it_is_over(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    sent: list[str] = []
    rp = shared(b, 1)
    peer.pause_s = 30.0
    forward_woken(rp)
    forward_start.connect(sent.append)
    peer_state.pause_end("b.test")
    redis_client().set("herald:peer:{b.test}:compared", "1")
    peers_sweep()
    assert sent == []
    now += 31
    peers_sweep()
    assert sent == ["b.test"]


def test_a_short_pause_is_waited_for_in_the_turn(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 1)
    peer.pause_s = 0.05
    forward_woken(rp)
    assert peer.vectors[rp] == {own(rp): 1}
