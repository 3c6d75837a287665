"""Forwarding: outbound.py, wakeups.py, sweeping.py and the deliveries' state, against a peer that answers as each test says."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from msgspec.structs import replace
from redis.exceptions import RedisError

from eventing.access.services.keys import key_rotate
from eventing.conf import config
from eventing.core.events.feeds import Feed
from eventing.core.events.history import HistoryBounds
from eventing.core.seals.seals import low_water_mark_read, seal_read
from eventing.core.signing import Signed
from eventing.log import control, federated_bulk, watermarks
from eventing.log.federated import StoredRun, seal_of
from eventing.log.federated_bulk import WantedRuns
from eventing.overlay import graft_timer, link_refusals, presumed_vector
from eventing.overlay.link_state import Link
from eventing.peering.models import Peer, PeerDelivery
from eventing.peering.rules.deliveries import Failure
from eventing.peering.rules.domain_documents import read as document_read
from eventing.peering.selectors.deliveries import delivery_get
from eventing.peering.services.deliveries import delivery_failed, delivery_resumed
from eventing.peering.services.domain_documents import own_document
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError
from eventing.replication.forwarding import holding, outbound, outbound_answer, outbound_request, sweeping, wakeups
from eventing.replication.forwarding.fork_detection import proof_found
from eventing.replication.forwarding.outbound import forward
from eventing.replication.forwarding.sweeping import peers_sweep
from eventing.replication.joining.presenters import replicas_shown
from eventing.replication.models import ReplicaLink, SealHead
from eventing.replication.ports import forward_start, forwards_waiting
from eventing.replication.selectors.forwarding import participations_forget
from eventing.replication.services.replica_statements import statements_pending
from eventing.replication.services.sealing import seal_own
from eventing.rps.models import RendezvousPoint
from eventing.store import peer_state
from eventing.store.client import client as redis_client
from eventing.store.sealing_holds import held_since
from tests.peering.other_domain import OtherDomain
from tests.planes import events_made, principal
from tests.replication.answering import FakePeer, delivery, own, publish, shared
from tests.replication.own_logs import backup, decode, put_back
from tests.replication.shared_rp import (
    BOUNDS,
    Origin,
    admit,
    counted,
    head,
    held,
    link,
    new_rp,
    peer_made,
    send,
    send_runs,
)
from tests.store.redis_process import RedisProcess

pytestmark = pytest.mark.usefixtures("shared_stores")


def make_due() -> None:
    PeerDelivery.objects.update(next_try_at=timezone.now() - timedelta(seconds=1))


def test_a_peer_says_what_it_holds_and_gets_what_it_lacks(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 5)
    wakeups.wake("b.test", [rp])
    assert forward("b.test") is False
    assert peer.vectors[rp] == {own(rp): 5}
    assert [len(request.parts[0].runs) for request in peer.requests] == [0, 1]
    assert delivery_get("b.test") is None
    assert watermarks.links_read("b.test", [rp])[rp].theirs == {own(rp): 5}
    peer.requests.clear()
    forward("b.test")
    assert peer.requests == []


def test_nothing_is_sealed_before_the_peer_has_said_what_it_holds(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 5)
    peer.fails = [PeerError("unreachable", "Cut.")]
    wakeups.wake("b.test", [rp])
    forward("b.test")
    assert head(rp).sealed == 0


def test_the_keys_of_a_runs_origin_come_before_or_with_it_and_once(peer: FakePeer, b: OtherDomain) -> None:
    """A run signed with a new key would otherwise be called forged by whoever has not heard of the key yet."""

    def told() -> list[int]:
        return [document_read(one).serial for request in peer.requests for one in request.domains]

    rp = shared(b, 2)
    for _ in range(2):
        wakeups.wake("b.test", [rp])
        forward("b.test")
        publish(rp, 1)
    assert told() == [document_read(own_document()).serial]
    key_rotate(principal=principal("root", admin=True))
    peer.requests.clear()
    outbound_request.documents_sent().recent.forget()  # a second later
    wakeups.wake("b.test", [rp])
    forward("b.test")
    assert told() == [document_read(own_document()).serial]


def test_one_request_carries_many_rps(peer: FakePeer, b: OtherDomain) -> None:
    rps = [shared(b, 2) for _ in range(30)]
    wakeups.wake("b.test", rps)
    forward("b.test")
    assert all(peer.vectors[rp] == {own(rp): 2} for rp in rps)
    assert len(peer.requests) <= 3


def test_what_changed_at_many_rps_at_once_is_told_in_as_many_requests_as_it_needs(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound_request, "STATEMENTS_BYTES_MAX", 4000)
    rps = [shared(b) for _ in range(12)]
    wakeups.wake("b.test", rps)
    forward("b.test")
    told = [[part for part in request.parts if part.statements] for request in peer.requests]
    sizes = [sum(len(one.payload) + len(one.signature) for part in some for one in part.statements) for some in told]
    assert max(sizes) <= 4000
    assert sorted(part.rp for some in told for part in some) == sorted(rps), "each once"
    assert statements_pending("b.test", rps) == {}


def test_catching_up_is_bounded_requests_one_after_the_other(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b)
    for _ in range(10):
        publish(rp, 500)
    wakeups.wake("b.test", [rp])
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 5000}
    sizes = [sum(len(run.events) for part in request.parts for run in part.runs) for request in peer.requests]
    assert max(sizes) <= wire.REQUEST_EVENTS_MAX
    assert peer.events() == 5000


def test_one_request_is_in_flight_per_peer_however_many_tasks_there_are(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = wakeups.peer_lock_acquire("b.test")
    assert turn is not None
    rp = shared(b, 1)
    wakeups.wake("b.test", [rp])
    forward("b.test")
    assert peer.requests == []
    assert not turn.release(), "what was noted meanwhile keeps the turn"
    assert turn.take(wakeups.RPS_MAX) == [rp]
    turn.put_back([rp])
    assert turn.release(whatever=True)
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 1}
    assert peer.at_once_max == 1


def test_a_wake_up_during_a_turn_rings_its_task_and_sends_none(b: OtherDomain) -> None:
    sent: list[str] = []
    forward_start.connect(sent.append)
    wakeups.wake("b.test", ["x"])
    wakeups.wake("b.test", ["y"])
    assert sent == ["b.test"], "one task until it begins"
    turn = wakeups.peer_lock_acquire("b.test")
    assert turn is not None
    assert sorted(turn.take(wakeups.RPS_MAX)) == ["x", "y"]
    threading.Timer(0.05, wakeups.wake, ("b.test", ["z"])).start()
    began = time.monotonic()
    assert turn.wait(60.0)
    assert time.monotonic() - began < 30.0
    assert turn.take(wakeups.RPS_MAX) == ["z"]
    assert turn.release()
    wakeups.wake("b.test", ["z"])
    assert sent == ["b.test", "b.test"]


def oldest() -> float | None:
    at = delivery().oldest_at
    return None if at is None else at.timestamp()


def stored_at(rp: str, offset: int) -> float | None:
    return control.stored_at([(rp, offset)])[0][1]


def test_a_lost_wake_up_is_found_by_the_sweep(peer: FakePeer, b: OtherDomain) -> None:
    sent: list[str] = []
    forward_start.connect(sent.append)
    rp = shared(b, 4)
    assert peers_sweep() == 1
    assert sent == ["b.test"]
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 4}
    redis_client().delete("herald:peer:{b.test}:compared")
    assert peers_sweep() == 0
    publish(rp, 2)  # and nobody is woken: a gateway died
    redis_client().delete("herald:peer:{b.test}:compared")
    assert peers_sweep() == 1
    assert (delivery().backlog, oldest()) == (2, stored_at(rp, 5))
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 6}
    publish(rp, 1)  # before a sweep has seen that nothing waited
    redis_client().delete("herald:peer:{b.test}:compared")
    peers_sweep()
    assert (delivery().backlog, oldest()) == (1, stored_at(rp, 7)), "the age is the oldest event's, not the backlog's"
    forward("b.test")
    redis_client().delete("herald:peer:{b.test}:compared")
    peers_sweep()
    assert (delivery().backlog, delivery().oldest_at) == (0, None)


def test_a_task_that_died_loses_its_turn_and_the_sweep_finds_what_it_had_taken(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 3)
    wakeups.wake("b.test", [rp])
    dead = wakeups.peer_lock_acquire("b.test")
    assert dead is not None
    dead.take(wakeups.RPS_MAX)
    redis_client().delete("herald:peer:{b.test}:turn")  # as when TURN_S is over
    assert not dead.renew()
    peers_sweep()
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 3}


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


class Queue:
    """The queue of the forwarder with one thread, and peers at each of which something is published at every request of ours."""

    def __init__(self, peer: FakePeer, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.queue: list[str] = []
        self.rps = {shared(peer_named(name)): name for name in names}
        self.turns: list[str] = []
        self.busy = True
        taken = peer.taken

        def busy(request: wire.ExchangeRequest) -> wire.ExchangeAnswer:
            for rp in [part.rp for part in request.parts if self.busy]:
                publish(rp, 1)
                wakeups.wake(self.rps[rp], [rp])
            return taken(request)

        monkeypatch.setattr(peer, "taken", busy)
        forward_start.connect(self.queue.append)
        forwards_waiting.connect(lambda: len(self.queue))

    def run(self, turns: int) -> None:
        """What the thread does, and `workers.tasks.forward`: so many turns, or until nobody waits."""
        while self.queue and len(self.turns) < turns:
            name = self.queue.pop(0)
            self.turns.append(name)
            if forward(name):
                wakeups.wake(name)


def peer_named(name: str) -> OtherDomain:
    domain = OtherDomain(name)
    peer_made(domain)
    return domain


def test_more_busy_peers_than_threads_take_turns(peer: FakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "SPACING_S", 0.02)
    monkeypatch.setattr(outbound, "OTHERS_S", 0.3)
    queue = Queue(peer, ["b.test", "c.test", "d.test", "e.test"], monkeypatch)
    for rp, name in queue.rps.items():
        wakeups.wake(name, [rp])
    queue.run(12)  # a turn that is not given up when others wait lasts until the test is given up
    assert queue.turns == ["b.test", "c.test", "d.test", "e.test"] * 3


def test_a_peer_that_nobody_waits_for_keeps_its_turn(peer: FakePeer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "SPACING_S", 0.02)
    monkeypatch.setattr(outbound, "OTHERS_S", 0.05)
    monkeypatch.setattr(outbound, "LINGER_S", 0.3)
    queue = Queue(peer, ["b.test"], monkeypatch)
    threading.Timer(0.5, lambda: setattr(queue, "busy", False)).start()
    (rp,) = queue.rps
    wakeups.wake("b.test", [rp])
    queue.run(10)
    assert queue.turns == ["b.test"]
    assert peer.vectors[rp] == {own(rp): head(rp).own}


def test_a_peer_with_nothing_to_do_lingers_for_no_longer_than_others_wait(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound, "OTHERS_S", 0.1)
    monkeypatch.setattr(outbound, "LINGER_S", 60.0)
    rp = shared(b, 1)
    wakeups.wake("b.test", [rp])
    forwards_waiting.connect(lambda: 1)
    began = time.monotonic()
    forward("b.test")
    assert time.monotonic() - began < 30.0
    forwards_waiting.connect(None)
    monkeypatch.setattr(outbound, "LINGER_S", 0.01)
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 1}


def forward_woken(rp: str) -> None:
    wakeups.wake("b.test", [rp])
    forward("b.test")


def test_an_rp_that_the_peer_refuses_stops_alone(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        link_refusals, "SHUT_S", link_refusals.SHUT_S_MAX
    )  # longer than the turn takes on a busy machine
    good, bad = shared(b, 1), shared(b, 1)
    peer.refuses = {bad: "not-found"}
    wakeups.wake("b.test", [good, bad])
    forward("b.test")
    assert peer.vectors == {good: {own(good): 1}}
    assert delivery_get("b.test") is None
    asked = sum(bad in [part.rp for part in request.parts] for request in peer.requests)
    assert asked == 1
    assert watermarks.links_read("b.test", [bad])[bad].refusals.count == 1


def unpaused(link: Link) -> Link:
    return replace(link, refusals=replace(link.refusals, shut_until=0.0))


def test_an_rp_that_the_peer_goes_on_refusing_is_shown_as_stopped_and_live_again_when_it_speaks_of_it(
    peer: FakePeer, b: OtherDomain
) -> None:
    rp = shared(b, 1)
    peer.refuses = {rp: "not-found"}
    states = []
    for _ in range(outbound_answer.REFUSALS_MAX):
        forward_woken(rp)
        states.append(ReplicaLink.objects.get(rp=rp).state)
        participations_forget()
        watermarks.links_change("b.test", [rp], lambda _, link: unpaused(link))
    assert states == ["live"] * (outbound_answer.REFUSALS_MAX - 1) + ["stopped"]
    shown = {one.domain: one.link for one in replicas_shown(RendezvousPoint.objects.get(id=rp))}
    assert shown["b.test"] == "stopped"
    peer.requests.clear()
    forward_woken(rp)
    assert peer.requests == [], "nothing is sent over a link that stopped"
    assert send(Peer.objects.get(name="b.test"), wire.RpPart(rp)).parts[0].error == ""
    peer.refuses.clear()
    participations_forget()
    forward_woken(rp)
    assert peer.vectors[rp] == {own(rp): 1}


def test_a_peer_that_takes_nothing_is_not_sent_the_same_in_a_loop(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 3)
    peer.deaf = True
    wakeups.wake("b.test", [rp])
    forward("b.test")
    assert peer.events() == 3
    assert len(peer.requests) == 2


def test_a_peer_that_claims_what_it_does_not_have_is_asked_and_then_counted(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    rp = shared(b, 1)
    peer.claims = {"z" * 16: 99}
    forward_woken(rp)
    now = time.time()
    for _ in range(6):
        now += 40
        monkeypatch.setattr(time, "time", lambda at=now: at)
        forward("b.test")
    asked = [part.graft for request in peer.requests for part in request.parts if part.graft]
    assert len(asked) >= 4
    assert all(one == ["z" * 16] for one in asked)
    assert counted()[("false-vector", "b.test", "")] >= 1


def test_the_origin_signs_what_is_gone_and_says_so_with_the_runs(peer: FakePeer, b: OtherDomain) -> None:
    rp = new_rp(max_events=10)
    link(rp, b)
    for _ in range(5):
        control.append(rp, events_made(10, publish.begin), HistoryBounds(10, BOUNDS.max_bytes, None))  # type: ignore[attr-defined]
        publish.begin += 10  # type: ignore[attr-defined]
        seal_own(rp)
    forward_woken(rp)
    floors = [floor for request in peer.requests for part in request.parts for floor in part.low_water_marks]
    runs = [run for request in peer.requests for part in request.parts for run in part.runs]
    assert len(floors) >= 1
    assert seal_read(runs[0].seal).first > 1


def empty(rp: str) -> None:
    """Everything leaves the history."""
    state = head(rp)
    assert control.trim_log_before(rp, state.epoch, state.next).removed


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What forwarding looked for requests at."""
    looked: list[str] = []
    build = outbound_request.request_build

    def noted(peer: str, rps: Sequence[str], *rest: Any, **more: Any) -> Any:
        looked.extend(rps)
        return build(peer, rps, *rest, **more)

    monkeypatch.setattr(outbound, "request_build", noted)
    return looked


