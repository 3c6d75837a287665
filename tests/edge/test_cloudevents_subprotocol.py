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

from tests.edge.server import Edge, event


@asynccontextmanager
async def follow(edge: Edge, *, lease_s: float = 3600, **members: str) -> AsyncIterator[ClientConnection]:
    token = edge.token(lease_s=lease_s)
    async with connect(
        edge.ws_url(access_token=token, **members),
        subprotocols=["cloudevents.json"],  # type: ignore[list-item]
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


async def refusal(edge: Edge, **members: str) -> tuple[int, str]:
    """Status and problem code of a refused handshake."""
    with pytest.raises(InvalidStatus) as caught:
        async with follow(edge, **members):
            pass
    response = caught.value.response
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, json.loads(response.body or b"")["type"].removeprefix("urn:herald:problem:")


async def test_each_frame_is_an_event_as_it_was_published(edge: Edge, rp: str) -> None:
    edge.publish(rp, 1, prefix="before")
    async with follow(edge, rp=rp) as ws:
        assert ws.subprotocol == "cloudevents.json"
        edge.publish(rp, 2, data={"n": 1})
        assert await receive(ws, 2) == [event("e-1", {"n": 1}), event("e-2", {"n": 1})]


async def test_what_is_published_once_the_handshake_is_answered_is_not_missed(edge: Edge, rp: str) -> None:
    for number in range(1, 51):
        async with follow(edge, rp=rp) as ws:
            await asyncio.to_thread(edge.publish, rp, 1, begin=number)
            assert [one["id"] for one in await receive(ws, 1)] == [f"e-{number}"]


@pytest.mark.parametrize(("begin", "expected"), [("earliest", 3), ("last", 1)])
async def test_from_says_where_to_begin(edge: Edge, rp: str, begin: str, expected: int) -> None:
    edge.publish(rp, 3)
    async with follow(edge, rp=rp, **{"from": begin}) as ws:
        assert [one["id"] for one in await receive(ws, expected)] == ["e-1", "e-2", "e-3"][-expected:]


async def test_a_cursor_resumes_and_a_gap_is_an_event_of_its_own_type(edge: Edge) -> None:
    rp = edge.create_rp(history={"max_events": 2})
    edge.publish(rp, 5)
    epoch = edge.admin.get(f"/api/v1/rps/{rp}").json()["epoch"]
    async with follow(edge, rp=rp, **{"from": f"{epoch}:4"}) as ws:
        assert [one["id"] for one in await receive(ws, 1)] == ["e-5"]
    async with follow(edge, rp=rp, **{"from": f"{epoch}:1"}) as ws:
        gap, *rest = await receive(ws, 3)
        assert gap["type"] == "io.herald.gap"
        assert gap["data"] == {"rp": rp, "epoch": epoch, "from": 2, "to": 3}
        assert [one["id"] for one in rest] == ["e-4", "e-5"]


async def test_everything_is_checked_before_the_handshake_is_accepted(edge: Edge, rp: str) -> None:
    closed = edge.create_rp(policy=[])
    assert await refusal(edge) == (400, "invalid-request")
    assert await refusal(edge, rp="a" * 26) == (404, "not-found")
    assert await refusal(edge, rp=rp, **{"from": "yesterday"}) == (400, "invalid-cursor")
    assert await refusal(edge, rp=closed) == (403, "forbidden")


async def test_a_reader_that_sends_is_closed_as_terminal(edge: Edge, rp: str) -> None:
    async with follow(edge, rp=rp) as ws:
        await ws.send("{}")
        assert await close_code(ws) == 4104
    async with follow(edge, rp=rp) as ws:
        await ws.send(b"{}")
        assert await close_code(ws) == 1003


async def test_the_connection_ends_with_its_rp(edge: Edge) -> None:
    rp = edge.create_rp()
    async with follow(edge, rp=rp) as ws:
        edge.admin.delete(f"/api/v1/rps/{rp}").raise_for_status()
        assert await close_code(ws) == 4103


async def test_the_connection_ends_when_the_policy_has_come_to_forbid_it(edge: Edge) -> None:
    rp = edge.create_rp()
    async with follow(edge, rp=rp) as ws:
        edge.admin.patch(f"/api/v1/rps/{rp}", json={"policy": []}).raise_for_status()
        assert await close_code(ws) == 4102


async def test_the_connection_ends_with_its_token(edge: Edge, rp: str) -> None:
    async with follow(edge, rp=rp, lease_s=1) as ws:
        assert await close_code(ws) == 4100
