"""Acknowledgements of a durable subscription, many at once: few round trips, each answered for itself and in order."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import httpx
import redis

from eventing.core.events.cursors import Cursor
from eventing.store import keys
from tests.gateway.client import Client
from tests.gateway.server import LiveGateway
from tests.gateway.test_replica_cursors import Replicas, replicas
from tests.gateway.test_subscriptions import pull, subscribe
from tests.store.homes import calls

__all__ = ["replicas"]

MANY = 2000
WRITES_OF_MANY = MANY // 10  # for as many acknowledgements: each write is a round trip and an fsync
ANSWERS_WITHIN_S = 60.0


async def received(live_gateway: LiveGateway) -> None:
    """Wait until the gateway has begun with all that was sent, though Redis stands still and nothing is answered."""
    await asyncio.to_thread(live_gateway.await_rest)


class Writes:
    """How many cursors Redis has written since this was made. Scripts are not counted: the gateway looks at all its channels'
    logs with them from time to time.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._before = calls(client, "hset")

    @property
    def count(self) -> int:
        return calls(self._client, "hset") - self._before


@contextmanager
def writes_of(live_gateway: LiveGateway) -> Iterator[Writes]:
    with closing(live_gateway.redis) as client:
        yield Writes(client)


@contextmanager
def standing_still(live_gateway: LiveGateway) -> Iterator[None]:
    """Redis does nothing meanwhile: what is sent waits."""
    live_gateway.pause_redis(True)
    try:
        yield
    finally:
        live_gateway.pause_redis(False)


async def answers(client: Client, sent: list[asyncio.Future[dict[str, Any]]]) -> list[dict[str, Any]]:
    return await asyncio.wait_for(asyncio.gather(*sent), ANSWERS_WITHIN_S)


async def test_acknowledgements_of_one_connection_share_round_trips(live_gateway: LiveGateway, client: Client) -> None:
    rp = live_gateway.create_rp(history={"max_events": MANY})
    subscription = subscribe(live_gateway, rp)
    live_gateway.publish(rp, MANY)
    epoch = pull(live_gateway, subscription, limit=1)["epoch"]
    with writes_of(live_gateway) as writes:
        sent = [
            await client.send("ack", subscription=subscription["id"], cursor=f"{epoch}:{offset}")
            for offset in range(1, MANY + 1)
        ]
        found = await answers(client, sent)
        assert 0 < writes.count < WRITES_OF_MANY
    assert {one["op"] for one in found} == {"ok"}
    held = [Cursor.parse(one["cursor"]).offset for one in found]
    assert all(at >= offset for offset, at in enumerate(held, 1)), "an answer covers what it answers"
    assert held == sorted(held)
    assert pull(live_gateway, subscription)["events"] == []


