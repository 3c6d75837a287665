"""The subprotocol cloudevents.json: one structured CloudEvent per frame and nothing else, the RP in the query."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from tests.gateway.server import LiveGateway, event


def from_(cursor: str) -> dict[str, Any]:
    """The member `from` of a query."""
    return {"from": cursor}


@asynccontextmanager
async def follow(
    live_gateway: LiveGateway, *, lease_s: float = 3600, **members: Any
) -> AsyncIterator[ClientConnection]:
    token = live_gateway.token(lease_s=lease_s)
    async with connect(
        live_gateway.ws_url(access_token=token, **members),
        subprotocols=[Subprotocol("cloudevents.json")],
        compression=None,
        proxy=None,
    ) as ws:
        yield ws


async def receive(ws: ClientConnection, count: int) -> list[Any]:
    async with asyncio.timeout(10):
        return [json.loads(await ws.recv()) for _ in range(count)]


async def close_code(ws: ClientConnection) -> int | None:
    """The close code; what came before must be CloudEvents."""
    try:
        async with asyncio.timeout(10):
            while True:
                assert json.loads(await ws.recv())["specversion"] == "1.0"
    except ConnectionClosed:
        return ws.close_code


async def refusal(live_gateway: LiveGateway, **members: Any) -> tuple[int, str]:
    """Status and problem code of a refused handshake."""
    with pytest.raises(InvalidStatus) as caught:
        async with follow(live_gateway, **members):
            pass
    response = caught.value.response
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, json.loads(response.body or b"")["type"].removeprefix("urn:herald:problem:")


async def test_each_frame_is_an_event_as_it_was_published(live_gateway: LiveGateway, rp: str) -> None:
    live_gateway.publish(rp, 1, prefix="before")
    async with follow(live_gateway, rp=rp) as ws:
        assert ws.subprotocol == "cloudevents.json"
        live_gateway.publish(rp, 2, data={"n": 1})
        assert await receive(ws, 2) == [event("e-1", {"n": 1}), event("e-2", {"n": 1})]


async def test_what_is_published_once_the_handshake_is_answered_is_not_missed(
    live_gateway: LiveGateway, rp: str
) -> None:
    for number in range(1, 51):
        async with follow(live_gateway, rp=rp) as ws:
            await asyncio.to_thread(live_gateway.publish, rp, 1, begin=number)
            assert [one["id"] for one in await receive(ws, 1)] == [f"e-{number}"]


@pytest.mark.parametrize(("begin", "expected"), [("earliest", 3), ("last", 1)])
async def test_from_says_where_to_begin(live_gateway: LiveGateway, rp: str, begin: str, expected: int) -> None:
    live_gateway.publish(rp, 3)
    async with follow(live_gateway, rp=rp, **from_(begin)) as ws:
        assert [one["id"] for one in await receive(ws, expected)] == ["e-1", "e-2", "e-3"][-expected:]


async def test_a_cursor_resumes_and_a_gap_is_an_event_of_its_own_type(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(history={"max_events": 2})
    live_gateway.publish(rp, 5)
    epoch = live_gateway.admin.get(f"/api/v1/rps/{rp}").json()["epoch"]
    async with follow(live_gateway, rp=rp, **from_(f"{epoch}:4")) as ws:
        assert [one["id"] for one in await receive(ws, 1)] == ["e-5"]
    async with follow(live_gateway, rp=rp, **from_(f"{epoch}:1")) as ws:
        gap, *rest = await receive(ws, 3)
        assert gap["type"] == "io.herald.gap"
        assert gap["data"] == {"rp": rp, "epoch": epoch, "from": 2, "to": 3}
        assert [one["id"] for one in rest] == ["e-4", "e-5"]


async def test_everything_is_checked_before_the_handshake_is_accepted(live_gateway: LiveGateway, rp: str) -> None:
    closed = live_gateway.create_rp(policy=[])
    assert await refusal(live_gateway) == (400, "invalid-request")
    assert await refusal(live_gateway, rp="a" * 26) == (404, "not-found")
    assert await refusal(live_gateway, rp=rp, **{"from": "yesterday"}) == (400, "invalid-cursor")
    assert await refusal(live_gateway, rp=closed) == (403, "forbidden")


async def test_a_reader_that_sends_is_closed_as_terminal(live_gateway: LiveGateway, rp: str) -> None:
    async with follow(live_gateway, rp=rp) as ws:
        await ws.send("{}")
        assert await close_code(ws) == 4104
    async with follow(live_gateway, rp=rp) as ws:
        await ws.send(b"{}")
        assert await close_code(ws) == 1003


async def test_the_connection_ends_with_its_rp(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    async with follow(live_gateway, rp=rp) as ws:
        live_gateway.admin.delete(f"/api/v1/rps/{rp}").raise_for_status()
        assert await close_code(ws) == 4103


async def test_the_connection_ends_when_the_policy_has_come_to_forbid_it(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    async with follow(live_gateway, rp=rp) as ws:
        live_gateway.admin.patch(f"/api/v1/rps/{rp}", json={"policy": []}).raise_for_status()
        assert await close_code(ws) == 4102


async def test_the_connection_ends_with_its_token(live_gateway: LiveGateway, rp: str) -> None:
    async with follow(live_gateway, rp=rp, lease_s=5) as ws:
        assert await close_code(ws) == 4100
