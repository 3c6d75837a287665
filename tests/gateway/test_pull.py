"""GET /api/v1/rps/{rp}/events: paging, long-poll, and what is recovered or told as a gap."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest

from demo.harness.servers import wait_for
from eventing.store import keys
from tests.gateway.server import PLAIN, LiveGateway, ids_of


def pull(live_gateway: LiveGateway, rp: str, **members: Any) -> dict[str, Any]:
    answer = live_gateway.admin.get(f"/api/v1/rps/{rp}/events", params=members)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def test_an_empty_rp_is_pulled_as_empty(live_gateway: LiveGateway, rp: str) -> None:
    for after in ("earliest", "last", "now"):
        document = pull(live_gateway, rp, after=after)
        epoch = document["epoch"]
        assert document == {"events": [], "cursor": f"{epoch}:0", "recovered": True, "epoch": epoch, "offset": 0}


def test_pages_join_without_loss_or_repetition(live_gateway: LiveGateway, rp: str) -> None:
    ids = live_gateway.publish(rp, 250)
    found: list[str] = []
    cursor = "earliest"
    for expected in (100, 100, 50, 0):
        page = pull(live_gateway, rp, after=cursor)
        assert len(page["events"]) == expected
        found += ids_of(page["events"])
        cursor = page["cursor"]
        assert (page["recovered"], page["offset"]) == (True, len(found))
    assert found == ids


@pytest.mark.parametrize(("limit", "given"), [(1, 1), (7, 7), (1000, 1000), (1001, 1000), ("1e9", 1000), (2.9, 2)])
def test_limit_bounds_a_page_and_is_itself_bounded(live_gateway: LiveGateway, limit: object, given: int) -> None:
    rp = live_gateway.create_rp(history={"max_events": 1200})
    live_gateway.publish(rp, 1100)
    assert len(pull(live_gateway, rp, limit=limit)["events"]) == given


def test_a_page_is_bounded_by_bytes_and_says_where_to_go_on(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(history={"max_bytes": 16 << 20})
    for begin in range(1, 41, 10):
        ids = live_gateway.publish(rp, 10, data="x" * 100_000, begin=begin)
    found: list[str] = []
    cursor = "earliest"
    while page := pull(live_gateway, rp, after=cursor, limit=1000)["events"]:
        assert 1 <= len(page) <= 6
        found += ids_of(page)
        cursor = pull(live_gateway, rp, after=cursor, limit=1000)["cursor"]
    assert found[-10:] == ids
    assert len(found) == 40


def test_earliest_is_the_default_and_last_gives_one_and_now_none(live_gateway: LiveGateway, rp: str) -> None:
    live_gateway.publish(rp, 5)
    assert len(pull(live_gateway, rp)["events"]) == 5
    assert ids_of(pull(live_gateway, rp, after="last")["events"]) == ["e-5"]
    now = pull(live_gateway, rp, after="now")
    assert (now["events"], now["offset"]) == ([], 5)
    live_gateway.publish(rp, 1, prefix="next")
    assert ids_of(pull(live_gateway, rp, after=now["cursor"])["events"]) == ["next-1"]


@pytest.mark.parametrize(
    "members",
    [
        {"limit": "0"},
        {"limit": "-1"},
        {"limit": "many"},
        {"limit": "nan"},
        {"wait_s": "-0.1"},
        {"wait_s": "soon"},
    ],
)
def test_numbers_without_meaning_are_refused(live_gateway: LiveGateway, rp: str, members: dict[str, str]) -> None:
    answer = live_gateway.admin.get(f"/api/v1/rps/{rp}/events", params=members)
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:herald:problem:invalid-request")


@pytest.mark.parametrize("after", ["", "x", "EPOCH:1", "abc:", "abc:-1", "abc:01", "abc:9" + "0" * 16, "a" * 5000])
def test_a_cursor_that_is_none_of_ours_is_refused(live_gateway: LiveGateway, rp: str, after: str) -> None:
    answer = live_gateway.admin.get(f"/api/v1/rps/{rp}/events", params={"after": after})
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:herald:problem:invalid-cursor")


@pytest.mark.parametrize("query", ["limit=1&limit=2", "after=%ff", "&".join(f"a{n}=1" for n in range(40)), "limit=%C3"])
def test_a_query_that_is_not_clear_is_refused(live_gateway: LiveGateway, rp: str, query: str) -> None:
    answer = live_gateway.admin.get(f"/api/v1/rps/{rp}/events?{query}")
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:herald:problem:invalid-request")


# Gaps


def test_history_that_was_trimmed_is_a_gap_with_both_ends(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(history={"max_events": 3})
    live_gateway.publish(rp, 2)
    cursor = pull(live_gateway, rp)["cursor"]
    live_gateway.publish(rp, 8, begin=3)
    document = pull(live_gateway, rp, after=cursor)
    assert document["recovered"] is False
    assert document["gap"] == {"epoch": document["epoch"], "from": 3, "to": 7}
    assert ids_of(document["events"]) == ["e-8", "e-9", "e-10"]
    after = pull(live_gateway, rp, after=document["cursor"])
    assert (after["recovered"], "gap" in after) == (True, False)


def test_a_cursor_at_the_edge_of_the_history_is_recovered(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(history={"max_events": 3})
    live_gateway.publish(rp, 10)
    epoch = pull(live_gateway, rp)["epoch"]
    document = pull(live_gateway, rp, after=f"{epoch}:7")
    assert (document["recovered"], ids_of(document["events"])) == (True, ["e-8", "e-9", "e-10"])
    assert pull(live_gateway, rp, after=f"{epoch}:6")["gap"] == {"epoch": epoch, "from": 7, "to": 7}


def test_an_unknown_epoch_is_never_recovered(live_gateway: LiveGateway, rp: str) -> None:
    live_gateway.publish(rp, 3)
    document = pull(live_gateway, rp, after="zzzzzzzz:2")
    assert document["recovered"] is False
    assert document["gap"] == {"epoch": document["epoch"], "from": 1, "to": 0}
    assert len(document["events"]) == 3


def test_a_cursor_beyond_the_end_is_never_recovered(live_gateway: LiveGateway, rp: str) -> None:
    live_gateway.publish(rp, 3)
    epoch = pull(live_gateway, rp)["epoch"]
    assert pull(live_gateway, rp, after=f"{epoch}:3")["recovered"] is True
    document = pull(live_gateway, rp, after=f"{epoch}:4")
    assert (document["recovered"], len(document["events"])) == (False, 3)


def test_a_log_lost_with_the_data_plane_goes_on_as_another_epoch(live_gateway: LiveGateway, rp: str) -> None:
    live_gateway.publish(rp, 3)
    before = pull(live_gateway, rp)
    with live_gateway.redis as client:
        client.delete(*keys.log_keys(rp))
    document = pull(live_gateway, rp, after=before["cursor"])
    assert (document["recovered"], document["events"]) == (False, [])
    assert document["epoch"] != before["epoch"]
    live_gateway.publish(rp, 1, prefix="new")
    again = pull(live_gateway, rp, after=document["cursor"])
    assert (again["recovered"], ids_of(again["events"])) == (True, ["new-1"])


def test_history_that_aged_is_a_gap(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(history={"max_age_s": 1})
    live_gateway.publish(rp, 2)
    cursor = f"{pull(live_gateway, rp)['epoch']}:1"
    wait_for(lambda: not pull(live_gateway, rp)["events"])
    document = pull(live_gateway, rp, after=cursor)
    assert (document["recovered"], document["events"]) == (False, [])
    assert document["gap"] == {"epoch": document["epoch"], "from": 2, "to": 2}


# Long-poll


async def test_a_long_poll_answers_when_an_event_comes(live_gateway: LiveGateway, rp: str) -> None:
    async with live_gateway.ahttp() as http:
        cursor = pull(live_gateway, rp)["cursor"]
        polls = [
            asyncio.create_task(http.get(f"/api/v1/rps/{rp}/events", params={"after": cursor, "wait_s": 20}))
            for _ in range(5)
        ]
        await live_gateway.followed(rp)
        assert not any(poll.done() for poll in polls)
        began = time.monotonic()
        live_gateway.publish(rp, 1)
        for poll in polls:
            assert ids_of((await poll).json()["events"]) == ["e-1"]
        assert time.monotonic() - began < 15, "it does not wait to its end"


async def test_a_long_poll_answers_empty_when_its_time_is_over(live_gateway: LiveGateway, rp: str) -> None:
    began = time.monotonic()
    document = await asyncio.to_thread(pull, live_gateway, rp, after="now", wait_s=0.5)
    assert 0.45 <= time.monotonic() - began < 15
    assert (document["events"], document["recovered"]) == ([], True)


def test_a_long_poll_does_not_wait_when_there_is_something_to_say(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(history={"max_events": 1})
    live_gateway.publish(rp, 3)
    began = time.monotonic()
    assert pull(live_gateway, rp, wait_s=30)["events"]
    assert pull(live_gateway, rp, after="zzzzzzzz:2", wait_s=30)["recovered"] is False
    assert time.monotonic() - began < 25


async def test_following_by_long_poll_misses_nothing(live_gateway: LiveGateway, rp: str) -> None:
    expected = 200

    async def follow() -> list[str]:
        found: list[str] = []
        cursor = "earliest"
        async with live_gateway.ahttp() as http:
            while len(found) < expected:
                members = {"after": cursor, "wait_s": "10", "limit": "7"}
                page = (await http.get(f"/api/v1/rps/{rp}/events", params=members)).json()
                found += ids_of(page["events"])
                cursor = page["cursor"]
        return found

    following = [asyncio.create_task(follow()) for _ in range(4)]
    for number in range(1, expected + 1, 5):
        await asyncio.to_thread(live_gateway.publish, rp, 5, begin=number)
    for follower in following:
        assert await asyncio.wait_for(follower, 60) == [f"e-{number}" for number in range(1, expected + 1)]


async def test_a_long_poll_ends_with_its_rp(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    polling = asyncio.create_task(
        asyncio.to_thread(live_gateway.http().get, f"/api/v1/rps/{rp}/events?after=now&wait_s=25")
    )
    await live_gateway.followed(rp)
    live_gateway.admin.delete(f"/api/v1/rps/{rp}").raise_for_status()
    answer = await asyncio.wait_for(polling, 20)
    assert (answer.status_code, answer.json()["type"]) == (404, "urn:herald:problem:not-found")


async def test_a_long_poll_does_not_outlive_its_token(live_gateway: LiveGateway, rp: str) -> None:
    began = time.monotonic()
    with live_gateway.http(lease_s=1.0) as http:
        answer = await asyncio.to_thread(http.get, f"/api/v1/rps/{rp}/events?after=now&wait_s=25")
    assert time.monotonic() - began < 20, "it would wait for 25 s"
    assert answer.status_code in (200, 401)


async def test_a_long_poll_does_not_tell_what_the_policy_has_come_to_forbid(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    polling = asyncio.create_task(
        asyncio.to_thread(live_gateway.http().get, f"/api/v1/rps/{rp}/events?after=now&wait_s=20")
    )
    await live_gateway.followed(rp)
    live_gateway.admin.patch(f"/api/v1/rps/{rp}", json={"policy": []}).raise_for_status()
    live_gateway.publish(rp, 1)
    answer = await asyncio.wait_for(polling, 20)
    assert (answer.status_code, answer.json()["type"]) == (403, "urn:herald:problem:forbidden")


async def test_many_long_polls_on_one_rp_are_woken_by_one_event(live_gateway: LiveGateway, rp: str) -> None:
    async with httpx.AsyncClient(
        base_url=live_gateway.url(),
        headers={"Authorization": f"Bearer {live_gateway.token()}"},
        **PLAIN,
        limits=httpx.Limits(max_connections=200),
    ) as http:
        polls = [
            asyncio.create_task(http.get(f"/api/v1/rps/{rp}/events", params={"after": "now", "wait_s": 30}))
            for _ in range(150)
        ]
        woken = [0]  # by each event in turn: a busy machine may not have let them begin to wait when the first comes
        while not all(poll.done() for poll in polls) and len(woken) < 20:
            await asyncio.sleep(0.5)  # more of them begin to wait
            before = sum(poll.done() for poll in polls)
            await asyncio.to_thread(
                live_gateway.publish, rp, 1, begin=len(woken)
            )  # a new one: what repeats wakes nobody
            await asyncio.wait(polls, timeout=5)
            woken.append(sum(poll.done() for poll in polls) - before)
        answers = await asyncio.wait_for(asyncio.gather(*polls), 60)
    assert max(woken) > 75, "one event wakes all who wait"
    assert all(answer.json()["events"] for answer in answers)
