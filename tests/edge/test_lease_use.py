"""What is used does not end: publishing, reading and attaching renew leases, of whoever may, rarely, and nothing else does."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.edge.client import Client
from tests.edge.server import STRUCTURED, Edge, event
from tests.edge.test_subscriptions import acknowledge, pull, subscribe
from tests.servers import eventually

LEASE_S = 1000
LEFT_S = 400  # less than three quarters: use renews it
RENEWED_WITHIN_S = 30.0

RP, SUBSCRIPTION = "eventing_rendezvouspoint", "eventing_subscription"


def aged(edge: Edge, table: str, id: str, left_s: float = LEFT_S) -> None:
    """Time passes for one lease: so much of it is left."""
    until = datetime.now(UTC) + timedelta(seconds=left_s)
    texts = [(until - timedelta(seconds=before)).strftime("%Y-%m-%d %H:%M:%S.%f") for before in (0, 1)]
    with closing(sqlite3.connect(edge.config.data_path / "herald.sqlite3")) as database, database:
        database.execute(f"UPDATE {table} SET expires_at = ?, warn_at = ? WHERE id = ?", [*texts, id])


def left_s(edge: Edge, table: str, id: str) -> float:
    """How much of a lease is left."""
    with closing(sqlite3.connect(edge.config.data_path / "herald.sqlite3")) as database:
        (text,) = database.execute(f"SELECT expires_at FROM {table} WHERE id = ?", [id]).fetchone()
    until = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return (until - datetime.now(UTC)).total_seconds()


async def renewed(edge: Edge, table: str, id: str) -> None:
    """Wait until a lease counts from now; connections are served meanwhile."""

    async def is_renewed() -> bool:
        return left_s(edge, table, id) > 0.9 * LEASE_S

    await eventually(is_renewed, RENEWED_WITHIN_S, every_s=0.1, about="the lease is renewed")


def aged_rp(edge: Edge, **asked: Any) -> str:
    """An RP that no gateway knows yet, most of whose lease has passed."""
    rp = edge.create_rp(**{"lease_s": LEASE_S, **asked})
    aged(edge, RP, rp)
    return rp


async def publish_by_http(edge: Edge, client: Client, rp: str) -> None:
    edge.publish(rp, 1)


async def publish_by_websocket(edge: Edge, client: Client, rp: str) -> None:
    await client.ok("publish", rp=rp, event=event("a"))


async def subscribe_by_websocket(edge: Edge, client: Client, rp: str) -> None:
    await client.ok("subscribe", rp=rp)


async def open_stream(edge: Edge, client: Client, rp: str) -> None:
    async with edge.ahttp() as http, http.stream("GET", f"/api/v1/rps/{rp}/stream") as answer:
        assert answer.status_code == 200


async def read_history(edge: Edge, client: Client, rp: str) -> None:
    async with edge.ahttp() as http:
        (await http.get(f"/api/v1/rps/{rp}/events")).raise_for_status()


async def pull_durable(edge: Edge, client: Client, rp: str) -> None:
    pull(edge, subscribe(edge, rp))


RP_USES: list[Callable[[Edge, Client, str], Awaitable[None]]] = [
    publish_by_http,
    publish_by_websocket,
    subscribe_by_websocket,
    open_stream,
    read_history,
    pull_durable,
]


@pytest.mark.parametrize("use", RP_USES, ids=lambda use: use.__name__)
async def test_the_use_of_a_rendezvous_point_renews_its_lease(
    edge: Edge, client: Client, use: Callable[[Edge, Client, str], Awaitable[None]]
) -> None:
    rp = aged_rp(edge)
    await use(edge, client, rp)
    await renewed(edge, RP, rp)


@pytest.mark.parametrize("use", ["pull", "ack", "ack by WebSocket", "attach"])
async def test_the_use_of_a_durable_subscription_renews_its_lease(
    edge: Edge, rp: str, client: Client, use: str
) -> None:
    subscription = subscribe(edge, rp, lease_s=LEASE_S)
    edge.publish(rp, 1)
    epoch = (await client.ok("subscribe", rp=rp))["epoch"]
    aged(edge, SUBSCRIPTION, subscription["id"])
    if use == "pull":
        pull(edge, subscription)
    elif use == "ack":
        acknowledge(edge, subscription, f"{epoch}:1").raise_for_status()
    elif use == "attach":
        async with Client(edge) as reader:
            await reader.ok("subscribe", subscription=subscription["id"])
    else:
        await client.ok("ack", subscription=subscription["id"], cursor=f"{epoch}:1")
    await renewed(edge, SUBSCRIPTION, subscription["id"])


async def test_readings_that_are_open_go_on_renewing_without_an_event(edge: Edge, client: Client) -> None:
    rp = edge.create_rp(lease_s=LEASE_S)
    subscription = subscribe(edge, rp, lease_s=LEASE_S)
    await client.ok("subscribe", subscription=subscription["id"])
    for _ in range(2):
        aged(edge, RP, rp)
        edge.admin.patch(f"/api/v1/rps/{rp}", json={"title": str(left_s(edge, RP, rp))}).raise_for_status()
        await renewed(edge, RP, rp)


async def test_who_is_refused_renews_nothing_nor_does_what_is_switched_off_or_too_short(edge: Edge) -> None:
    closed, off = aged_rp(edge, policy=[]), aged_rp(edge, renew_on_use=False)
    short = edge.create_rp(lease_s=50)
    aged(edge, RP, short, 30)
    used = aged_rp(edge)
    async with Client(edge, subject="stranger") as stranger:
        for op in ("subscribe", "publish"):
            assert await stranger.refused(op, rp=closed, event=event("a")) == "forbidden"
    with edge.http("stranger") as http:
        assert http.get(f"/api/v1/rps/{closed}/events").status_code == 403
        assert http.post(f"/api/v1/rps/{closed}/events", json=event("a"), headers=STRUCTURED).status_code == 403
    for rp in (off, short, used):
        edge.publish(rp, 1)
    await renewed(edge, RP, used)  # so what was noted before it has been renewed as well
    assert all(left_s(edge, RP, rp) <= LEFT_S for rp in (closed, off, short))
    assert edge.admin.get(f"/api/v1/rps/{off}").json()["renew_on_use"] is False
    assert edge.admin.patch(f"/api/v1/rps/{off}", json={"renew_on_use": True}).json()["renew_on_use"] is True
    edge.publish(off, 1, begin=2)
    await renewed(edge, RP, off)


async def test_much_use_is_one_renewal(edge: Edge, client: Client) -> None:
    rp = aged_rp(edge)
    for number in range(200):
        await client.send("publish", rp=rp, event=event(f"a{number}"))
    await client.ok("ping")
    await renewed(edge, RP, rp)
    edge.publish(rp, 50)
    other = aged_rp(edge)
    edge.publish(other, 1)
    await renewed(edge, RP, other)
    page = edge.admin.get(f"/api/v1/rps/{rp}.admin/events", params={"limit": 1000}).json()
    types = [one["type"] for one in page["events"]]
    assert types.count("io.herald.lease.renewed") == 1, json.dumps(types)


async def test_a_use_that_is_lost_with_its_gateway_is_made_up_by_the_next_one(new_edge: Callable[..., Edge]) -> None:
    edge = new_edge(gateways=2)
    rp = aged_rp(edge)
    with edge.http(gateway=0) as http:
        answer = http.post(f"/api/v1/rps/{rp}/events", json=event("a"), headers=STRUCTURED)
        assert answer.status_code == 201
    edge.kill_gateway(0)
    with edge.http(gateway=1) as http:
        assert http.get(f"/api/v1/rps/{rp}/events").status_code == 200
    await renewed(edge, RP, rp)
