"""GET /api/v1/rps/{rp}/stream: Server-Sent Events with the cursor as id, resumed by Last-Event-ID."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from eventing.store import keys
from tests.gateway.server import PLAIN, STRUCTURED, LiveGateway, event


@dataclass
class Message:
    """One message of a stream, read as the HTML standard says (section 9.2.6)."""

    event: str = "message"
    data: list[str] = field(default_factory=list)
    id: str | None = None

    @property
    def json(self) -> Any:
        return json.loads("\n".join(self.data))


class Stream:
    """The messages of one answer."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def message(self, within_s: float = 10.0) -> Message | None:
        """The next message; None at the end of the stream."""
        message = Message()
        async with asyncio.timeout(within_s):
            async for line in self._lines:
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if not line:
                    if message.data:
                        return message
                    message = Message()
                elif name == "data":
                    message.data.append(value)
                elif name == "id":
                    message.id = value
                elif name == "event":
                    message.event = value
        return None

    async def events(self, count: int) -> list[Message]:
        found = [await self.message() for _ in range(count)]
        assert all(one is not None and one.event == "message" for one in found), found
        return [one for one in found if one is not None]


@asynccontextmanager
async def stream(
    live_gateway: LiveGateway, rp: str, *, last_id: str = "", subject: str = "tester", **members: Any
) -> AsyncIterator[Stream]:
    claims = {name: members.pop(name) for name in ("lease_s",) if name in members}
    headers = {"Last-Event-ID": last_id} if last_id else {}
    async with (
        live_gateway.ahttp(subject, **claims) as http,
        http.stream("GET", f"/api/v1/rps/{rp}/stream", params=members, headers=headers) as response,
    ):
        if response.status_code != 200:
            await response.aread()
        yield Stream(response)


async def test_events_come_live_with_their_cursor_as_id(live_gateway: LiveGateway, rp: str) -> None:
    live_gateway.publish(rp, 2, prefix="before")
    async with stream(live_gateway, rp) as reading:
        assert reading.response.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert reading.response.headers["cache-control"] == "no-store"
        live_gateway.publish(rp, 3)
        messages = await reading.events(3)
    epoch = live_gateway.admin.get(f"/api/v1/rps/{rp}").json()["epoch"]
    assert [message.id for message in messages] == [f"{epoch}:3", f"{epoch}:4", f"{epoch}:5"]
    assert [message.json["id"] for message in messages] == ["e-1", "e-2", "e-3"]


async def test_last_event_id_resumes_without_loss_or_repetition(live_gateway: LiveGateway, rp: str) -> None:
    found: list[str] = []
    last_id = ""
    live_gateway.publish(rp, 100)
    for take in (1, 10, 39, 50):
        async with stream(live_gateway, rp, last_id=last_id, **({} if last_id else {"from": "earliest"})) as reading:
            messages = await reading.events(take)
            found += [message.json["id"] for message in messages]
            last_id = messages[-1].id or ""
    assert found == [f"e-{number}" for number in range(1, 101)]
    async with stream(live_gateway, rp, last_id=last_id) as reading:
        live_gateway.publish(rp, 1, prefix="next")
        assert (await reading.events(1))[0].json["id"] == "next-1"


async def test_last_event_id_goes_before_the_query(live_gateway: LiveGateway, rp: str) -> None:
    live_gateway.publish(rp, 3)
    epoch = live_gateway.admin.get(f"/api/v1/rps/{rp}").json()["epoch"]
    async with stream(live_gateway, rp, last_id=f"{epoch}:2", after="earliest") as reading:
        assert (await reading.events(1))[0].json["id"] == "e-3"


@pytest.mark.parametrize("begin", ["after", "from"])
async def test_the_query_says_where_to_begin(live_gateway: LiveGateway, rp: str, begin: str) -> None:
    live_gateway.publish(rp, 3)
    async with stream(live_gateway, rp, **{begin: "last"}) as reading:
        assert (await reading.events(1))[0].json["id"] == "e-3"


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r", "\n\n"])
async def test_an_event_of_many_lines_is_one_message(live_gateway: LiveGateway, rp: str, line_end: str) -> None:
    body = json.dumps(event("a", {"text": "one\ntwo", "more": [1, 2]}), indent=1).replace("\n", line_end)
    async with stream(live_gateway, rp) as reading:
        with live_gateway.http() as http:
            http.post(f"/api/v1/rps/{rp}/events", content=body, headers=STRUCTURED).raise_for_status()
            http.post(f"/api/v1/rps/{rp}/events", content=json.dumps(event("b")), headers=STRUCTURED).raise_for_status()
        first, second = await reading.events(2)
    assert first.json == json.loads(body)
    assert len(first.data) > 5
    assert second.json == event("b")
    async with stream(live_gateway, rp, last_id=first.id or "") as reading:
        assert (await reading.events(1))[0].json == event("b")