async def test_acknowledgements_are_answered_in_the_order_sent(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    subscriptions = [subscribe(live_gateway, rp)["id"] for _ in range(3)]
    live_gateway.publish(rp, 30)
    epoch = pull(live_gateway, {"links": {"events": f"/api/v1/subscriptions/{subscriptions[0]}/events"}}, limit=1)[
        "epoch"
    ]
    order: list[int] = []
    sent = []
    for number in range(90):
        cursor = "nonsense" if number % 10 == 9 else f"{epoch}:{number // 3 + 1}"
        answer = await client.send("ack", subscription=subscriptions[number % 3], cursor=cursor)
        answer.add_done_callback(lambda _, number=number: order.append(number))  # type: ignore[misc]
        sent.append(answer)
    await answers(client, sent)
    assert order == list(range(90))


async def test_a_bad_acknowledgement_among_others_is_refused_alone(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    subscription = subscribe(live_gateway, rp)["id"]
    live_gateway.publish(rp, 5)
    epoch = (await client.ok("subscribe", subscription=subscription))["epoch"]
    cursors = [
        f"{epoch}:1",
        f"{epoch}:9",
        "zzzzzzzz:2",
        f"{epoch}:3",
        "nonsense",
        f"{epoch}:2",
        "yyyyyyyy:1",
        f"{epoch}:7",
    ]
    sent = [await client.send("ack", subscription=subscription, cursor=cursor) for cursor in cursors]
    found = await answers(client, sent)
    assert [one["op"] for one in found] == ["ok", "error", "error", "ok", "error", "ok", "error", "error"]
    assert {one["type"] for one in found if one["op"] == "error"} == {"urn:herald:problem:invalid-cursor"}
    assert [found[at]["epoch"] for at in (2, 6)] == [epoch] * 2
    with live_gateway.http() as http:
        assert http.get(f"/api/v1/subscriptions/{subscription}").json()["cursor"] == f"{epoch}:3"


async def test_what_follows_an_acknowledgement_sees_its_effect(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    subscription = subscribe(live_gateway, rp)["id"]
    live_gateway.publish(rp, 40)
    begun = await client.ok("subscribe", subscription=subscription)
    for offset in range(1, 31):
        await client.send("ack", subscription=subscription, cursor=f"{begun['epoch']}:{offset}")
    await client.send("unsubscribe", rp=rp)
    again = await client.ok("subscribe", subscription=subscription)
    assert again["offset"] == 30


async def test_concurrent_acknowledgements_over_http_share_round_trips(live_gateway: LiveGateway, rp: str) -> None:
    subscription, count = subscribe(live_gateway, rp), 90  # fewer than the client has connections
    live_gateway.publish(rp, count)
    epoch = pull(live_gateway, subscription, limit=1)["epoch"]
    sent, all_sent = set[int](), asyncio.Event()
    async with live_gateway.ahttp() as http:

        async def acknowledge(offset: int) -> httpx.Response:
            async def trace(what: str, _: Any) -> None:
                if what == "http11.send_request_body.complete":
                    sent.add(offset)
                    if len(sent) == count:
                        all_sent.set()

            cursor = {"cursor": f"{epoch}:{offset}"}
            return await http.post(subscription["links"]["ack"], json=cursor, extensions={"trace": trace})

        with writes_of(live_gateway) as writes:
            with standing_still(live_gateway):  # until all are under way, whatever the machine does besides
                answered = asyncio.gather(*(acknowledge(offset) for offset in range(1, count + 1)))
                await asyncio.wait_for(all_sent.wait(), ANSWERS_WITHIN_S)
                await received(live_gateway)
            found = await asyncio.wait_for(answered, ANSWERS_WITHIN_S)
            assert 0 < writes.count < count // 3
    assert [one.status_code for one in found] == [200] * count
    held = [Cursor.parse(one.json()["cursor"]).offset for one in found]
    assert all(at >= offset for offset, at in enumerate(held, 1))
    assert pull(live_gateway, subscription)["events"] == []


async def test_another_principal_acknowledging_at_the_same_time_is_refused_alone(
    live_gateway: LiveGateway, rp: str
) -> None:
    subscription = subscribe(live_gateway, rp)["id"]
    live_gateway.publish(rp, 50)
    async with Client(live_gateway) as owner, Client(live_gateway, subject="stranger") as stranger:
        epoch = (await owner.ok("subscribe", subscription=subscription))["epoch"]
        sent = []
        for offset in range(1, 41):
            who = owner if offset % 2 else stranger
            sent.append(await who.send("ack", subscription=subscription, cursor=f"{epoch}:{offset}"))
        found = await answers(owner, sent)
    assert [one["op"] for one in found] == ["ok", "error"] * 20
    with live_gateway.http() as http:
        assert http.get(f"/api/v1/subscriptions/{subscription}").json()["cursor"] == f"{epoch}:39"


async def test_cursors_of_other_replicas_are_joined_feed_by_feed(replicas: Replicas, client: Client) -> None:
    """X has x1 x2 y1 y2. Neither cursor of Y alone covers more than two of them; both together cover all, and neither
    is the greater one."""
    live_gateway = replicas.live_gateway
    subscription = subscribe(live_gateway, replicas.x, **{"from": "earliest"})["id"]
    epoch_x = (await client.ok("subscribe", subscription=subscription))["epoch"]
    cursors = [Cursor(epoch_x, 0), *(Cursor("otherlog", 9, replicas.vector(**{feed: 2})) for feed in "xy")]
    with standing_still(live_gateway):
        sent = [await client.send("ack", subscription=subscription, cursor=str(cursors[0]))]
        await received(live_gateway)  # before the others are sent: they wait together only behind one that is under way
        for cursor in cursors[1:]:
            sent.append(await client.send("ack", subscription=subscription, cursor=str(cursor)))
        await received(live_gateway)
    found = await answers(client, sent)
    assert [one["op"] for one in found] == ["ok"] * 3, found
    with live_gateway.http() as http:
        held = http.get(f"/api/v1/subscriptions/{subscription}").json()["cursor"]
    assert Cursor.parse(held).offset == 4, "everything that both cover is acknowledged"
    assert Cursor.parse(held).epoch == epoch_x


async def test_acknowledgements_that_wait_when_a_token_is_revoked_take_no_effect(
    live_gateway: LiveGateway, rp: str
) -> None:
    subscription = subscribe(live_gateway, rp)["id"]
    live_gateway.publish(rp, 100)
    token = live_gateway.token("tester", jti="to-be-revoked")
    async with Client(live_gateway, token=token) as reader:
        epoch = (await reader.ok("subscribe", subscription=subscription))["epoch"]
        with standing_still(live_gateway):
            await reader.send("ack", subscription=subscription, cursor=f"{epoch}:1")
            await received(live_gateway)
            for offset in range(2, 101):
                await reader.send("ack", subscription=subscription, cursor=f"{epoch}:{offset}")
            await asyncio.to_thread(_revoke, live_gateway, "to-be-revoked")
            assert (await reader.closed())[0] == 4101
    with live_gateway.http() as http:
        held = http.get(f"/api/v1/subscriptions/{subscription}").json()["cursor"]
    assert Cursor.parse(held).offset <= 1


async def test_acknowledgements_that_wait_when_the_subscription_ends_are_refused(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    subscription = subscribe(live_gateway, rp)["id"]
    live_gateway.publish(rp, 10)
    epoch = (await client.ok("subscribe", subscription=subscription))["epoch"]
    with standing_still(live_gateway):
        sent = [await client.send("ack", subscription=subscription, cursor=f"{epoch}:1")]
        await received(live_gateway)
        sent += [await client.send("ack", subscription=subscription, cursor=f"{epoch}:{at}") for at in range(2, 11)]
        with (
            closing(sqlite3.connect(live_gateway.config.data_path / "herald.sqlite3", timeout=60)) as database,
            database,
        ):
            database.execute(
                "UPDATE eventing_subscription SET expires_at = '2026-01-01 00:00:00', warn_at = '2026-01-01 00:00:00' WHERE id = ?",
                [subscription],
            )
    found = await answers(client, sent)
    assert found[0]["op"] == "ok"
    assert {one["type"] for one in found[1:]} == {"urn:herald:problem:gone"}
    with closing(live_gateway.redis) as held:
        assert held.hget(keys.cursors_key(rp), subscription) == f"{epoch}:1".encode()


def _revoke(live_gateway: LiveGateway, token_id: str) -> None:
    """Revoke in SQL, which is all there is while Redis stands still."""
    process = live_gateway.python(
        "-c",
        "import django; django.setup()\n"
        "from eventing.core.principals import Principal\n"
        "from eventing.access.services.revocations import revocation_create\n"
        "from eventing.conf import config\n"
        "who = Principal(config().domain, 'root', True, 9e9, {})\n"
        f"revocation_create(principal=who, kind='token', value={token_id!r})\n",
    )
    process.communicate(timeout=ANSWERS_WITHIN_S)
