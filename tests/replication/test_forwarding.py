"""What a turn of forwarding sends: outbound.py, against a peer that answers as each test says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eventing.access.services.keys import key_rotate
from eventing.log import federated_bulk, watermarks
from eventing.log.federated import StoredRun
from eventing.log.federated_bulk import WantedRuns
from eventing.peering.rules.deliveries import Failure
from eventing.peering.rules.domain_documents import read as document_read
from eventing.peering.selectors.deliveries import delivery_get
from eventing.peering.services.deliveries import delivery_failed
from eventing.peering.services.domain_documents import own_document
from eventing.peering.wire import messages as wire
from eventing.peering.wire.client import PeerError
from eventing.replication.forwarding import outbound_request, sweeping, wakeups
from eventing.replication.forwarding.fork_detection import proof_found
from eventing.replication.forwarding.outbound import forward
from eventing.replication.services.replica_statements import statements_pending
from eventing.replication.services.sealing import seal_own
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.planes import principal
from tests.replication.answering import FakePeer, forward_woken, own, publish, shared
from tests.replication.shared_rp import (
    Origin,
    head,
    held,
    peer_made,
)

pytestmark = pytest.mark.usefixtures("shared_stores")


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