def test_of_a_history_that_is_empty_the_floor_is_said_and_then_it_is_left_alone(
    peer: FakePeer, b: OtherDomain, looks: list[str]
) -> None:
    rp = shared(b, 20)
    assert seal_own(rp) == 20
    empty(rp)
    wakeups.wake("b.test", [rp])
    assert forward("b.test") is False
    assert len(peer.requests) < 5
    assert len(looks) < 5
    said = [part for request in peer.requests for part in request.parts if part.low_water_marks]
    assert [(len(part.runs), low_water_mark_read(part.low_water_marks[0]).first) for part in said] == [(0, 21)]
    publish(rp, 2)
    forward_woken(rp)
    (run,) = [run for request in peer.requests for part in request.parts for run in part.runs]
    assert seal_read(run.seal).first == 21, "what is new is not kept waiting for what is gone"


def test_what_is_gone_and_what_is_held_of_other_rps_go_side_by_side(
    peer: FakePeer, b: OtherDomain, looks: list[str]
) -> None:
    rps = [shared(b, 20) for _ in range(4)]
    for rp in rps:
        seal_own(rp)
    for rp in rps[:2]:
        empty(rp)
    wakeups.wake("b.test", rps)
    assert forward("b.test") is False
    assert {rp: peer.vectors[rp] for rp in rps} == {rp: {own(rp): 20} if rp in rps[2:] else {} for rp in rps}
    assert len(looks) < 5 * len(rps)


