"""Claims of peers about the own feed: a domain restored from a copy uses no number twice, and liars stop nothing."""

from __future__ import annotations

import time

import pytest

from eventing.conf import config
from eventing.core.events.feeds import Feed
from eventing.core.signing import Signed
from eventing.log import watermarks
from eventing.log.federated import seal_of
from eventing.peering.models import Peer
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import holding, sweeping, wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.models import SealHead
from eventing.replication.services.sealing import seal_own
from eventing.store.sealing_holds import held_since
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer, forward_woken, own, publish, shared
from tests.replication.own_logs import backup, decode, put_back
from tests.replication.shared_rp import (
    counted,
    head,
    link,
    peer_made,
    send,
)

pytestmark = pytest.mark.usefixtures("shared_stores")


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
