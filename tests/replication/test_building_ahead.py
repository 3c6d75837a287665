"""outbound.py builds the next request while the peer works on the one before; what its answer belies is never sent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from eventing.core.seals.seals import seal_read
from eventing.log import federated_bulk
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError
from eventing.replication.forwarding import outbound, outbound_request, wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.services.sealing import seal_own
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import (
    FakePeer,
    delivery,
    own,
    publish,
    shared,
)

pytestmark = pytest.mark.usefixtures("shared_stores")


@dataclass
class Witness(FakePeer):
    """A peer that does something of its own at its n-th request with runs, and knows whether one is built meanwhile."""

    under_way: bool = False
    built: threading.Event = field(default_factory=threading.Event)
    at: dict[int, Callable[[wire.ExchangeRequest], wire.ExchangeAnswer]] = field(default_factory=dict)
    with_runs: int = 0

    def begin(self, *arguments: Any, **named: Any) -> Callable[[], bytes]:
        assert not self.under_way
        self.under_way = True
        waiting = super().begin(*arguments, **named)

        def answered() -> bytes:
            try:
                return waiting()
            finally:
                self.under_way = False

        return answered

    def taken(self, request: wire.ExchangeRequest) -> wire.ExchangeAnswer:
        if any(part.runs for part in request.parts):
            self.with_runs += 1
            if self.with_runs in self.at:
                return self.at[self.with_runs](request)
        return super().taken(request)

    def waits_until_the_next_is_built(self, request: wire.ExchangeRequest) -> wire.ExchangeAnswer:
        """Something to do at the n-th request; at most for some seconds."""
        assert self.built.wait(30.0), "nothing was built while the peer was at work"
        return FakePeer.taken(self, request)

    def firsts(self) -> list[int]:
        """The first sequences of all runs that came, in their order."""
        return [seal_read(run.seal).first for request in self.requests for part in request.parts for run in part.runs]


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Witness:
    made = Witness()
    monkeypatch.setattr(outbound, "begin", made.begin)
    monkeypatch.setattr(wire, "REQUEST_EVENTS_MAX", 20)
    runs_after_all = federated_bulk.runs_after_all

    def noted(*arguments: object) -> object:
        found = runs_after_all(*arguments)  # type: ignore[arg-type]
        if made.under_way:
            made.built.set()
        return found

    monkeypatch.setattr(outbound_request, "runs_after_all", noted)
    return made


def backlog(b: OtherDomain) -> str:
    """An RP with five requests' worth of events; b has said that it holds none of them."""
    rp = shared(b)
    wakeups.wake("b.test", [rp])
    forward("b.test")
    for _ in range(5):
        publish(rp, 20)
        seal_own(rp)
    wakeups.wake("b.test", [rp])
    return rp


def many(b: OtherDomain, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """RPs that fill five requests together."""
    monkeypatch.setattr(outbound, "RPS_MIN", 4)
    rps = [shared(b) for _ in range(20)]
    wakeups.wake("b.test", rps)
    forward("b.test")
    for rp in rps:
        publish(rp, 5)
    wakeups.wake("b.test", rps)
    return rps


def test_the_next_request_is_built_while_the_peer_works_and_sent_after_its_answer(
    peer: Witness, b: OtherDomain
) -> None:
    rp = backlog(b)
    peer.at = {1: peer.waits_until_the_next_is_built}
    forward("b.test")
    assert peer.built.is_set()
    assert peer.at_once_max == 1
    assert peer.firsts() == [1, 21, 41, 61, 81], "nothing twice"
    assert peer.vectors[rp] == {own(rp): 100}


def test_many_rps_share_requests_that_are_built_ahead(
    peer: Witness,
    b: OtherDomain,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rps = many(b, monkeypatch)
    peer.at = {1: peer.waits_until_the_next_is_built}
    forward("b.test")
    assert peer.built.is_set()
    assert peer.at_once_max == 1
    assert all(peer.vectors[rp] == {own(rp): 5} for rp in rps)
    assert peer.events() == 100


def fails(request: wire.ExchangeRequest) -> wire.ExchangeAnswer:
    raise PeerError("unreachable", "Cut.")


def test_what_was_built_ahead_of_a_request_that_failed_is_thrown_away(
    peer: Witness, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbound, "SOON_S", 5.0)  # the turn goes on after the failure
    rp = backlog(b)
    peer.at = {2: fails}
    forward("b.test")
    assert peer.firsts() == [1, 21, 21, 41, 61, 81]
    assert peer.vectors[rp] == {own(rp): 100}


def test_rps_of_which_a_request_was_built_ahead_in_vain_are_forwarded_by_the_next_task(
    peer: Witness, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    rps = many(b, monkeypatch)
    peer.at = {1: fails}
    forward("b.test")
    assert delivery().failures == 1
    dirty: Any = redis_client().smembers("herald:peer:{b.test}:dirty")
    assert {rp.decode() for rp in dirty} == set(rps)


def test_what_was_built_ahead_of_runs_that_the_peer_did_not_take_is_not_sent(peer: Witness, b: OtherDomain) -> None:
    rp = backlog(b)
    peer.at = {2: lambda request: wire.ExchangeAnswer(wire.VERSION, [wire.RpAnswer(rp, dict(peer.vectors[rp]))])}
    forward("b.test")
    assert peer.firsts() == [1, 21], "put off, and no hole made"
    assert peer.vectors[rp] == {own(rp): 20}


def test_what_was_built_ahead_for_a_link_that_is_pruned_is_not_sent(peer: Witness, b: OtherDomain) -> None:
    rp = backlog(b)

    def prunes(request: wire.ExchangeRequest) -> wire.ExchangeAnswer:
        answer = FakePeer.taken(peer, request)
        answer.parts[0].prune = [own(rp)]
        return answer

    peer.at = {2: prunes}
    forward("b.test")
    assert peer.firsts() == [1, 21]
    assert peer.requests[-1].parts[0].runs == []
    assert peer.requests[-1].parts[0].have[own(rp)] > 40


def test_an_answer_that_leaves_an_rp_out_takes_it_out_of_what_was_built_ahead(peer: Witness, b: OtherDomain) -> None:
    rp = backlog(b)
    peer.at = {2: lambda request: wire.ExchangeAnswer(wire.VERSION, [])}
    forward("b.test")
    assert peer.firsts()[:3] == [1, 21, 21]
    assert peer.vectors[rp] == {own(rp): 100}
