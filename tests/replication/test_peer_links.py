"""What an operator sees of the links with a peer, and of where the newest events of a rendezvous point are."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from eventing.access.services.tokens import token_create
from eventing.replication.forwarding import wakeups
from eventing.replication.forwarding.outbound import forward
from eventing.replication.models import ReplicaLink
from eventing.replication.services.replica_links import link_stopped
from eventing.store import peer_state
from tests.peering.other_domain import OtherDomain
from tests.replication.answering import FakePeer, own, publish, shared
from tests.replication.shared_rp import Origin, peer_made, send_runs

pytestmark = pytest.mark.usefixtures("transactional_db", "shared_stores")


@pytest.fixture
def root() -> APIClient:
    made = APIClient()
    made.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(subject='root', admin=True).token}")
    return made


def sent(rp: str) -> None:
    wakeups.wake("b.test", [rp])
    forward("b.test")


def links(root: APIClient, **query: Any) -> dict[str, Any]:
    answer = root.get("/api/v1/peers/b.test/links", query)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_a_link_says_what_each_side_holds_and_what_waits(peer: FakePeer, b: OtherDomain, root: APIClient) -> None:
    rp = shared(b, 3)
    sent(rp)
    publish(rp, 4)
    (one,) = links(root)["items"]
    assert (one["rp"], one["home"], one["link"], one["backlog"], one["ahead"]) == (rp, "localhost", "eager", 4, 0)
    assert (one["vector"], one["own"]) == ({own(rp): 3}, {own(rp): 7})
    assert one["heard_at"] is not None
    assert peer_state.traffic_taken("b.test")["sent"] == 3
    link_stopped(rp=rp, peer="b.test", detail="It has no replica.")
    (one,) = links(root)["items"]
    assert (one["link"], one["detail"]) == ("stopped", "It has no replica.")


def test_links_come_in_pages(peer: FakePeer, b: OtherDomain, root: APIClient) -> None:
    rps = sorted(shared(b, 1) for _ in range(3))
    assert ReplicaLink.objects.count() == 3
    first = links(root, limit=2)
    second = links(root, limit=2, cursor=first["next"])
    assert [one["rp"] for one in first["items"] + second["items"]] == rps
    assert second["next"] is None
    assert root.get("/api/v1/peers/b.test/links", {"cursor": "x"}).status_code == 400
    assert root.get("/api/v1/peers/c.test/links").status_code == 404


def test_the_newest_events_say_who_holds_them(peer: FakePeer, b: OtherDomain, root: APIClient) -> None:
    rp = shared(b, 2)
    sent(rp)
    publish(rp, 2)
    answer = root.get(f"/api/v1/rps/{rp}/spread", {"limit": 3})
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert [(one["domain"], one["known"]) for one in found["domains"]] == [("localhost", True), ("b.test", True)]
    held = [(one["offset"], one["sequence"], one["origin"], one["held"]) for one in found["events"]]
    assert held == [
        (4, 4, "localhost", ["localhost"]),
        (3, 3, "localhost", ["localhost"]),
        (2, 2, "localhost", ["localhost", "b.test"]),
    ]


def test_an_event_of_another_origin_names_it(root: APIClient) -> None:
    b = OtherDomain("b.test")
    row = peer_made(b)
    rp = shared(b, 0)
    send_runs(row, rp, Origin(b, rp).run(2))
    found = root.get(f"/api/v1/rps/{rp}/spread").json()
    assert [(one["origin"], one["sequence"]) for one in found["events"]] == [("b.test", 2), ("b.test", 1)]
