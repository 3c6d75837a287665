"""herald.v1 over WebSocket: every operation and what comes by itself, as docs/protocol.md promises."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.typing import Subprotocol

from eventing.store import keys
from tests.gateway.client import Client
from tests.gateway.server import LiveGateway, event, ids_of
from tests.gateway.test_publish import DELICATE


def ids(frames: list[dict[str, Any]]) -> list[str]:
    return ids_of([frame["event"] for frame in frames])


# Subscribe


async def test_subscribing_now_gives_what_is_published_from_now_on(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    live_gateway.publish(rp, 2, prefix="before")
    answer = await client.ok("subscribe", rp=rp)
    epoch = answer["epoch"]
    assert answer == {
        "op": "ok",
        "id": answer["id"],
        "rp": rp,
        "epoch": epoch,
        "offset": 2,
        "cursor": f"{epoch}:2",
        "recovered": True,
    }
    live_gateway.publish(rp, 2)
    frames = await client.events(2)
    assert frames[0] == {
        "op": "event",
        "rp": rp,
        "epoch": epoch,
        "offset": 3,
        "cursor": f"{epoch}:3",
        "event": event("e-1"),
    }
    assert ids(frames) == ["e-1", "e-2"]


@pytest.mark.parametrize(
    ("begin", "expected"),
    [("earliest", ["e-1", "e-2", "e-3"]), ("last", ["e-3"]), ("now", [])],
)
async def test_a_place_to_begin_by_name(
    live_gateway: LiveGateway, rp: str, client: Client, begin: str, expected: list[str]
) -> None:
    live_gateway.publish(rp, 3)
    answer = await client.ok("subscribe", rp=rp, begin=begin)
    assert (answer["recovered"], answer["offset"]) == (True, 3 - len(expected))
    live_gateway.publish(rp, 1, prefix="next")
    assert ids(await client.events(len(expected) + 1)) == [*expected, "next-1"]


async def test_a_cursor_or_its_parts_continue_where_they_stand(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    live_gateway.publish(rp, 5)
    await client.ok("subscribe", rp=rp, begin="earliest")
    third = (await client.events(5))[2]
    for begin in (third["cursor"], {"epoch": third["epoch"], "offset": third["offset"]}):
        await client.ok("unsubscribe", rp=rp)
        answer = await client.ok("subscribe", rp=rp, begin=begin)
        assert (answer["recovered"], answer["cursor"]) == (True, third["cursor"])
        assert ids(await client.events(2)) == ["e-4", "e-5"]


async def test_last_of_an_empty_rp_waits_for_the_first_event(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    assert (await client.ok("subscribe", rp=rp, begin="last"))["offset"] == 0
    live_gateway.publish(rp, 1)
    assert ids(await client.events(1)) == ["e-1"]


@pytest.mark.parametrize(
    "begin",
    [
        *("", "tomorrow", "abc", "abc:-1", "ABC:1", "a" * 100_000, 7, True, [], {}, {"epoch": "abc"}),
        *({"epoch": "abc", "offset": offset} for offset in ("1", True, -1, 1.0, 2**53)),
        {"epoch": 1, "offset": 1},
    ],
)
async def test_a_place_that_is_none_is_refused(rp: str, client: Client, begin: object) -> None:
    assert await client.refused("subscribe", rp=rp, begin=begin) == "invalid-cursor"


async def test_the_event_stands_in_its_frame_byte_for_byte(live_gateway: LiveGateway, rp: str, client: Client) -> None:
    body = f'{{ "specversion":"1.0","id":"1","source":"/s","type":"t", "data":{DELICATE}}}'
    await client.ok("subscribe", rp=rp)
    await client.ws.send(f'{{"op":"publish","id":77,"rp":"{rp}","event":{body} }}')
    await client.frame()
    await client.frame()
    assert any(text.endswith(f',"event":{body}}}') for text in client.texts)


async def test_many_rps_on_one_connection_each_keep_their_order(live_gateway: LiveGateway, client: Client) -> None:
    rps = [live_gateway.create_rp() for _ in range(30)]
    for rp in rps:
        await client.ok("subscribe", rp=rp)
    for number in range(1, 6):
        for rp in rps:
            live_gateway.publish(rp, 1, begin=number)
    found: dict[str, list[int]] = {rp: [] for rp in rps}
    for frame in await client.events(150):
        found[frame["rp"]].append(frame["offset"])
    assert all(offsets == [1, 2, 3, 4, 5] for offsets in found.values())


async def test_subscribing_twice_is_a_conflict_and_disturbs_nothing(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    await client.ok("subscribe", rp=rp)
    assert await client.refused("subscribe", rp=rp, begin="earliest") == "conflict"
    live_gateway.publish(rp, 1)
    await client.events(1)
    await client.quiet()


async def test_two_subscribes_in_flight_are_one_reading(live_gateway: LiveGateway, rp: str, client: Client) -> None:
    answers = [await client.send("subscribe", rp=rp) for _ in range(5)]
    assert [(await answer)["op"] for answer in answers] == ["ok", "error", "error", "error", "error"]
    live_gateway.publish(rp, 1)
    await client.events(1)
    await client.quiet()


async def test_after_unsubscribing_nothing_comes(live_gateway: LiveGateway, rp: str, client: Client) -> None:
    await client.ok("subscribe", rp=rp)
    live_gateway.publish(rp, 1)
    await client.events(1)
    await client.ok("unsubscribe", rp=rp)
    async with Client(live_gateway) as other:
        await other.ok("subscribe", rp=rp)
        live_gateway.publish(rp, 1, prefix="after")
        await other.events(1)  # the gateway has given it to all who want it
    await client.quiet()
    assert await client.refused("unsubscribe", rp=rp) == "not-found"


async def test_one_reader_leaving_does_not_disturb_another(live_gateway: LiveGateway, rp: str, client: Client) -> None:
    async with Client(live_gateway) as other:
        await other.ok("subscribe", rp=rp)
        await client.ok("subscribe", rp=rp)
    live_gateway.publish(rp, 3)
    assert ids(await client.events(3)) == ["e-1", "e-2", "e-3"]


async def test_publishing_and_reading_on_the_same_connection(rp: str, client: Client) -> None:
    await client.ok("subscribe", rp=rp)
    for number in range(1, 21):
        assert (await client.ok("publish", rp=rp, event=event(f"e{number}")))["offset"] == number
    assert ids(await client.events(20)) == [f"e{number}" for number in range(1, 21)]


# Gaps


async def test_trimmed_history_is_answered_unrecovered_and_then_told_as_a_gap(
    live_gateway: LiveGateway, client: Client
) -> None:
    rp = live_gateway.create_rp(history={"max_events": 3})
    live_gateway.publish(rp, 10)
    epoch = (await client.ok("subscribe", rp=rp))["epoch"]
    await client.ok("unsubscribe", rp=rp)
    answer = await client.ok("subscribe", rp=rp, begin=f"{epoch}:2")
    assert (answer["recovered"], answer["offset"]) == (False, 7)
    assert await client.frame() == {"op": "gap", "rp": rp, "epoch": epoch, "from": 3, "to": 7}
    assert [frame["offset"] for frame in await client.events(3)] == [8, 9, 10]


async def test_an_unknown_epoch_is_unrecovered_and_everything_held_is_sent(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    live_gateway.publish(rp, 2)
    answer = await client.ok("subscribe", rp=rp, begin="zzzzzzzz:40")
    assert (answer["recovered"], answer["offset"]) == (False, 0)
    assert await client.frame() == {"op": "gap", "rp": rp, "epoch": answer["epoch"], "from": 1, "to": 0}
    assert ids(await client.events(2)) == ["e-1", "e-2"]


async def test_a_log_lost_while_connected_is_told_and_reading_goes_on(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    live_gateway.publish(rp, 3)
    old = (await client.ok("subscribe", rp=rp, begin="earliest"))["epoch"]
    await client.events(3)
    with live_gateway.redis as redis:
        redis.delete(*keys.log_keys(rp))
    live_gateway.publish(rp, 2, prefix="new")
    gap = await client.frame()
    assert (gap["op"], gap["from"], gap["to"]) == ("gap", 1, 0)
    assert gap["epoch"] != old
    frames = await client.events(2)
    assert [(frame["epoch"], frame["offset"]) for frame in frames] == [(gap["epoch"], 1), (gap["epoch"], 2)]


async def test_a_log_lost_without_a_sound_is_made_anew_within_seconds(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    live_gateway.publish(rp, 3)
    await client.ok("subscribe", rp=rp)
    with live_gateway.redis as redis:
        redis.delete(*keys.log_keys(rp))
    gap = await client.frame()
    assert (gap["op"], gap["from"], gap["to"]) == ("gap", 1, 0)
    live_gateway.publish(rp, 1, prefix="new")
    assert (await client.events(1))[0]["offset"] == 1


# Publish


async def test_many_publishes_in_flight_are_answered_in_order(rp: str, client: Client) -> None:
    answers = [await client.send("publish", rp=rp, event=event(f"e{number}")) for number in range(500)]
    offsets = [(await answer)["offset"] for answer in answers]
    assert offsets == list(range(1, 501))


async def test_more_in_flight_than_the_session_may_have_are_all_answered(
    rp: str, client: Client, live_gateway: LiveGateway
) -> None:
    count = live_gateway.config.session_publishes_max * 3
    answers = [await client.send("publish", rp=rp, event=event(f"e{number}")) for number in range(count)]
    done = await asyncio.wait_for(asyncio.gather(*answers), 30)
    assert [answer["offset"] for answer in done] == list(range(1, count + 1))


async def test_a_batch_is_answered_for_each_event(rp: str, client: Client) -> None:
    await client.ok("publish", rp=rp, event=event("b"))
    answer = await client.ok("publish", rp=rp, events=[event("a"), event("b"), event("c")])
    assert (answer["offset"], answer["cursor"]) == (3, f"{answer['epoch']}:3")
    assert answer["results"] == [
        {"offset": 2, "duplicate": False},
        {"offset": 1, "duplicate": True},
        {"offset": 3, "duplicate": False},
    ]


async def test_a_repeated_event_is_answered_with_its_place(rp: str, client: Client) -> None:
    first = await client.ok("publish", rp=rp, event=event("a"))
    again = await client.ok("publish", rp=rp, event=event("a"))
    assert "duplicate" not in first
    assert (again["offset"], again["duplicate"]) == (first["offset"], True)


async def test_publishes_after_a_slow_operation_keep_their_order(live_gateway: LiveGateway, client: Client) -> None:
    fresh = [live_gateway.create_rp() for _ in range(5)]
    sent = []
    for number in range(20):
        sent.append(await client.send("publish", rp=fresh[number % 5], event=event(f"e{number}")))
        if number == 3:
            sent.append(await client.send("subscribe", rp=fresh[0], begin="earliest"))
    for answer in sent:
        assert (await answer)["op"] == "ok"
    frames = await client.events(4)
    assert ids(frames) == ["e0", "e5", "e10", "e15"]


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({}, "invalid-request"),
        ({"event": None}, "invalid-event"),
        ({"event": 7}, "invalid-event"),
        ({"event": {}}, "invalid-event"),
        ({"event": {**event("a"), "specversion": "0.3"}}, "invalid-event"),
        ({"event": {**event("a"), "Upper": 1}}, "invalid-event"),
        ({"event": event("")}, "invalid-event"),
        ({"event": event("a", "x" * 300_000)}, "too-large"),
        ({"events": []}, "invalid-request"),
        ({"events": [event("a"), {}]}, "invalid-event"),
        ({"events": {}}, "invalid-request"),
        ({"events": 7}, "invalid-request"),
        ({"events": [event("a")] * 1001}, "too-large"),
    ],
)
async def test_what_cannot_be_published_is_refused_whole(
    live_gateway: LiveGateway, rp: str, members: dict[str, Any], code: str
) -> None:
    async with Client(live_gateway) as client:
        answer = await client.send("publish", rp=rp, **members)
        document = await asyncio.wait_for(asyncio.shield(_refusal(client, answer)), 10)
        assert document["type"] == f"urn:herald:problem:{code}", document
        assert (await client.ok("subscribe", rp=rp))["offset"] == 0


async def _refusal(client: Client, answer: asyncio.Future[dict[str, Any]]) -> dict[str, Any]:
    """The error for an operation, with its id, or without one where the message could not be read that far."""
    by_itself = asyncio.ensure_future(client.frames.get())
    done, _ = await asyncio.wait([answer, by_itself], return_when=asyncio.FIRST_COMPLETED)
    by_itself.cancel()
    document = done.pop().result()
    assert document["op"] == "error"
    return document


@pytest.mark.parametrize("reference", ["a" * 26, "/localhost/no/such/", "no/such", "zzz.admin"])
async def test_an_unknown_rp_is_refused(client: Client, reference: str) -> None:
    for op in ("subscribe", "unsubscribe"):
        assert await client.refused(op, rp=reference) in ("not-found", "invalid-request")
    assert await client.refused("publish", rp=reference, event=event("a")) in ("not-found", "invalid-request")


@pytest.mark.parametrize("reference", ["", "/", "//", "/a", "a b", "\u00e9/x", "/localhost/../x/", "x/" * 200])
async def test_a_reference_that_can_be_none_is_refused(client: Client, reference: str) -> None:
    assert await client.refused("subscribe", rp=reference) in ("invalid-request", "not-found")


# The rest


async def test_ping_is_answered_in_its_turn(client: Client) -> None:
    assert await client.ok("ping", id="p-1") == {"op": "ok", "id": "p-1"}


@pytest.mark.parametrize("op", ["", "fly", "SUBSCRIBE", "event", "ok", "sub\u0000scribe"])
async def test_an_unknown_operation_is_refused_by_name_and_the_connection_stays(client: Client, op: str) -> None:
    assert await client.refused(op) == "invalid-request"
    await client.ok("ping")


async def test_a_name_means_the_same_rp_as_its_id(live_gateway: LiveGateway, client: Client) -> None:
    rp = live_gateway.create_rp(name="Sensors/roof.1/~x")
    answer = await client.ok("subscribe", rp="/localhost/Sensors/roof.1/~x/")
    assert answer["rp"] == rp
    assert await client.refused("subscribe", rp=rp) == "conflict"
    await client.ok("publish", rp="Sensors/roof.1/~x", event=event("a"))
    assert (await client.events(1))[0]["rp"] == rp
    await client.ok("unsubscribe", rp="/localhost/Sensors/roof.1/~x")


async def test_a_name_in_a_url_is_percent_encoded(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(name="events/stream/events")
    with live_gateway.http() as http:
        for reference in ("%2Flocalhost%2Fevents%2Fstream%2Fevents%2F", "/localhost/events/stream/events/", rp):
            answer = http.post(f"/api/v1/rps/{reference}/events", content="{}")
            assert answer.status_code == 201, (reference, answer.text)
        assert len(http.get(f"/api/v1/rps/{rp}/events").json()["events"]) == 3


async def test_renewing_extends_the_lease_of_an_rp(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(lease_s=60)
    async with Client(live_gateway, subject="root", admin=True) as admin, Client(live_gateway) as other:
        lease = (await admin.ok("renew", rp=rp, lease_s=600))["lease"]
        assert lease["granted_s"] == 600
        assert await other.refused("renew", rp=rp, lease_s=600) == "forbidden"
        assert await admin.refused("renew", lease_s=600) == "invalid-request"
        assert await admin.refused("renew", rp=rp, lease_s=0) == "invalid-request"
    assert live_gateway.admin.get(f"/api/v1/rps/{rp}").json()["lease"]["granted_s"] == 600


async def test_answers_and_events_of_one_turn_arrive_whole_and_in_order(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    """Several frames may share a TCP segment; each is a frame of its own, of any size."""
    await client.ok("subscribe", rp=rp)
    sizes = [0, 1, 100, 125, 126, 127, 1000, 65_400, 65_535, 65_536, 200_000]
    answers = [await client.send("publish", rp=rp, event=event(f"e{size}", "x" * size)) for size in sizes]
    frames = await client.events(len(sizes))
    assert [len(frame["event"]["data"]) for frame in frames] == sizes
    assert all([(await answer)["op"] == "ok" for answer in answers])


@pytest.mark.parametrize("offered", [None, "herald.v1"])
async def test_the_subprotocol_is_named_only_when_it_was_offered(
    live_gateway: LiveGateway, offered: str | None
) -> None:
    from websockets.asyncio.client import connect

    async with connect(
        live_gateway.ws_url(access_token=live_gateway.token()),
        subprotocols=[Subprotocol(offered)] if offered else None,
        proxy=None,
    ) as ws:
        assert ws.subprotocol == offered
        await ws.send('{"op":"ping","id":1}')
        assert json.loads(await ws.recv()) == {"op": "ok", "id": 1}
