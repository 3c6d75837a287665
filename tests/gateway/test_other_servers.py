"""The same promises where the server has no transport to offer (daphne), and where the database is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.gateway.client import Client, ResumingReader
from tests.gateway.publisher import SocketPublisher
from tests.gateway.server import DAPHNE, LiveGateway, Prepared, event, ids_of
from tests.gateway.test_stream import stream
from tests.gateway.test_websocket import ids

pytestmark = [pytest.mark.long, pytest.mark.processes]


@pytest.fixture(scope="module")
def shared_daphne(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """An edge served by daphne."""
    with LiveGateway(tmp_path_factory.mktemp("daphne") / "var", prepared, program=DAPHNE, heartbeat_s=1) as running:
        yield running


@pytest.fixture
def daphne(shared_daphne: LiveGateway) -> Iterator[LiveGateway]:
    before = len(shared_daphne.log)
    yield shared_daphne
    assert "Traceback" not in shared_daphne.log[before:]


async def test_daphne_subscribe_publish_gap_and_unsubscribe(daphne: LiveGateway) -> None:
    rp = daphne.create_rp(history={"max_events": 3})
    async with Client(daphne) as client:
        epoch = (await client.ok("subscribe", rp=rp))["epoch"]
        answers = [await client.send("publish", rp=rp, event=event(f"e{number}")) for number in range(1, 301)]
        assert [(await answer)["offset"] for answer in answers] == list(range(1, 301))
        assert ids(await client.events(300)) == [f"e{number}" for number in range(1, 301)]
        await client.ok("unsubscribe", rp=rp)
        assert (await client.ok("subscribe", rp=rp, begin=f"{epoch}:10"))["recovered"] is False
        gap = await client.frame()
        assert (gap["op"], gap["from"], gap["to"]) == ("gap", 11, 297)
        assert [frame["offset"] for frame in await client.events(3)] == [298, 299, 300]


async def test_daphne_an_idle_session_outlives_many_heartbeats(daphne: LiveGateway) -> None:
    rp = daphne.create_rp()
    async with Client(daphne) as client:
        await client.ok("subscribe", rp=rp)
        await asyncio.sleep(4)  # four heartbeats, and nothing closes the session
        daphne.publish(rp, 1)
        assert ids(await client.events(1)) == ["e-1"]


async def test_daphne_closes_with_the_same_codes_or_their_kind(daphne: LiveGateway) -> None:
    async with Client(daphne, lease_s=10) as client:
        assert (await client.frame())["reason"] == "token-expired"
        assert (await client.closed())[0] == 4100
    async with Client(daphne) as client:
        await client.ws.send(b"binary")
        assert (await client.frame())["retry"] is False
        assert (await client.closed())[0] == 4104, "daphne does not let us say 1003"
    with pytest.raises(InvalidStatus) as caught:
        await connect(daphne.ws_url(), proxy=None)
    assert caught.value.response.status_code == 403


async def test_daphne_streams_and_pulls(daphne: LiveGateway) -> None:
    rp = daphne.create_rp()
    async with stream(daphne, rp) as reading:
        daphne.publish(rp, 3)
        assert [message.json["id"] for message in await reading.events(3)] == ["e-1", "e-2", "e-3"]
    assert ids_of(daphne.admin.get(f"/api/v1/rps/{rp}/events?wait_s=1").json()["events"]) == ["e-1", "e-2", "e-3"]


async def test_daphne_under_load_keeps_every_promise(daphne: LiveGateway) -> None:
    rp = daphne.create_rp(history={"max_events": 100_000, "max_bytes": 64 << 20})
    async with ResumingReader(daphne, rp) as reader:
        async with SocketPublisher(daphne, rp, "a") as one, SocketPublisher(daphne, rp, "b", pause_s=0.002) as two:
            await asyncio.sleep(1)  # of load
        await reader.wait_until_has(one.acknowledged | two.acknowledged)
        assert len(reader.ids) > 100


def move(files: list[Path], *, away: bool) -> None:
    """Take the database's files away, or put them back."""
    for file in files:
        aside = file.with_name(f"{file.name}.away")
        begin, end = (file, aside) if away else (aside, file)
        end.unlink(missing_ok=True)  # a server that looked meanwhile has made an empty one
        if begin.exists():
            begin.rename(end)


async def test_a_database_that_is_away_is_said_and_what_is_known_goes_on(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway()
    rp, other = live_gateway.create_rp(), live_gateway.create_rp()
    files = [live_gateway.data_dir / f"herald.sqlite3{suffix}" for suffix in ("", "-wal", "-shm")]
    async with Client(live_gateway) as client, live_gateway.ahttp() as http:
        await client.ok("publish", rp=rp, event=event("a"))
        move(files, away=True)
        assert await client.refused("subscribe", rp=other) == "unavailable"
        answer = await http.post(f"/api/v1/rps/{other}/events", content=json.dumps(event("b")))
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:herald:problem:unavailable")
        assert answer.headers["retry-after"]
        await client.ok("publish", rp=rp, event=event("c"))
        await client.ok("subscribe", rp=rp, begin="earliest")
        move(files, away=False)
        await client.ok("subscribe", rp=other)
