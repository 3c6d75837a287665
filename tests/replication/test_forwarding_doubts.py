"""Peers that refuse, accept nothing, claim what they do not hold or invent paths: each costs a bounded number of requests."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace

from eventing.log import watermarks
from eventing.overlay import graft_timer, link_refusals, presumed_vector
from eventing.overlay.link_state import Link
from eventing.peering.models import Peer
from eventing.peering.selectors.deliveries import delivery_get
from eventing.peering.wire import messages as wire
from eventing.replication.forwarding import outbound_answer, outbound_request, wakeups
from eventing.replication.forwarding.asked_feeds import asked_feeds
from eventing.replication.forwarding.outbound import forward
from eventing.replication.joining.presenters import replicas_shown
from eventing.replication.models import ReplicaLink
from eventing.replication.selectors.forwarding import participations_forget
from eventing.rps.models import RendezvousPoint
from eventing.store import peer_state
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer, forward_woken, own, shared
from tests.replication.shared_rp import (
    Origin,
    admit,
    counted,
    link,
    peer_made,
    send,
    send_runs,
)

pytestmark = pytest.mark.usefixtures("shared_stores")


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
    assert peer.events() in (3, 6), "once more if this machine is so slow that the next attempt is due"
    assert len(peer.requests) <= 4


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


def test_what_a_peer_sends_of_other_rps_excuses_it_for_a_while_only(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    rp, now = shared(b, 1), time.time()
    peer.claims = {"z" * 16: 99}
    forward_woken(rp)
    counts = []
    for _ in range(outbound_request.GRAFTS_EXCUSED + 1):
        now += 40
        monkeypatch.setattr(time, "time", lambda at=now: at)
        peer_state.request_noted("b.test", {}, supplied=True)
        forward("b.test")
        counts.append(counted().get(("false-vector", "b.test", ""), 0))
    assert counts[graft_timer.GRAFTS_FUTILE] == 0, "it may be slow"
    assert counts[-1] >= 1


def test_a_peer_is_asked_for_a_feed_only_after_another_that_was_asked_had_time_to_send_it(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked_after(seconds: float) -> list[str]:
        peer.requests.clear()
        monkeypatch.setattr(time, "time", lambda: began + seconds)
        forward("b.test")
        return [feed for request in peer.requests for part in request.parts for feed in part.graft]

    rp, feed, began = shared(b, 1), "z" * 16, time.time()
    peer.claims = {feed: 99}
    forward_woken(rp)
    asked_feeds().note(rp, "c.test", [feed], began + 30)
    assert asked_after(20) == [], "c may still send it"
    assert asked_after(40) == [feed]
    asked_feeds().note(rp, "c.test", [feed], began + 200)
    asked_feeds().forget("c.test")
    assert asked_after(120) == [feed], "c does not answer"


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
