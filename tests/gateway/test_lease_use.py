"""What is used does not end: publishing, reading and attaching renew leases, of whoever may, rarely, and nothing else does."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

from demo.harness.servers import eventually
from tests.gateway.client import Client
from tests.gateway.server import STRUCTURED, LiveGateway, event
from tests.gateway.test_subscriptions import acknowledge, pull, subscribe

LEASE_S = 1000
LEFT_S = 400  # less than three quarters: use renews it
RENEWED_WITHIN_S = 60.0

RP, SUBSCRIPTION = "eventing_rendezvouspoint", "eventing_subscription"


def aged(live_gateway: LiveGateway, table: str, id: str, left_s: float = LEFT_S) -> None:
    """Time passes for one lease: so much of it is left."""
    until = datetime.now(UTC) + timedelta(seconds=left_s)
    texts = [(until - timedelta(seconds=before)).strftime("%Y-%m-%d %H:%M:%S.%f") for before in (0, 1)]
    with closing(sqlite3.connect(live_gateway.config.data_path / "herald.sqlite3", timeout=60)) as database, database:
        database.execute(f"UPDATE {table} SET expires_at = ?, warn_at = ? WHERE id = ?", [*texts, id])


def left_s(live_gateway: LiveGateway, table: str, id: str) -> float:
    """How much of a lease is left."""
    with closing(sqlite3.connect(live_gateway.config.data_path / "herald.sqlite3", timeout=60)) as database:
        (text,) = database.execute(f"SELECT expires_at FROM {table} WHERE id = ?", [id]).fetchone()
    until = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return (until - datetime.now(UTC)).total_seconds()


async def renewed(live_gateway: LiveGateway, table: str, id: str, by: str = "use") -> None:
    """Wait until a lease counts from now; connections are served meanwhile."""

    async def is_renewed() -> bool:
        return left_s(live_gateway, table, id) > 0.9 * LEASE_S

    await eventually(is_renewed, RENEWED_WITHIN_S, every_s=0.1, about=f"the lease is renewed by {by}")


def aged_rp(live_gateway: LiveGateway, **asked: Any) -> str:
    """An RP that no gateway knows yet, most of whose lease has passed."""
    rp = live_gateway.create_rp(**{"lease_s": LEASE_S, **asked})
    aged(live_gateway, RP, rp)
    return rp


async def publish_by_http(live_gateway: LiveGateway, client: Client, rp: str) -> None:
    live_gateway.publish(rp, 1)


async def publish_by_websocket(live_gateway: LiveGateway, client: Client, rp: str) -> None:
    await client.ok("publish", rp=rp, event=event("a"))


async def subscribe_by_websocket(live_gateway: LiveGateway, client: Client, rp: str) -> None:
    await client.ok("subscribe", rp=rp)


async def open_stream(live_gateway: LiveGateway, client: Client, rp: str) -> None:
    async with live_gateway.ahttp() as http, http.stream("GET", f"/api/v1/rps/{rp}/stream") as answer:
        assert answer.status_code == 200


async def read_history(live_gateway: LiveGateway, client: Client, rp: str) -> None:
    async with live_gateway.ahttp() as http:
        (await http.get(f"/api/v1/rps/{rp}/events")).raise_for_status()


async def pull_durable(live_gateway: LiveGateway, client: Client, rp: str) -> None:
    pull(live_gateway, subscribe(live_gateway, rp))


RP_USES: list[Callable[[LiveGateway, Client, str], Awaitable[None]]] = [
    publish_by_http,
    publish_by_websocket,
    subscribe_by_websocket,
    open_stream,
    read_history,
    pull_durable,
]


async def test_each_use_of_a_rendezvous_point_renews_its_lease(live_gateway: LiveGateway, client: Client) -> None:
    rps = {use.__name__: aged_rp(live_gateway) for use in RP_USES}
    for use in RP_USES:
        await use(live_gateway, client, rps[use.__name__])
    for name, rp in rps.items():
        await renewed(live_gateway, RP, rp, by=name)


async def test_each_use_of_a_durable_subscription_renews_its_lease(
    live_gateway: LiveGateway, rp: str, client: Client
) -> None:
    used = {use: subscribe(live_gateway, rp, lease_s=LEASE_S) for use in ("pull", "ack", "ack by WebSocket", "attach")}
    live_gateway.publish(rp, 1)
    epoch = (await client.ok("subscribe", rp=rp))["epoch"]
    for subscription in used.values():
        aged(live_gateway, SUBSCRIPTION, subscription["id"])
    pull(live_gateway, used["pull"])
    acknowledge(live_gateway, used["ack"], f"{epoch}:1").raise_for_status()
    await client.ok("ack", subscription=used["ack by WebSocket"]["id"], cursor=f"{epoch}:1")
    async with Client(live_gateway) as reader:
        await reader.ok("subscribe", subscription=used["attach"]["id"])
    for use, subscription in used.items():
        await renewed(live_gateway, SUBSCRIPTION, subscription["id"], by=use)


async def test_readings_that_are_open_go_on_renewing_without_an_event(
    live_gateway: LiveGateway, client: Client
) -> None:
    rp = live_gateway.create_rp(lease_s=LEASE_S)
    subscription = subscribe(live_gateway, rp, lease_s=LEASE_S)
    await client.ok("subscribe", subscription=subscription["id"])
    for _ in range(2):
        aged(live_gateway, RP, rp)
        live_gateway.admin.patch(
            f"/api/v1/rps/{rp}", json={"title": str(left_s(live_gateway, RP, rp))}
        ).raise_for_status()
        await renewed(live_gateway, RP, rp)


async def test_who_is_refused_renews_nothing_nor_does_what_is_switched_off_or_too_short(
    live_gateway: LiveGateway,
) -> None:
    closed, off = aged_rp(live_gateway, policy=[]), aged_rp(live_gateway, renew_on_use=False)
    short = live_gateway.create_rp(lease_s=50)
    aged(live_gateway, RP, short, 30)
    used = aged_rp(live_gateway)
    async with Client(live_gateway, subject="stranger") as stranger:
        for op in ("subscribe", "publish"):
            assert await stranger.refused(op, rp=closed, event=event("a")) == "forbidden"
    with live_gateway.http("stranger") as http:
        assert http.get(f"/api/v1/rps/{closed}/events").status_code == 403
        assert http.post(f"/api/v1/rps/{closed}/events", json=event("a"), headers=STRUCTURED).status_code == 403
    for rp in (off, short, used):
        live_gateway.publish(rp, 1)
    await renewed(live_gateway, RP, used)  # so what was noted before it has been renewed as well
    assert all(left_s(live_gateway, RP, rp) <= LEFT_S for rp in (closed, off, short))
    assert live_gateway.admin.get(f"/api/v1/rps/{off}").json()["renew_on_use"] is False
    assert live_gateway.admin.patch(f"/api/v1/rps/{off}", json={"renew_on_use": True}).json()["renew_on_use"] is True
    live_gateway.publish(off, 1, begin=2)
    await renewed(live_gateway, RP, off)


async def test_much_use_is_one_renewal(live_gateway: LiveGateway, client: Client) -> None:
    rp = aged_rp(live_gateway)
    for number in range(200):
        await client.send("publish", rp=rp, event=event(f"a{number}"))
    await client.ok("ping")
    await renewed(live_gateway, RP, rp)
    live_gateway.publish(rp, 50)
    other = aged_rp(live_gateway)
    live_gateway.publish(other, 1)
    await renewed(live_gateway, RP, other)
    page = live_gateway.admin.get(f"/api/v1/rps/{rp}.admin/events", params={"limit": 1000}).json()
    types = [one["type"] for one in page["events"]]
    assert types.count("io.herald.lease.renewed") == 1, json.dumps(types)


async def test_a_use_that_is_lost_with_its_gateway_is_made_up_by_the_next_one(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway(gateways=2)
    rp = aged_rp(live_gateway)
    with live_gateway.http(gateway=0) as http:
        answer = http.post(f"/api/v1/rps/{rp}/events", json=event("a"), headers=STRUCTURED)
        assert answer.status_code == 201
    live_gateway.kill_gateway(0)
    with live_gateway.http(gateway=1) as http:
        assert http.get(f"/api/v1/rps/{rp}/events").status_code == 200
    await renewed(live_gateway, RP, rp)
