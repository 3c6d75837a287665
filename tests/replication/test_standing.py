"""What is shown of a peer that fails no request and yet gets nothing, and of the last contacts with each: standing.py."""

from __future__ import annotations

import time
from datetime import datetime

import pytest
from rest_framework.test import APIClient

from demo.harness.servers import wait_for
from eventing.access.services.tokens import token_create
from eventing.peering.models import Peer
from eventing.peering.rules.deliveries import UNTAKEN_SHOWN_S, PeerStanding, Standstill
from eventing.peering.selectors.standing import standings
from eventing.peering.services.deliveries import deliveries_shown
from eventing.peering.services.peers import CONTACT_S
from eventing.replication.forwarding import comparing, wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.forwarding.sweeping import peers_sweep
from eventing.store import peer_state
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer, own, publish, shared

pytestmark = pytest.mark.usefixtures("transactional_db", "shared_stores")


def asked() -> dict[str, object]:
    """The peer b as REST shows it to an administrator."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(subject='root', admin=True).token}")
    answer = client.get("/api/v1/peers/b.test")
    assert answer.status_code == 200, answer.content
    found: dict[str, object] = answer.json()
    return found


def seconds(moment: object) -> float:
    return datetime.fromisoformat(str(moment)).timestamp()


def test_a_peer_that_asks_for_a_long_pause_is_named_until_it_is_over(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 1)
    peer.pause_s = 3600.0
    wakeups.wake("b.test", [rp])
    forward("b.test")
    problem = asked()["problem"]
    assert isinstance(problem, dict)
    assert problem["kind"] == "paused"
    assert abs(seconds(problem["since"]) - time.time()) < 60
    assert 3599 < seconds(problem["until"]) - seconds(problem["since"]) < 3601
    assert "3600 s" in problem["detail"]
    assert "herald peer retry NAME" in problem["advice"]
    shown = deliveries_shown()["b.test"]
    assert (shown["class"], shown["failures"]) == ("paused", 0)
    peer_state.pause_end("b.test")
    assert asked()["problem"] is None
    assert deliveries_shown().get("b.test", {"class": None})["class"] is None


def test_a_peer_that_answers_and_takes_nothing_is_named_until_it_takes_something(
    peer: FakePeer, b: OtherDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "UNDER_WAY_S", 0.0)
    rp = shared(b, 1)
    wakeups.wake("b.test", [rp])
    forward("b.test")
    peer.deaf = True
    publish(rp, 3)
    wakeups.wake("b.test", [rp])
    forward("b.test")
    redis_client().delete("herald:peer:{b.test}:compared")
    peers_sweep()
    since = standings(["b.test"])["b.test"].untaken_since
    assert since is not None
    assert asked()["problem"] is None, "a moment is no standstill"
    redis_client().set("herald:peer:{b.test}:untaken", repr(since - UNTAKEN_SHOWN_S))
    problem = asked()["problem"]
    assert isinstance(problem, dict)
    assert (problem["kind"], problem["until"]) == ("not-taking", None)
    assert abs(seconds(problem["since"]) - (since - UNTAKEN_SHOWN_S)) < 1
    assert deliveries_shown()["b.test"]["class"] == "not-taking"
    peer.deaf = False
    publish(rp, 1)
    peer.vectors[rp][own(rp)] = 4  # it came there by others
    publish(rp, 1)

    def all_is_well() -> bool:
        wakeups.wake("b.test", [rp])
        forward("b.test")  # sends nothing while the pause lasts that a feed gets which the peer does not take
        return asked()["problem"] is None

    wait_for(all_is_well, about="it took something")
    redis_client().delete("herald:peer:{b.test}:compared")
    peers_sweep()
    assert asked()["problem"] is None
    assert deliveries_shown()["b.test"]["class"] is None


def test_the_last_contact_is_that_of_either_direction(b: OtherDomain) -> None:
    peer_state._contacts().clear()
    before = seconds(asked()["heard_at"])
    Peer.objects.update(heard_at=datetime.fromisoformat("2026-01-01T00:00:00+00:00"))
    peer_state.contact_note("b.test", "answer")
    shown = asked()
    assert seconds(shown["heard_at"]) >= before
    assert shown["contact"] == {"request_at": None, "answer_at": shown["heard_at"]}
    peer_state.contact_note("b.test", "request")
    shown = asked()
    assert isinstance(shown["contact"], dict)
    assert shown["contact"]["request_at"] == shown["heard_at"]


def test_answers_renew_the_lease_of_a_peer_that_never_asks(peer: FakePeer, b: OtherDomain) -> None:
    rp = shared(b, 1)
    long_ago = datetime.fromtimestamp(time.time() - CONTACT_S - 10).astimezone()
    Peer.objects.update(heard_at=long_ago)
    wakeups.wake("b.test", [rp])
    forward("b.test")
    heard_at = Peer.objects.get().heard_at
    assert heard_at is not None
    assert heard_at > long_ago


def test_what_is_named_and_when() -> None:
    assert PeerStanding().standstill(5, 100.0) is None
    assert PeerStanding(paused_since=0.0, paused_until=99.0).standstill(5, 100.0) is None
    assert PeerStanding(paused_since=0.0, paused_until=101.0).standstill(0, 100.0) is Standstill.PAUSED
    assert PeerStanding(untaken_since=90.0).standstill(5, 100.0) is Standstill.NOT_TAKING
    assert PeerStanding(untaken_since=90.0).standstill(0, 100.0) is None, "it lacks nothing"
    assert PeerStanding(untaken_since=95.0).standstill(5, 100.0) is None