async def test_lost_history_is_a_gap_message_from_which_a_browser_resumes(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(history={"max_events": 2})
    live_gateway.publish(rp, 6)
    epoch = live_gateway.admin.get(f"/api/v1/rps/{rp}").json()["epoch"]
    async with stream(live_gateway, rp, last_id=f"{epoch}:1") as reading:
        gap = await reading.message()
        assert gap is not None
        assert (gap.event, gap.json) == ("gap", {"rp": rp, "epoch": epoch, "from": 2, "to": 4})
        assert gap.id == f"{epoch}:4"
        assert [one.json["id"] for one in await reading.events(2)] == ["e-5", "e-6"]
    async with stream(live_gateway, rp, last_id=gap.id or "") as reading:
        assert [one.json["id"] for one in await reading.events(2)] == ["e-5", "e-6"]


async def test_a_new_epoch_is_told_while_connected(live_gateway: LiveGateway, rp: str) -> None:
    live_gateway.publish(rp, 2)
    async with stream(live_gateway, rp, **{"from": "earliest"}) as reading:
        await reading.events(2)
        with live_gateway.redis as client:
            client.delete(*keys.log_keys(rp))
        live_gateway.publish(rp, 1, prefix="new")
        gap = await reading.message()
        assert gap is not None
        assert (gap.event, gap.json["from"], gap.json["to"]) == ("gap", 1, 0)
        assert (await reading.events(1))[0].json["id"] == "new-1"


@pytest.mark.parametrize("place", ["nonsense", "abc:-1", "x" * 3000])
async def test_a_cursor_that_is_none_of_ours_is_refused(live_gateway: LiveGateway, rp: str, place: str) -> None:
    async with stream(live_gateway, rp, last_id=place) as reading:
        assert reading.response.status_code == 400
        assert reading.response.json()["type"] == "urn:herald:problem:invalid-cursor"


async def test_the_stream_ends_with_its_rp_and_says_why(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    async with stream(live_gateway, rp) as reading:
        live_gateway.admin.delete(f"/api/v1/rps/{rp}").raise_for_status()
        message = await reading.message()
        assert message is not None
        assert (message.event, message.json["type"]) == ("error", "urn:herald:problem:not-found")
        assert await reading.message() is None


async def test_the_stream_ends_when_the_policy_has_come_to_forbid_it(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    async with stream(live_gateway, rp) as reading:
        live_gateway.admin.patch(f"/api/v1/rps/{rp}", json={"policy": []}).raise_for_status()
        live_gateway.publish(rp, 1)
        message = await reading.message()
        assert message is not None
        assert (message.event, message.json["type"]) == ("error", "urn:herald:problem:forbidden")
        assert await reading.message() is None
    async with stream(live_gateway, rp) as reading:
        assert reading.response.status_code == 403


async def test_the_stream_ends_within_five_seconds_of_its_tokens_end(live_gateway: LiveGateway, rp: str) -> None:
    began = time.monotonic()
    async with stream(live_gateway, rp, lease_s=5.0) as reading:
        last = await reading.message()
        assert last is not None
        assert (last.event, last.json) == ("closing", {"reason": "token-expired", "retry": False})
        assert await reading.message() is None
    assert 4.0 <= time.monotonic() - began < 20  # ten on a machine that does nothing else


async def test_an_idle_stream_is_kept_alive_by_comments(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway(heartbeat_s=1)
    rp = live_gateway.create_rp()
    async with stream(live_gateway, rp) as reading:
        comments = 0
        async with asyncio.timeout(30):
            async for line in reading.response.aiter_lines():
                comments += line.startswith(":")
                if comments == 2:
                    break


async def test_two_hundred_streams_get_every_event(live_gateway: LiveGateway, rp: str) -> None:
    async with httpx.AsyncClient(
        base_url=live_gateway.url(),
        headers={"Authorization": f"Bearer {live_gateway.token()}"},
        **{**PLAIN, "timeout": 90.0},  # all of them begin at once, on a busy machine
        limits=httpx.Limits(max_connections=200),
    ) as http:
        reading = 0
        begun = asyncio.Event()

        async def follow() -> list[str]:
            nonlocal reading
            async with http.stream("GET", f"/api/v1/rps/{rp}/stream") as response:
                reading += 1
                if reading == 200:
                    begun.set()
                return [message.json["id"] for message in await Stream(response).events(20)]

        following = [asyncio.create_task(follow()) for _ in range(200)]
        await asyncio.wait_for(begun.wait(), 60)
        ids = []
        for number in range(1, 21):
            ids += await asyncio.to_thread(live_gateway.publish, rp, 1, begin=number)
        assert all(found == ids for found in await asyncio.wait_for(asyncio.gather(*following), 60))
