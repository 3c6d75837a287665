"""Durable subscriptions on the hot path: pull and acknowledge over HTTP, attach and acknowledge over WebSocket."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from eventing.store import keys
from tests.gateway.client import Client
from tests.gateway.server import LiveGateway, ids_of
from tests.gateway.test_websocket import ids


def subscribe(live_gateway: LiveGateway, rp: str, subject: str = "tester", **asked: Any) -> dict[str, Any]:
    """A new durable subscription of `subject`."""
    with live_gateway.http(subject) as http:
        answer = http.post(f"/api/v1/rps/{rp}/subscriptions", json=asked)
    assert answer.status_code == 201, answer.text
    document: dict[str, Any] = answer.json()
    return document


def pull(
    live_gateway: LiveGateway, subscription: dict[str, Any], subject: str = "tester", **members: Any
) -> dict[str, Any]:
    with live_gateway.http(subject) as http:
        answer = http.get(subscription["links"]["events"], params=members)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def acknowledge(
    live_gateway: LiveGateway, subscription: dict[str, Any], cursor: str, subject: str = "tester"
) -> httpx.Response:
    with live_gateway.http(subject) as http:
        return http.post(subscription["links"]["ack"], json={"cursor": cursor})


def code(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    return str(answer.json()["type"]).removeprefix("urn:herald:problem:")


def test_what_was_not_acknowledged_is_given_again(live_gateway: LiveGateway, rp: str) -> None:
    live_gateway.publish(rp, 2, prefix="before")
    subscription = subscribe(live_gateway, rp)
    live_gateway.publish(rp, 5)
    for _ in range(2):
        page = pull(live_gateway, subscription)
        assert ids_of(page["events"]) == ["e-1", "e-2", "e-3", "e-4", "e-5"]
        assert page["recovered"] is True
    third = f"{page['epoch']}:5"
    assert acknowledge(live_gateway, subscription, third).json() == {"cursor": third}
    assert ids_of(pull(live_gateway, subscription)["events"]) == ["e-4", "e-5"]


def test_acknowledging_never_goes_back_and_is_harmless_when_repeated(live_gateway: LiveGateway, rp: str) -> None:
    subscription = subscribe(live_gateway, rp)
    live_gateway.publish(rp, 5)
    epoch = pull(live_gateway, subscription)["epoch"]
    for offset, held in ((3, 3), (3, 3), (1, 3), (0, 3), (5, 5), (4, 5)):
        assert acknowledge(live_gateway, subscription, f"{epoch}:{offset}").json() == {"cursor": f"{epoch}:{held}"}
    with live_gateway.http() as http:
        assert http.get(f"/api/v1/subscriptions/{subscription['id']}").json()["cursor"] == f"{epoch}:5"


def test_only_what_was_published_in_this_epoch_can_be_acknowledged(live_gateway: LiveGateway, rp: str) -> None:
    subscription = subscribe(live_gateway, rp)
    live_gateway.publish(rp, 2)
    epoch = pull(live_gateway, subscription)["epoch"]
    for cursor in (f"{epoch}:3", "zzzzzzzz:1", "nonsense"):
        answer = acknowledge(live_gateway, subscription, cursor)
        assert (answer.status_code, code(answer)) == (400, "invalid-cursor")
    assert acknowledge(live_gateway, subscription, "zzzzzzzz:1").json()["epoch"] == epoch
    assert len(pull(live_gateway, subscription)["events"]) == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'{"cursor":7}',
        b'{"cursor":"a:1","more":1}',
        b"{}",
        b"[" * 5000,
        b"\xff",
        b'{"cursor":"\xff"}',
        b'{"\xff":1}',
        b'{"cursor":"a:\xed\xa0\x80"}',
        rb'{"cursor":"\ud800"}',
        b'{"cursor":NaN}',
        b'{"cursor":' + b"9" * 4000 + b"}",
        b'{"cursor":' + b"[" * 4000,
        b'{"cursor":1e999}',
        b'{"cursor":"\x00"}',
    ],
    ids=lambda content: repr(content[:24]),
)
def test_an_acknowledgement_of_another_form_is_refused(live_gateway: LiveGateway, rp: str, content: bytes) -> None:
    subscription = subscribe(live_gateway, rp)
    with live_gateway.http() as http:
        answer = http.post(subscription["links"]["ack"], content=content)
    assert (answer.status_code, code(answer)) in ((400, "invalid-request"), (413, "too-large"))


@pytest.mark.parametrize(("begin", "expected"), [("earliest", 3), ("last", 1), ("now", 0)])
def test_from_says_where_it_begins(live_gateway: LiveGateway, rp: str, begin: str, expected: int) -> None:
    live_gateway.publish(rp, 3)
    subscription = subscribe(live_gateway, rp, **{"from": begin})
    assert len(pull(live_gateway, subscription)["events"]) == expected


def test_after_reads_without_moving_what_was_acknowledged(live_gateway: LiveGateway, rp: str) -> None:
    subscription = subscribe(live_gateway, rp)
    live_gateway.publish(rp, 3)
    epoch = pull(live_gateway, subscription)["epoch"]
    assert ids_of(pull(live_gateway, subscription, after=f"{epoch}:2")["events"]) == ["e-3"]
    assert len(pull(live_gateway, subscription)["events"]) == 3


def test_pages_and_limit(live_gateway: LiveGateway, rp: str) -> None:
    subscription = subscribe(live_gateway, rp)
    live_gateway.publish(rp, 25)
    found: list[str] = []
    while page := pull(live_gateway, subscription, limit=10):
        if not page["events"]:
            break
        found += ids_of(page["events"])
        acknowledge(live_gateway, subscription, page["cursor"]).raise_for_status()
    assert found == [f"e-{number}" for number in range(1, 26)]


async def test_a_long_poll_of_a_subscription_answers_when_an_event_comes(live_gateway: LiveGateway, rp: str) -> None:
    subscription = subscribe(live_gateway, rp)
    polling = asyncio.create_task(asyncio.to_thread(pull, live_gateway, subscription, wait_s=15))
    await live_gateway.followed(rp)
    live_gateway.publish(rp, 1)
    assert ids_of((await asyncio.wait_for(polling, 30))["events"]) == ["e-1"]


# Bounds


def test_the_last_event_only_is_a_gap_and_the_last(live_gateway: LiveGateway, rp: str) -> None:
    subscription = subscribe(live_gateway, rp, history={"max_events": 1})
    live_gateway.publish(rp, 5)
    page = pull(live_gateway, subscription)
    assert page["recovered"] is False
    assert page["gap"] == {"epoch": page["epoch"], "from": 1, "to": 4}
    assert ids_of(page["events"]) == ["e-5"]
    acknowledge(live_gateway, subscription, page["cursor"]).raise_for_status()
    live_gateway.publish(rp, 1, begin=6)
    page = pull(live_gateway, subscription)
    assert (page["recovered"], ids_of(page["events"])) == (True, ["e-6"])


def test_a_bound_by_bytes_is_a_gap_too(live_gateway: LiveGateway, rp: str) -> None:
    subscription = subscribe(live_gateway, rp, history={"max_bytes": 2500})
    live_gateway.publish(rp, 10, data="x" * 1000)
    page = pull(live_gateway, subscription)
    assert (page["gap"]["from"], page["gap"]["to"]) == (1, 8)
    assert ids_of(page["events"]) == ["e-9", "e-10"]


def test_the_bounds_of_one_subscription_leave_others_alone(live_gateway: LiveGateway, rp: str) -> None:
    narrow, wide = subscribe(live_gateway, rp, history={"max_events": 1}), subscribe(live_gateway, rp)
    live_gateway.publish(rp, 5)
    assert len(pull(live_gateway, narrow)["events"]) == 1
    assert len(pull(live_gateway, wide)["events"]) == 5


def test_history_that_its_rp_has_trimmed_is_a_gap(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(history={"max_events": 3})
    subscription = subscribe(live_gateway, rp)
    live_gateway.publish(rp, 10)
    page = pull(live_gateway, subscription)
    assert page["gap"] == {"epoch": page["epoch"], "from": 1, "to": 7}
    assert len(page["events"]) == 3


def test_a_log_lost_with_its_cursors_is_told_as_a_gap(live_gateway: LiveGateway, rp: str) -> None:
    subscription = subscribe(live_gateway, rp)
    live_gateway.publish(rp, 5)
    page = pull(live_gateway, subscription)
    acknowledge(live_gateway, subscription, page["cursor"]).raise_for_status()
    with live_gateway.redis as client:
        client.delete(*keys.log_keys(rp), keys.cursors_key(rp))
    live_gateway.publish(rp, 2, prefix="new")
    after = pull(live_gateway, subscription)
    assert (after["recovered"], ids_of(after["events"])) == (False, ["new-1", "new-2"])
    assert after["gap"] == {"epoch": after["epoch"], "from": 1, "to": 0}
    assert after["epoch"] != page["epoch"]
    acknowledge(live_gateway, subscription, after["cursor"]).raise_for_status()
    assert pull(live_gateway, subscription)["recovered"] is True


# Who may


def test_a_subscription_is_its_owners(live_gateway: LiveGateway, rp: str) -> None:
    subscription = subscribe(live_gateway, rp, "ann")
    live_gateway.publish(rp, 1)
    with live_gateway.http("ben") as ben, live_gateway.http("root", admin=True) as root:
        answer = ben.get(subscription["links"]["events"])
        assert (answer.status_code, code(answer)) == (404, "not-found")
        answer = ben.post(subscription["links"]["ack"], json={"cursor": subscription["cursor"]})
        assert (answer.status_code, code(answer)) == (404, "not-found")
        assert len(root.get(subscription["links"]["events"]).json()["events"]) == 1


@pytest.mark.parametrize("subscription_id", ["sub_" + "a" * 26, "x", "sub_%00", "a" * 3000])
def test_an_unknown_subscription_is_not_found(live_gateway: LiveGateway, subscription_id: str) -> None:
    with live_gateway.http() as http:
        answer = http.get(f"/api/v1/subscriptions/{subscription_id}/events")
        assert (answer.status_code, code(answer)) == (404, "not-found")


def test_a_subscription_does_not_reach_past_a_narrowed_policy(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    subscription = subscribe(live_gateway, rp)
    live_gateway.admin.patch(f"/api/v1/rps/{rp}", json={"policy": []}).raise_for_status()
    with live_gateway.http() as http:
        answer = http.get(subscription["links"]["events"])
    assert (answer.status_code, code(answer)) == (403, "forbidden")


async def test_a_lease_that_has_ended_is_gone(live_gateway: LiveGateway, rp: str) -> None:
    subscription = subscribe(live_gateway, rp, lease_s=1)
    async with live_gateway.ahttp() as http:
        async with asyncio.timeout(30):
            while (answer := await http.get(subscription["links"]["events"])).status_code == 200:
                pass
        assert (answer.status_code, code(answer)) == (410, "gone")
        answer = await http.post(subscription["links"]["ack"], json={"cursor": subscription["cursor"]})
        assert (answer.status_code, code(answer)) == (410, "gone")
    async with Client(live_gateway) as client:
        assert await client.refused("subscribe", subscription=subscription["id"]) == "gone"


# Attached over WebSocket


async def test_an_attached_connection_continues_after_what_was_acknowledged(live_gateway: LiveGateway, rp: str) -> None:
    subscription = subscribe(live_gateway, rp)["id"]
    live_gateway.publish(rp, 5)
    async with Client(live_gateway) as client:
        answer = await client.ok("subscribe", subscription=subscription)
        assert (answer["rp"], answer["subscription"], answer["offset"]) == (rp, subscription, 0)
        assert answer["recovered"] is True
        frames = await client.events(5)
        third = frames[2]["cursor"]
        acked = await client.ok("ack", subscription=subscription, cursor=third)
        assert (acked["subscription"], acked["cursor"]) == (subscription, third)
        live_gateway.publish(rp, 1, prefix="live")
        assert ids(await client.events(1)) == ["live-1"]
    live_gateway.publish(rp, 1, prefix="away")
    async with Client(live_gateway) as client:
        assert (await client.ok("subscribe", subscription=subscription))["cursor"] == third
        assert ids(await client.events(4)) == ["e-4", "e-5", "live-1", "away-1"]


async def test_an_attached_connection_is_told_what_its_bounds_have_cost(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    subscription = subscribe(live_gateway, rp, history={"max_events": 1})["id"]
    live_gateway.publish(rp, 5)
    answer = await client.ok("subscribe", subscription=subscription)
    assert (answer["recovered"], answer["offset"]) == (False, 4)
    gap = await client.frame()
    assert (gap["op"], gap["from"], gap["to"]) == ("gap", 1, 4)
    assert ids(await client.events(1)) == ["e-5"]


async def test_attaching_with_a_place_of_ones_own(live_gateway: LiveGateway, rp: str, client: Client) -> None:
    subscription = subscribe(live_gateway, rp)["id"]
    live_gateway.publish(rp, 5)
    await client.ok("subscribe", subscription=subscription, begin="last")
    assert ids(await client.events(1)) == ["e-5"]
    await client.ok("unsubscribe", subscription=subscription)
    assert await client.refused("unsubscribe", subscription=subscription) == "not-found"
    await client.ok("subscribe", subscription=subscription)
    assert len(await client.events(5)) == 5


async def test_attaching_twice_or_beside_a_plain_reading_is_a_conflict(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    subscription = subscribe(live_gateway, rp)["id"]
    await client.ok("subscribe", subscription=subscription)
    assert await client.refused("subscribe", subscription=subscription) == "conflict"
    assert await client.refused("subscribe", rp=rp) == "conflict"


async def test_a_strangers_subscription_cannot_be_attached_acknowledged_or_renewed(
    live_gateway: LiveGateway, rp: str
) -> None:
    subscription = subscribe(live_gateway, rp, "ann")
    async with Client(live_gateway, subject="ben") as ben:
        assert await ben.refused("subscribe", subscription=subscription["id"]) == "not-found"
        cursor = subscription["cursor"]
        assert await ben.refused("ack", subscription=subscription["id"], cursor=cursor) == "not-found"
        assert await ben.refused("renew", subscription=subscription["id"], lease_s=60) in ("not-found", "forbidden")


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, "invalid-request"),
        ({"subscription": "sub_" + "a" * 26, "cursor": "abc:1"}, "not-found"),
        ({"subscription": "x"}, "invalid-cursor"),
        ({"subscription": "x", "cursor": "nonsense"}, "invalid-cursor"),
        ({"subscription": 7, "cursor": "abc:1"}, None),
    ],
)
async def test_an_ack_that_is_none_is_refused(client: Client, members: dict[str, Any], expected: str | None) -> None:
    if expected is None:
        await client.send("ack", **members)
        assert (await client.frame())["type"] == "urn:herald:problem:invalid-request"
    else:
        assert await client.refused("ack", **members) == expected


async def test_renewing_over_the_connection(live_gateway: LiveGateway, rp: str, client: Client) -> None:
    subscription = subscribe(live_gateway, rp, lease_s=60)["id"]
    assert (await client.ok("renew", subscription=subscription, lease_s=120))["lease"]["granted_s"] == 120
    assert await client.refused("renew", subscription=subscription, lease_s=-1) == "invalid-request"