def test_a_run_that_came_by_as_many_domains_as_it_may_is_not_looked_at_again_and_again(
    peer: FakePeer, b: OtherDomain, looks: list[str]
) -> None:
    c = OtherDomain("c.test")
    carrier = peer_made(c)
    rp = shared(b)
    link(rp, c)
    origin = Origin(c, rp)
    d = OtherDomain("d.test")
    peer_made(d)
    admit(rp, d)
    other = Origin(d, rp)
    far = other.run(3, *[f"x{n}.test" for n in range(wire.PATH_MAX - 2)], "c.test")
    send_runs(carrier, rp, far, origin.run(2))
    assert len(held(rp)) == 5
    wakeups.wake("b.test", [rp])
    assert forward("b.test") is False
    assert peer.vectors[rp] == {origin.feed.key: 2}
    assert len(looks) < 5
    assert len(peer.requests) < 5


def test_a_carrier_that_makes_up_paths_keeps_runs_from_another_peer_once(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who a run came through is not sent it; c says so of b, which has never seen the run."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    c = OtherDomain("c.test")
    carrier = peer_made(c)
    rp = shared(b)
    link(rp, c)
    d = OtherDomain("d.test")
    peer_made(d)
    admit(rp, d)
    origin = Origin(d, rp)
    forward_woken(rp)
    send_runs(carrier, rp, origin.run(3, "b.test", "c.test"))
    forward_woken(rp)
    assert peer.events() == 0, "the path is believed for a while"
    now += presumed_vector.PRESUMED_S
    forward_woken(rp)
    assert peer.vectors[rp] == {origin.feed.key: 3}
    for _ in range(3):
        send_runs(carrier, rp, origin.run(1, "b.test", "c.test"))
        forward_woken(rp)
        assert peer.vectors[rp] == {origin.feed.key: origin.last}, "and no more once b has answered otherwise"
    now += presumed_vector.PATHS_DOUBTED_S + 1
    send_runs(carrier, rp, origin.run(1, "b.test", "c.test"))
    forward_woken(rp)
    assert peer.vectors[rp] == {origin.feed.key: origin.last - 1}


def test_a_peer_whose_origin_says_that_it_is_gone_is_not_called_a_liar(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    rp = shared(b, 1)
    origin = Origin(b, rp)
    send_runs(Peer.objects.get(name="b.test"), rp, have={origin.feed.key: 99}, low_water_marks=[origin.floor(100)])
    peer.claims = {origin.feed.key: 99}
    forward_woken(rp)
    now = time.time()
    for _ in range(10):
        now += 40
        monkeypatch.setattr(time, "time", lambda at=now: at)
        forward("b.test")
    asked = [part.graft for request in peer.requests for part in request.parts if part.graft]
    assert 0 < len(asked) < graft_timer.GRAFTS_FUTILE, "others may keep it longer: it is asked, but not for ever"
    assert not counted()


def test_a_peer_that_is_none_any_more_is_not_called_and_forgotten(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 1)
    forward_woken(rp)
    delivery_failed(peer="nobody.test", failure=Failure.BUSY, detail="x", jitter=0.5)
    assert delivery_get("nobody.test") is None
    wakeups.wake("nobody.test", [rp])
    assert forward("nobody.test") is False
    assert redis_client().keys("herald:peer:{nobody.test}:*") == []


def test_at_the_start_every_peer_is_asked_anew_what_it_holds(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 2)
    forward_woken(rp)
    sweeping.begin_anew()
    peer.requests.clear()
    publish(rp, 1)
    forward_woken(rp)
    assert [len(part.runs) for request in peer.requests for part in request.parts] == [0, 1]
    assert peer.vectors[rp] == {own(rp): 3}


@pytest.mark.parametrize("heard_by", ["answer", "request"])
@pytest.mark.parametrize("start", ["long ago", "before it was shared"])
def test_numbers_that_a_peer_says_to_hold_are_not_used_again_until_it_had_time_to_show_them(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch, heard_by: str, start: str
) -> None:
    """This domain was put back from a copy, and the only peer was out of reach, or no peer of the RP, when it started."""
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    rp = shared(b, 3)
    seal_own(rp)
    if start == "long ago":
        sweeping.begin_anew()
    publish(rp, 30)
    now += 50
    peer.claims = {own(rp): 20}
    if heard_by == "request":
        send(Peer.objects.get(name="b.test"), wire.RpPart(rp, {own(rp): 20}))
    for _ in range(4):
        forward_woken(rp)
        assert head(rp).sealed == 3
        assert peer.events() == 0
        now += holding.HOLD_S_MAX / 4 - 0.1
    now += 1
    for claim in (20, 90):
        peer.claims = {own(rp): claim}
        forward_woken(rp)
        assert head(rp).sealed == head(rp).own, "it had its time, and has it once"
        publish(rp, 30)


def restored(b: OtherDomain) -> tuple[str, str, Signed]:
    """An RP, its epoch, and our seal up to 7 there, of which a domain that was put back whole knows 1 to 3, and has 2 events since."""
    rp = shared(b, 3)
    seal_own(rp)
    saved, rows = backup(rp), list(SealHead.objects.filter(rp=rp).values())
    publish(rp, 4)
    seal_own(rp)
    newest = seal_of(rp, own(rp), 7)
    assert newest is not None
    put_back(rp, saved)
    SealHead.objects.filter(rp=rp).delete()
    SealHead.objects.bulk_create([SealHead(**row) for row in rows])
    sweeping.begin_anew()
    publish(rp, 2)
    return rp, head(rp).epoch, decode(newest.seal)


def test_a_peer_that_holds_more_of_our_feed_shows_our_seal_with_its_answer_and_a_new_epoch_begins(
    peer: FakePeer, b: OtherDomain
) -> None:
    rp, was, newest = restored(b)
    peer.claims, peer.newest = {own(rp): 7}, {rp: [newest]}
    wakeups.wake("b.test", [rp])
    forward("b.test")
    assert head(rp).epoch != was
    assert SealHead.objects.get(rp=rp, epoch=was).last == 7
    assert peer.requests[0].parts[0].own == Feed(config().domain, was).key
    assert not any(run for part in peer.requests[0].parts for run in part.runs)
    forward_woken(rp)
    assert peer.vectors[rp] == {own(rp): 2}, "what was published since goes out in the new epoch, without a pause"
    assert not counted()


def test_a_peer_with_older_software_is_asked_for_the_runs_at_once(peer: FakePeer, b: OtherDomain) -> None:
    rp, was, newest = restored(b)
    key = own(rp)
    peer.claims = {key: 7}
    forward_woken(rp)
    assert [part.graft for request in peer.requests for part in request.parts][:2] == [[], [key]]
    assert head(rp).sealed == 3, "nothing is sealed meanwhile"
    run = wire.SealedRun(newest, [], b"", [config().domain, "b.test"])
    send(Peer.objects.get(name="b.test"), wire.RpPart(rp, {key: 7}, [run]))
    assert head(rp).epoch != was


@pytest.mark.parametrize("ahead", [1, 2**50])
@pytest.mark.parametrize("software", ["new", "old"])
def test_a_peer_that_claims_what_it_cannot_show_stops_no_other_peer(
    peer: FakePeer, b: OtherDomain, ahead: int, software: str
) -> None:
    c = OtherDomain("c.test")
    peer_made(c)
    rp = shared(b, 3)
    link(rp, c)
    for name in ("b.test", "c.test"):
        wakeups.wake(name, [rp])
        forward(name)
    publish(rp, 1)
    peer.newest = {} if software == "new" else None
    peer.claims = {own(rp): head(rp).own + ahead}
    wakeups.wake("c.test", [rp])
    forward("c.test")
    send(Peer.objects.get(name="c.test"), wire.RpPart(rp, {own(rp): head(rp).own + ahead}))
    assert not held_since([rp])
    peer.claims = {}
    publish(rp, 1)
    forward_woken(rp)
    assert peer.vectors[rp] == {own(rp): 5}


@pytest.mark.parametrize("ahead", [1, 2**50])
def test_a_peer_that_is_asked_for_the_seal_of_its_claim_and_has_none_is_not_waited_for(
    peer: FakePeer, b: OtherDomain, ahead: int
) -> None:
    """At a start, when nobody has been heard yet."""
    rp = shared(b, 3)
    seal_own(rp)
    sweeping.begin_anew()
    publish(rp, 1)
    claim = {own(rp): 4 + ahead}
    answer = send(Peer.objects.get(name="b.test"), wire.RpPart(rp, claim)).parts[0]
    assert answer.graft == [own(rp)], "it is to send what it claims"
    assert not watermarks.links_read("b.test", [rp])[rp].met, "a vector that is not shown does not count as heard"
    assert head(rp).sealed == 3
    peer.claims, peer.newest = claim, {}
    forward_woken(rp)
    forward_woken(rp)
    assert head(rp).sealed == 4
    assert counted()["false-vector", "b.test", ""]
    link_now = watermarks.links_read("b.test", [rp])[rp]
    assert link_now.theirs[own(rp)] <= 4, "nor is it shown as if the peer held it"
    assert peer.events() == 1


def test_the_turn_of_a_process_that_was_killed_holds_up_nobody_after_the_start(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 1)
    assert wakeups.peer_lock_acquire("b.test") is not None
    assert forward("b.test") is False
    assert not peer.requests
    sweeping.begin_anew()
    forward_woken(rp)
    assert peer.vectors[rp] == {own(rp): 1}


def test_a_turn_that_an_outage_of_redis_cuts_short_is_over_as_soon_as_redis_is_back(
    monkeypatch: pytest.MonkeyPatch, configure: Callable[..., None], tmp_path: Path
) -> None:
    redis = RedisProcess(tmp_path / "redis")
    redis.start()
    try:
        configure(redis_url=redis.url)
        b = OtherDomain("b.test")
        peer_made(b)
        rp = shared(b, 1)

        class LastSeen(FakePeer):
            """A peer at whose first request Redis ends."""

            def taken(self, request: wire.ExchangeRequest) -> wire.ExchangeAnswer:
                if len(self.requests) == 1:
                    redis.kill()
                return super().taken(request)

        peer = LastSeen()
        monkeypatch.setattr(outbound, "begin", peer.begin)
        wakeups.wake("b.test", [rp])
        with pytest.raises(RedisError):
            forward("b.test")
        with pytest.raises(RedisError):
            peers_sweep()
        redis.start()
        assert redis_client().exists("herald:peer:{b.test}:turn"), "the turn outlived the outage"
        sent: list[str] = []
        forward_start.connect(sent.append)
        peers_sweep()
        assert sent == ["b.test"]
        forward("b.test")
        assert peer.vectors[rp] == {own(rp): 1}
    finally:
        redis_client().close()
        redis.kill()


def test_a_turn_whose_answer_was_lost_is_still_its_askers(b: OtherDomain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: b"t" * count)
    assert wakeups.peer_lock_acquire("b.test") is not None
    assert wakeups.peer_lock_acquire("b.test") is not None, "redis-py sends a command again whose answer did not come"


def test_a_proof_of_equivocation_is_told_though_there_is_no_event_to_forward(peer: FakePeer, b: OtherDomain) -> None:
    c = OtherDomain("c.test")
    peer_made(c)
    rp = shared(b, 1)
    forward_woken(rp)
    peer.requests.clear()
    origin = Origin(c, rp)
    one, other = (origin.seal(origin.events(2)) for _ in range(2))
    proof_found(one, other, carrier="c.test")
    assert forward("b.test") is False
    (request,) = peer.requests
    (told,) = request.evidence
    assert {told.one, told.other} == {one, other}
    peer.requests.clear()
    assert forward("b.test") is False
    assert not peer.requests, "once is enough"


def test_what_was_sealed_just_now_is_not_read_again(
    b: OtherDomain, peer: FakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rps = [shared(b) for _ in range(3)]
    wakeups.wake("b.test", rps)
    forward("b.test")
    read: list[str] = []
    runs_after_all = federated_bulk.runs_after_all

    def noted(wanted: Sequence[WantedRuns], *bounds: int) -> list[list[StoredRun]]:
        read.extend(one.rp for one in wanted)
        return runs_after_all(wanted, *bounds)

    monkeypatch.setattr(outbound_request, "runs_after_all", noted)
    publish(rps[0], 2)
    publish(rps[1], 3)
    seal_own(rps[1])
    publish(rps[1], 1)
    publish(rps[2], 4)
    peer.requests.clear()
    wakeups.wake("b.test", rps)
    forward("b.test")
    assert read == [rps[1]], "of which more is lacking than what was sealed just now"
    assert {rp: peer.vectors[rp] for rp in rps} == {
        rps[0]: {own(rps[0]): 2},
        rps[1]: {own(rps[1]): 4},
        rps[2]: {own(rps[2]): 4},
    }
    sent = {part.rp: [event for run in part.runs for event in run.events] for part in peer.requests[0].parts}
    assert sent == {rp: held(rp) for rp in rps}


def test_a_run_that_is_larger_than_what_others_leave_travels_alone_and_is_not_kept_waiting(
    b: OtherDomain, peer: FakePeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "REQUEST_EVENTS_MAX", 10)
    rps = [shared(b) for _ in range(3)]
    wakeups.wake("b.test", rps)
    forward("b.test")
    publish(rps[0], 12)
    seal_own(rps[0])
    publish(rps[1], 3)
    publish(rps[2], 3)
    peer.requests.clear()
    wakeups.wake("b.test", rps)
    forward("b.test")
    counts = [[len(run.events) for part in request.parts for run in part.runs] for request in peer.requests]
    assert all(sum(one) <= 10 or len(one) == 1 for one in counts), counts
    assert peer.events() == 18
    assert {rp: peer.vectors[rp][own(rp)] for rp in rps} == {rps[0]: 12, rps[1]: 3, rps[2]: 3}
