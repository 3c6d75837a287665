"""Turns of forwarding: one task at a time per peer, taken by turns, lost ones found by the sweep."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from redis.exceptions import RedisError, ResponseError

from eventing.log import control, watermarks
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import comparing, outbound, sweeping, wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.forwarding.sweeping import peers_sweep
from eventing.replication.ports import forward_start, forwards_waiting
from eventing.store import peer_state, waiting_vectors
from eventing.store.client import client as redis_client
from eventing.store.peer_state import PeerLock, TakenWork
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer, delivery, forward_woken, own, publish, shared
from tests.replication.shared_rp import (
    head,
    peer_made,
)
from tests.store.redis_process import RedisProcess

pytestmark = pytest.mark.usefixtures("shared_stores")


def taken(turn: PeerLock) -> TakenWork:
    """What the turn takes on; it must still have the lock."""
    work = turn.take(time.time(), wakeups.RPS_MAX)
    assert work is not None
    return work


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
    assert taken(turn).rps == [rp]
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
    assert sorted(taken(turn).rps) == ["x", "y"]
    threading.Timer(0.05, wakeups.wake, ("b.test", ["z"])).start()
    began = time.monotonic()
    assert turn.wait(60.0)
    assert time.monotonic() - began < 30.0
    assert taken(turn).rps == ["z"]
    assert turn.release()
    wakeups.wake("b.test", ["z"])
    assert sent == ["b.test", "b.test"]


def test_a_notification_is_taken_with_what_it_tells_of(b: OtherDomain) -> None:
    turn = wakeups.peer_lock_acquire("b.test")
    assert turn is not None
    assert not taken(turn).notified
    wakeups.wake_all({"b.test": ["x", "y"], "c.test": ["x"]})
    work = taken(turn)
    assert (sorted(work.rps), work.notified) == (["x", "y"], True)
    assert not turn.wait(0.01), "it would only find that nothing is left"
    now = time.time()
    watermarks.check_again("b.test", ["due"], now - 1)
    watermarks.check_again("b.test", ["later"], now + 50)
    waiting_vectors.vectors_note({"b.test": ["lazy"]}, now - 3)
    work = taken(turn)
    assert (work.rps, work.notified) == (["due"], False)
    assert work.timer_at == pytest.approx(now + 50, abs=0.01)
    assert work.vectors_since == pytest.approx(now - 3)
    assert taken(turn).rps == [], "each is taken once"
    wakeups.wake("b.test", ["z"])
    assert not turn.release()


def oldest() -> float | None:
    at = delivery().oldest_at
    return None if at is None else at.timestamp()


def stored_at(rp: str, offset: int) -> float | None:
    return control.stored_at([(rp, offset)])[0][1]


def test_a_lost_wake_up_is_found_by_the_sweep(peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "UNDER_WAY_S", 0.0)
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
    taken(dead)
    redis_client().delete("herald:peer:{b.test}:turn")  # as when TURN_S is over
    assert dead.take(time.time(), wakeups.RPS_MAX) is None
    peers_sweep()
    forward("b.test")
    assert peer.vectors[rp] == {own(rp): 3}


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


def test_a_server_that_refuses_keeps_no_peer_of_another_server_from_being_woken(
    b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    forward_start.connect(sent.append)
    monkeypatch.setattr(
        peer_state, "run_script_all", lambda _script, wakes: [ResponseError("OOM"), *[1] * (len(wakes) - 1)]
    )
    with pytest.raises(ResponseError):
        wakeups.wake_all({"b.test": ["x"], "c.test": ["x"]})
    assert sent == ["c.test"]


def test_rps_wait_in_turn_where_there_are_more_than_fit_into_a_request(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, later = ([f"{of}{number:025d}" for number in range(3 * wakeups.RPS_MAX)] for of in "bc")
    looked: list[str] = []

    def built(peer: str, rps: Sequence[str], *_: object, **__: object) -> tuple[None, list[str], list[str]]:
        if not looked:
            wakeups.wake(peer, later)
        looked.extend(rps)
        return None, [], []

    monkeypatch.setattr(outbound, "request_build", built)
    wakeups.wake("b.test", first)
    assert forward("b.test") is False
    assert sorted(looked[: len(first)]) == first, "those that came later are looked at later"
    assert sorted(looked[len(first) :]) == later


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
    monkeypatch.setattr(outbound, "LINGER_S", 2.0)  # longer than a busy machine stands still
    queue = Queue(peer, ["b.test"], monkeypatch)
    threading.Timer(0.5, lambda: setattr(queue, "busy", False)).start()
    (rp,) = queue.rps
    wakeups.wake("b.test", [rp])
    queue.run(10)
    assert queue.turns == ["b.test"]
    assert peer.vectors[rp] == {own(rp): head(rp).own}


@pytest.mark.parametrize(("threads", "lingers"), [(1, False), (2, True)])
def test_a_peer_with_nothing_to_do_lingers_for_no_longer_than_others_wait(
    threads: int,
    lingers: bool,
    peer: FakePeer,
    b: OtherDomain,
    monkeypatch: pytest.MonkeyPatch,
    configure: Callable[..., None],
) -> None:
    configure(forwarders=threads)
    monkeypatch.setattr(outbound, "CROWDED_S", 0.1)
    monkeypatch.setattr(outbound, "OTHERS_S", 60.0)  # a busy turn would go on
    monkeypatch.setattr(outbound, "LINGER_S", 3.0 if lingers else 60.0)
    rp = shared(b, 1)
    wakeups.wake("b.test", [rp])
    forwards_waiting.connect(lambda: 1)
    began = time.monotonic()
    forward("b.test")
    took_s = time.monotonic() - began
    assert took_s >= 2.0 if lingers else took_s < 30.0, "with a free thread nobody waits for this one"
    assert peer.vectors[rp] == {own(rp): 1}


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
