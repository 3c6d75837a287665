"""What the timescale's script asks of the domain: stretches of the past, one event whole and where it is, and who may ask."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from eventing.access.services.keys import ensure_domain_key
from eventing.access.services.tokens import token_create
from eventing.core.events.cloudevents import Event
from eventing.core.ids import DOMAIN_ADMIN
from eventing.log import control, ranges
from eventing.log.control import offset_at
from eventing.log.ranges import range_after, range_before
from eventing.log.watermarks import links_change
from eventing.overlay.link_state import Link
from eventing.replication.services.sealing import seal_own
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.rendezvous_points import rendezvous_point_create
from eventing.store.client import client as redis_client
from tests.peering.other_domain import OtherDomain
from tests.planes import principal
from tests.replication.own_logs import own_key
from tests.replication.shared_rp import BOUNDS, Origin, link, new_rp, peer_made, send_runs


@pytest.fixture(autouse=True)
def _stores(transactional_db: None, redis_url: str) -> None:
    redis_client().flushdb()
    ensure_domain_key()


@pytest.fixture
def root() -> Client:
    return client_of("root", is_superuser=True)


def client_of(name: str, **rights: Any) -> Client:
    client = Client()
    client.force_login(User.objects.create_user(name, **rights))
    return client


def publish(rp: str, first: int, last: int, *, size: int = 0, **members: Any) -> None:
    """Events with the ids `first` to `last`."""
    for number in range(first, last + 1):
        about = {"specversion": "1.0", "id": str(number), "source": "/t", "type": "t", **members}
        body = json.dumps({**about, **({"data": "x" * size} if size else {})}).encode()
        control.append(rp, [Event("/t", str(number), "t", body)], BOUNDS)


def past(client: Client, rp: str, **query: Any) -> dict[str, Any]:
    answer = client.get("/console/timescale/past", {"rp": rp, **query})
    assert answer.status_code == 200, answer.content
    told: dict[str, Any] = answer.json()
    return told


def event(client: Client, rp: str, offset: int, **query: Any) -> dict[str, Any]:
    answer = client.get("/console/timescale/event", {"rp": rp, "offset": offset, **query})
    assert answer.status_code == 200, answer.content
    told: dict[str, Any] = answer.json()
    return told


def offsets(told: dict[str, Any]) -> list[int]:
    return [one["offset"] for one in told["events"]]


# -- stretches of the past ----------------------------------------------------------------------------------------------


def test_the_past_is_read_backwards_forwards_and_around_a_moment(root: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "_ENTRIES_AT_ONCE", 3)  # several round trips for each page
    rp = new_rp()
    publish(rp, 1, 12)
    newest = past(root, rp, limit=5)
    assert (newest["first"], newest["next"], offsets(newest)) == (1, 13, [8, 9, 10, 11, 12])
    assert offsets(past(root, rp, limit=5, before=8)) == [3, 4, 5, 6, 7]
    assert offsets(past(root, rp, limit=5, before=3)) == [1, 2]
    assert offsets(past(root, rp, limit=5, before=1)) == []
    assert offsets(past(root, rp, limit=5, after=10)) == [11, 12]
    assert offsets(past(root, rp, after=12)) == []
    stored = [one["at"] for one in past(root, rp)["events"]]
    assert stored == sorted(stored)
    assert newest["now"] >= stored[-1]
    assert offset_at(rp, stored[0]).offset == 1
    assert offset_at(rp, stored[-1] + 1).offset == 13
    assert offset_at(rp, 0).offset == 1
    middle = stored[5]
    assert 1 <= offset_at(rp, middle).offset <= 6
    assert stored[offset_at(rp, middle).offset - 1] >= middle
    assert offset_at(rp, middle).offset in offsets(past(root, rp, at=middle, limit=4))
    assert offsets(past(root, rp, at=stored[-1] + 1000, limit=6))[-1] == 12


def test_what_left_the_history_is_not_given_and_the_extent_says_so(root: Client) -> None:
    rp = new_rp(max_events=4)
    row = RendezvousPoint.objects.get(id=rp)
    for number in range(1, 10):
        body = json.dumps({"specversion": "1.0", "id": str(number), "source": "/t", "type": "t"}).encode()
        control.append(rp, [Event("/t", str(number), "t", body)], row.bounds)
    told = past(root, rp)
    assert (told["first"], told["next"], offsets(told)) == (6, 10, [6, 7, 8, 9])
    assert offsets(past(root, rp, after=0, limit=2)) == [6, 7]
    refused = root.get("/console/timescale/event", {"rp": rp, "offset": "2"})
    assert (refused.status_code, refused.json()["detail"]) == (
        404,
        "Event #2 is not in the history, which holds #6 to #9.",
    )


def test_a_page_is_bounded_by_events_and_bytes_and_has_one_event_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    rp = new_rp()
    publish(rp, 1, 9, size=1000)
    monkeypatch.setattr(ranges, "BYTES_MAX", 3500)
    assert [one.offset for one in range_after(rp, 0, 99).entries] == [1, 2, 3]
    assert [one.offset for one in range_before(rp, None, 99).entries] == [7, 8, 9]
    monkeypatch.setattr(ranges, "BYTES_MAX", 10)
    assert [one.offset for one in range_after(rp, 4, 99).entries] == [5]
    monkeypatch.setattr(ranges, "ENTRIES_MAX", 2)
    monkeypatch.setattr(ranges, "BYTES_MAX", 1 << 20)
    assert len(range_after(rp, 0, 99).entries) == 2


def test_lists_show_the_beginning_of_what_is_long(root: Client) -> None:
    rp = new_rp()
    publish(rp, 1, 1, data={"text": "ü" * 1000}, subject="s" * 1000, time="2026-11-21T12:00:00Z")
    publish(rp, 2, 2, data_base64=base64.b64encode(bytes(5)).decode(), datacontenttype="image/png")
    publish(rp, 3, 3)
    long, binary, bare = past(root, rp)["events"]
    assert (len(long["preview"]), len(long["subject"]), long["time"]) == (160, 256, "2026-11-21T12:00:00Z")
    assert long["preview"].startswith('{"text": "')
    assert (binary["preview"], bare["preview"], bare["time"]) == ("5 B of image/png", "", None)
    assert long["size"] == len(base64.b64decode(event(root, rp, 1)["bytes"]))


def test_an_rp_without_events_and_an_administrative_one_are_shown_too(root: Client) -> None:
    rp = new_rp()
    control.delete_log(rp)
    assert past(root, rp)["events"] == []
    assert past(root, rp, at=5)["epoch"] == ""
    assert root.get("/console/timescale/event", {"rp": rp, "offset": "1"}).status_code == 404
    told = past(root, DOMAIN_ADMIN)
    assert (told["label"], told["may_publish"], told["events"][0]["type"]) == (
        DOMAIN_ADMIN,
        False,
        "io.herald.rp.created",
    )
    shown = event(root, DOMAIN_ADMIN, told["events"][0]["offset"])
    assert (shown["feed"], shown["sealed"], shown["domains"]) == (None, False, [])


# -- one event, and where it is -----------------------------------------------------------------------------------------


def test_an_event_is_given_whole_with_when_it_was_stored_and_what_vouches_for_it(root: Client) -> None:
    rp = new_rp()
    publish(rp, 1, 3, data={"a": [1]})
    told = event(root, rp, 2)
    assert base64.b64decode(told["bytes"]) == control.read(rp, 2, 1, 1 << 20).events[0]
    assert told["cursor"] == f"{told['epoch']}:2"
    assert told["stored_at"].startswith("20")
    assert (told["feed"], told["sequence"], told["origin"], told["sealed"]) == (own_key(rp), 2, "localhost", False)
    assert (told["carriers"], [one["held"] for one in told["domains"]]) == ([], [True])
    seal_own(rp)
    assert event(root, rp, 2)["sealed"] is True
    other = root.get("/console/timescale/event", {"rp": rp, "offset": "2", "epoch": "zzzzzzzz"})
    assert (other.status_code, told["epoch"] in other.json()["detail"]) == (400, True)


def test_an_event_of_another_domain_tells_the_domains_it_came_through_and_who_holds_it(root: Client) -> None:
    a, b = OtherDomain("a.test"), OtherDomain("b.test")
    by_b = peer_made(b)
    peer_made(a)
    rp = new_rp()
    link(rp, a, b)
    publish(rp, 1, 1)
    origin = Origin(a, rp)
    send_runs(by_b, rp, origin.run(3, "c.test", "b.test"), have={origin.feed.key: 3})
    told = event(root, rp, 3)
    assert (told["origin"], told["feed"], told["sequence"], told["sealed"]) == ("a.test", origin.feed.key, 2, True)
    assert told["carriers"] == ["a.test", "c.test", "b.test"]
    assert past(root, rp)["events"][2]["feed"] == origin.feed.key
    holds = {one["domain"]: one["held"] for one in told["domains"]}
    assert (holds["localhost"], holds["b.test"]) == (True, True)
    own = {one["domain"]: one["held"] for one in event(root, rp, 1)["domains"]}
    assert own == {"localhost": True, "a.test": False, "b.test": False}
    links_change("b.test", [rp], lambda _rp, one: _holding(one, {own_key(rp): 1}))
    assert {one["domain"]: one["held"] for one in event(root, rp, 1)["domains"]}["b.test"] is True


def test_a_proof_names_the_carriers_which_it_does_not_prove() -> None:
    a, b = OtherDomain("a.test"), OtherDomain("b.test")
    by_b = peer_made(b)
    peer_made(a)
    rp = new_rp()
    link(rp, a, b)
    publish(rp, 1, 1)
    send_runs(by_b, rp, Origin(a, rp).run(1, "b.test"))
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_create(subject='root', admin=True).token}")
    assert client.get(f"/api/v1/rps/{rp}/proof?offset=2").json()["carriers"] == ["a.test", "b.test"]
    assert client.get(f"/api/v1/rps/{rp}/proof?offset=1").json()["carriers"] == []


def _holding(one: Link, vector: dict[str, int]) -> Link:
    return msgspec.structs.replace(one, peer=msgspec.structs.replace(one.peer, theirs=vector))


# -- who may ask, and what is refused -----------------------------------------------------------------------------------


def test_only_who_may_read_the_history_is_told_of_it(root: Client) -> None:
    rp = rendezvous_point_create(principal=principal("ann"), policy=[]).id
    publish(rp, 1, 1)
    stranger = client_of("stranger")
    for path in (f"/console/timescale/past?rp={rp}", f"/console/timescale/event?rp={rp}&offset=1"):
        assert Client().get(path).status_code == 401
        refused = stranger.get(path)
        assert (refused.status_code, refused["Content-Type"]) == (403, "application/problem+json")
        assert root.get(path).status_code == 200
    assert Client().get("/timescale")["Location"] == "/login?next=/timescale"
    assert stranger.get(f"/timescale?rp={rp}").status_code == 200  # the page says nothing; its script asks


@pytest.mark.parametrize(
    "query",
    [
        "after=-1",
        "after=x",
        "before=99999999999999999",
        "limit=1e3",
        "at=253402300800000",
        "after=1&before=2",
        "at=1&after=1",
    ],
)
def test_nonsense_is_refused_with_a_sentence(root: Client, query: str) -> None:
    refused = root.get(f"/console/timescale/past?rp={new_rp()}&{query}")
    assert (refused.status_code, refused.json()["type"]) == (400, "urn:herald:problem:invalid-request")
    assert len(refused.json()["detail"]) > 20


def test_what_no_rp_is_called_is_said(root: Client) -> None:
    for reference, status in (("", 400), ("a" * 26, 404), ("\0", 400), ("x" * 9999, 400)):
        answer = root.get("/console/timescale/past", {"rp": reference})
        assert answer.status_code in {status, 404}, (reference[:9], answer.content)
        assert answer.json()["detail"]


def test_the_page_takes_a_bounded_number_of_names_and_writes_them_safely(root: Client) -> None:
    names = ["</script><script>alert(1)</script>", *(f"rp{number}" for number in range(20))]
    text = root.get("/timescale", {"rp": names}).content.decode()
    assert "<script>alert(1)" not in text
    assert "rp4" in text
    assert "rp5" not in text
