"""What an operator does to rendezvous points and sessions, on two real gateways, as publishers and readers see it:
pausing and resuming, trimming, listing sessions, disconnecting them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from herald.commands import cli

from tests.gateway.client import Client
from tests.gateway.server import BATCH, STRUCTURED, LiveGateway, Prepared, event

pytestmark = pytest.mark.processes

WITHIN_S = 60.0
PATIENT = (
    "-c",
    "import runpy; from eventing.store import sessions; sessions.WAIT_S = 30.0;"
    " runpy.run_module('portal.gateway', run_name='__main__', alter_sys=True)",
    "--fd",
)
"""A gateway that waits for the answers of another one that does not get the processor for a second."""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """Two gateways."""
    with LiveGateway(tmp_path_factory.mktemp("pair") / "var", prepared, gateways=2, program=PATIENT) as running:
        yield running


@pytest.fixture
def live_gateway(pair: LiveGateway) -> Iterator[LiveGateway]:
    """The two; nothing that a test does may make them log a traceback."""
    before = len(pair.log)
    yield pair
    assert "Traceback" not in pair.log[before:]


async def eventually(look: Callable[[], Awaitable[bool]], about: str) -> None:
    """Look until it is so, WITHIN_S at most."""
    try:
        async with asyncio.timeout(WITHIN_S):
            while not await look():  # noqa: ASYNC110 - what it looks at is elsewhere
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not within {WITHIN_S:g} s: {about}") from None


def code_of(answer: httpx.Response) -> str:
    return str(answer.json()["type"]).removeprefix("urn:herald:problem:")


def act(live_gateway: LiveGateway, rp: str, what: str, **body: Any) -> dict[str, Any]:
    answer = live_gateway.admin.post(f"/api/v1/rps/{rp}/{what}", json=body)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def admin_events(live_gateway: LiveGateway, rp: str) -> list[dict[str, Any]]:
    answer = live_gateway.admin.get(f"/api/v1/rps/{rp}/events", params={"after": "earliest", "limit": 500})
    return list(answer.json()["events"])


async def paused(client: Client, http: httpx.AsyncClient, rp: str) -> bool:
    """Whether both bindings refuse by now; a refusal of any other kind fails the test."""
    over_http = await http.post(f"/api/v1/rps/{rp}/events", json=event("probe"), headers=STRUCTURED)
    over_socket = await client.ask("publish", rp=rp, event=event("probe"))
    refused = (over_http.status_code != 201, over_socket["op"] == "error")
    if over_http.status_code != 201:
        assert (over_http.status_code, code_of(over_http)) == (409, "paused")
    if over_socket["op"] == "error":
        assert over_socket["type"] == "urn:herald:problem:paused"
    return all(refused)


async def test_a_paused_rp_takes_nothing_on_any_binding_and_keeps_its_readers(
    live_gateway: LiveGateway, rp: str
) -> None:
    async with Client(live_gateway) as reader, Client(live_gateway) as publisher, live_gateway.ahttp() as http:
        await reader.ok("subscribe", rp=rp)
        # both publish before: the gateway then knows token, RP and session, and the short way is taken
        await publisher.ok("publish", rp=rp, event=event("before-1"))
        answer = await http.post(f"/api/v1/rps/{rp}/events", json=event("before-2"), headers=STRUCTURED)
        assert answer.status_code == 201
        assert {one["event"]["id"] for one in await reader.events(2)} == {"before-1", "before-2"}

        shown = act(live_gateway, rp, "pause", reason="a publisher floods")
        assert shown["paused"]["reason"] == "a publisher floods"
        assert shown["paused"]["by"] == "root"
        await eventually(lambda: paused(publisher, http, rp), "both bindings refuse")
        held = live_gateway.admin.get(f"/api/v1/rps/{rp}").json()["offset"]

        single = await http.post(f"/api/v1/rps/{rp}/events", json=event("no"), headers=STRUCTURED)
        assert (single.status_code, code_of(single)) == (409, "paused")
        assert "a publisher floods" in single.json()["detail"]
        slow = await http.post(f"/api/v1/rps/{rp}/events?x=1", json=[event("no")], headers=BATCH)  # the ordinary way
        assert (slow.status_code, code_of(slow)) == (409, "paused")
        assert await publisher.refused("publish", rp=rp, events=[event("no"), event("no-2")]) == "paused"
        assert live_gateway.admin.get(f"/api/v1/rps/{rp}").json()["offset"] == held, "nothing was stored"

        while not reader.frames.empty():  # probes that came in before all had heard of it
            assert reader.frames.get_nowait()["op"] == "event"
        await reader.ok("ping")  # it is there, and was told of nothing
        assert reader.frames.empty()

        assert act(live_gateway, rp, "resume")["paused"] is None

        async def goes_on() -> bool:
            return bool((await publisher.ask("publish", rp=rp, event=event("after")))["op"] == "ok")

        await eventually(goes_on, "it takes events again")
        assert (await reader.events(1))[0]["event"]["id"] == "after"

    for reported in (admin_events(live_gateway, f"{rp}.admin"), admin_events(live_gateway, "domain.admin")):
        told = [one for one in reported if one["type"].endswith((".paused", ".resumed")) and rp in one["source"]]
        assert [(one["type"], one["data"]["rp"]["paused"] is None, one["data"]["by"]) for one in told] == [
            ("io.herald.rp.paused", False, "root"),
            ("io.herald.rp.resumed", True, "root"),
        ]
    listed = {one["id"]: one for one in live_gateway.admin.get("/api/v1/rps", params={"limit": 500}).json()["items"]}
    assert listed[rp]["paused"] is None
    entries = live_gateway.admin.get("/api/v1/audit", params={"on": rp}).json()["items"]
    assert [entry["action"] for entry in entries if entry["action"] in ("rp.pause", "rp.resume")] == [
        "rp.resume",
        "rp.pause",
    ]


async def test_a_pause_reaches_the_other_gateway(live_gateway: LiveGateway, rp: str) -> None:
    async with Client(live_gateway, gateway=1) as publisher, live_gateway.ahttp(gateway=1) as http:
        await publisher.ok("publish", rp=rp, event=event("before"))
        act(live_gateway, rp, "pause")  # at the first gateway
        await eventually(lambda: paused(publisher, http, rp), "the other gateway refuses")


def sessions(live_gateway: LiveGateway, **asked: Any) -> dict[str, Any]:
    answer = live_gateway.admin.get("/api/v1/sessions", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def no_sessions(live_gateway: LiveGateway) -> bool:
    return not sessions(live_gateway)["items"]


async def test_sessions_of_all_gateways_are_listed_and_disconnected_wherever_they_are(
    live_gateway: LiveGateway, rp: str
) -> None:
    await eventually(lambda: no_sessions(live_gateway), "those of other tests have ended")
    async with (
        Client(live_gateway, gateway=0, subject="ann") as ann,
        Client(live_gateway, gateway=1, subject="ben") as ben,
        Client(live_gateway, gateway=1, subject="ben") as other_ben,
    ):
        await ann.ok("subscribe", rp=rp)
        await ben.ok("subscribe", rp=rp)
        listed = sessions(live_gateway)
        assert listed["gateways"] == {"asked": 2, "answered": 2}
        assert listed["matching"] == 3
        assert sorted(row["principal"] for row in listed["items"]) == ["ann", "ben", "ben"]
        assert len({row["gateway"] for row in listed["items"]}) == 2
        first = listed["items"][0]
        assert first["kind"] == "herald.v1"
        assert first["address"] == "127.0.0.1"
        states = {(row["principal"], row["state"], tuple(row["rps"])) for row in listed["items"]}
        assert states == {("ann", "live", (rp,)), ("ben", "live", (rp,)), ("ben", "idle", ())}

        assert [row["principal"] for row in sessions(live_gateway, principal="ann")["items"]] == ["ann"]
        assert sorted(row["principal"] for row in sessions(live_gateway, rp=rp)["items"]) == ["ann", "ben"]
        for sort in ("id", "since", "lag"):  # pages of one, put together, are the whole
            found, cursor = [], None
            for _ in range(4):
                page = sessions(live_gateway, sort=sort, limit=1, **({"cursor": cursor} if cursor else {}))
                found += [row["id"] for row in page["items"]]
                cursor = page["next"]
                if cursor is None:
                    break
            assert sorted(found) == sorted(row["id"] for row in listed["items"]), sort

        # One is disconnected for good, wherever it is: by the first gateway, of the second
        of_idle = next(row["id"] for row in listed["items"] if row["state"] == "idle")
        answer = live_gateway.admin.delete(f"/api/v1/sessions/{of_idle}")
        assert answer.json() == {"disconnected": 1, "retry": False, "gateways": {"asked": 2, "answered": 2}}
        assert (await other_ben.frame())["op"] == "closing"
        assert await other_ben.closed() == (4105, "disconnected")
        assert live_gateway.admin.delete(f"/api/v1/sessions/{of_idle}").status_code == 404

        # All readers of an RP are told to connect again
        answer = live_gateway.admin.post(
            "/api/v1/sessions/disconnect", json={"rp": rp, "retry": True, "reason": "spread"}
        )
        assert answer.json() == {"disconnected": 2, "retry": True, "gateways": {"asked": 2, "answered": 2}}
        for client in (ann, ben):
            assert (await client.frame()) == {"op": "closing", "reason": "disconnected", "retry": True}
            assert await client.closed() == (4002, "disconnected")

    told = [
        one for one in admin_events(live_gateway, "domain.admin") if one["type"] == "io.herald.sessions.disconnected"
    ]
    assert [(one["data"]["count"], one["data"]["retry"], one["data"]["by"]) for one in told[-2:]] == [
        (1, False, "root"),
        (2, True, "root"),
    ]
    await eventually(lambda: no_sessions(live_gateway), "all have ended")
    entries = live_gateway.admin.get("/api/v1/audit", params={"action": "session.disconnect", "limit": 2}).json()[
        "items"
    ]
    assert [entry["on"]["kind"] for entry in entries] == ["rp", "session"]


async def test_a_gateway_that_hangs_is_told_as_missing_and_a_dead_one_leaves_no_ghosts(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway(gateways=2)
    rp = live_gateway.create_rp()
    async with Client(live_gateway, gateway=1, subject="hidden"):
        hanging = live_gateway.gateway_process(1)
        hanging.suspend()
        try:

            async def one_answers() -> bool:  # in time
                return bool(sessions(live_gateway)["gateways"] == {"asked": 2, "answered": 1})

            await eventually(one_answers, "the hanging gateway is told as missing")
            assert sessions(live_gateway)["matching"] == 0
            assert live_gateway.admin.delete("/api/v1/sessions/nowhere-1").status_code == 503, (
                "the hanging one may have it"
            )
        finally:
            hanging.resume()

        async def seen() -> bool:
            return [row["principal"] for row in sessions(live_gateway)["items"]] == ["hidden"]

        await eventually(seen, "the gateway that goes on answers again")
        live_gateway.kill_gateway(1)

        async def alone() -> bool:
            return bool(sessions(live_gateway)["gateways"] == {"asked": 1, "answered": 1})

        await eventually(alone, "the killed gateway is gone")
        assert sessions(live_gateway)["items"] == []

    act(live_gateway, rp, "pause")
    live_gateway.start_gateway(1)
    async with Client(live_gateway, gateway=1) as publisher:
        assert await publisher.refused("publish", rp=rp, event=event("x")) == "paused", "a pause outlives gateways"


async def test_slow_and_streaming_sessions_are_shown_and_let_go(live_gateway: LiveGateway, rp: str) -> None:
    """A reader that takes nothing is the first by lag, with what waits for it; it is cut all the same."""
    writer = await stalled_reader(live_gateway, rp)
    try:
        big = {"pad": "x" * 200_000}
        for number in range(30):
            await asyncio.to_thread(live_gateway.publish, rp, 1, data=big, prefix=f"big{number}")

        async def slow() -> bool:
            rows = await asyncio.to_thread(lambda: sessions(live_gateway, rp=rp, sort="lag")["items"])
            return bool(rows) and rows[0]["state"] == "stalled" and rows[0]["waiting_bytes"] > 0

        async def ends(method: str, which: str, **more: Any) -> bool:
            """Whether one session is ended; a gateway that does not answer in time may be asked again."""
            answer = live_gateway.admin.request(method, f"/api/v1/sessions/{which}", **more)
            return answer.status_code != 503 and bool(answer.json()["disconnected"] == 1)

        async with live_gateway.ahttp("ann") as http, http.stream("GET", f"/api/v1/rps/{rp}/stream") as stream:
            await eventually(slow, "it is shown as stalled")
            rows = sessions(live_gateway, rp=rp, sort="lag")["items"]
            assert [row["kind"] for row in rows] == ["herald.v1", "sse"]
            assert rows[0]["lag"] > rows[1]["lag"] == 0
            seen_by_viewer = viewer_rows(live_gateway, rp)
            assert [row["id"] for row in seen_by_viewer] == [row["id"] for row in rows]
            assert all("address" not in row for row in seen_by_viewer)

            await eventually(partial(ends, "post", "disconnect", json={"principal": "ann"}), "the stream is ended")
            text = await asyncio.wait_for(stream.aread(), WITHIN_S)
            assert b'event: closing\ndata: {"reason":"disconnected","retry":false}' in text
        await eventually(partial(ends, "delete", rows[0]["id"]), "the stalled session is ended")

        async def gone() -> bool:
            return not sessions(live_gateway, rp=rp)["items"]

        await eventually(gone, "the one that takes nothing is cut")
    finally:
        writer.close()


def viewer_rows(live_gateway: LiveGateway, rp: str) -> list[dict[str, Any]]:
    reading = {"rps": ["*"], "ops": ["describe", "subscribe", "history"]}
    with live_gateway.http("vera", admin=True, scopes=[reading]) as viewer:
        answer = viewer.get("/api/v1/sessions", params={"rp": rp, "sort": "lag"})
        assert answer.status_code == 200, answer.text
        refused = viewer.post("/api/v1/sessions/disconnect", json={"principal": "ann"})
        assert refused.status_code == 403
        return list(answer.json()["items"])


async def stalled_reader(live_gateway: LiveGateway, rp: str) -> asyncio.StreamWriter:
    """A WebSocket that subscribes and then reads nothing more."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", live_gateway.port()))
    reader, writer = await asyncio.open_connection(sock=made, limit=4096)
    key = base64.b64encode(os.urandom(16)).decode()
    writer.write(
        f"GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: herald.v1\r\n"
        f"Authorization: Bearer {live_gateway.token('slow')}\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    text = json.dumps({"op": "subscribe", "id": 1, "rp": rp}).encode()
    mask = b"\0\0\0\0"
    writer.write(struct.pack(">BB", 0x81, 0x80 | len(text)) + mask + text)
    await reader.readuntil(b"cursor")
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    return writer


async def test_a_trimmed_history_is_a_gap_for_who_is_behind_and_nothing_for_others(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(history={"max_events": 1000})
    live_gateway.publish(rp, 10)
    log = live_gateway.admin.get(f"/api/v1/rps/{rp}/events", params={"after": "earliest"}).json()
    epoch = log["epoch"]
    async with Client(live_gateway, subject="root", admin=True) as live:
        await live.ok("subscribe", rp=rp)
        durable = live_gateway.admin.post(f"/api/v1/rps/{rp}/subscriptions", json={"from": "earliest"}).json()

        done = act(live_gateway, rp, "trim", before=f"{epoch}:4", reason="wrong readings")
        assert done == {"removed": 4, "epoch": epoch, "first": 5, "offset": 10}

        at_it = pull(live_gateway, rp, f"{epoch}:4")
        assert (at_it["recovered"], [one["id"] for one in at_it["events"]]) == (True, [f"e-{n}" for n in range(5, 11)])
        behind = pull(live_gateway, rp, f"{epoch}:1")
        assert (behind["recovered"], behind["gap"]["from"], behind["gap"]["to"]) == (False, 2, 4)
        waiting = live_gateway.admin.get(f"/api/v1/subscriptions/{durable['id']}/events").json()
        assert (waiting["gap"]["from"], waiting["gap"]["to"]) == (1, 4)
        async with Client(live_gateway, subject="root", admin=True) as resuming:
            answer = await resuming.ok("subscribe", rp=rp, begin=f"{epoch}:2")
            assert answer["recovered"] is False
            gap = await resuming.frame()
            assert (gap["op"], gap["from"], gap["to"]) == ("gap", 3, 4)
            assert [one["offset"] for one in await resuming.events(6)] == list(range(5, 11))

        done = act(live_gateway, rp, "trim", before="all")
        assert done == {"removed": 6, "epoch": epoch, "first": 11, "offset": 10}
        assert pull(live_gateway, rp, "earliest")["events"] == []
        behind = pull(live_gateway, rp, f"{epoch}:0")
        assert (behind["recovered"], behind["gap"]["from"], behind["gap"]["to"]) == (False, 1, 10)
        assert act(live_gateway, rp, "trim", before="all")["removed"] == 0, "repeating it changes nothing"

        live_gateway.publish(rp, 1, prefix="next")
        (following,) = await live.events(1)  # who is at the front is told nothing but the next event
        assert (following["offset"], following["event"]["id"]) == (11, "next-1")
        assert pull(live_gateway, rp, f"{epoch}:10")["recovered"] is True

        for wrong in ("aaaaaaaa:1", f"{epoch}:12"):
            refused = live_gateway.admin.post(f"/api/v1/rps/{rp}/trim", json={"before": wrong})
            assert (refused.status_code, code_of(refused)) == (400, "invalid-cursor")

    reported = [
        one["data"] for one in admin_events(live_gateway, f"{rp}.admin") if one["type"] == "io.herald.history.trimmed"
    ]
    assert [(one["removed"], one["first"], one["next"], one["by"], one["reason"]) for one in reported] == [
        (4, 5, 11, "root", "wrong readings"),
        (6, 11, 11, "root", ""),
    ]
    entries = live_gateway.admin.get("/api/v1/audit", params={"on": rp, "action": "rp.trim"}).json()["items"]
    assert [entry["details"]["removed"] for entry in entries] == [6, 4]


def test_the_command_does_what_the_interface_does(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(name="operated")
    live_gateway.publish(rp, 3)

    def herald(*arguments: str) -> dict[str, Any]:
        command = [*arguments, "--url", live_gateway.url(), "--token", live_gateway.token("root", admin=True), "--json"]
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0, result.output
        shown: dict[str, Any] = json.loads(result.stdout) if result.stdout else {}
        return shown

    assert herald("rp", "pause", "operated", "--reason", "why not")["paused"]["reason"] == "why not"
    assert herald("rp", "resume", "operated")["paused"] is None
    assert herald("rp", "trim", "operated", "--before", "all", "--yes")["removed"] == 3
    assert herald("session", "disconnect", "--principal", "nobody")["disconnected"] == 0
    assert herald("session", "list", "--principal", "nobody") == {}


def pull(live_gateway: LiveGateway, rp: str, after: str) -> dict[str, Any]:
    found: dict[str, Any] = live_gateway.admin.get(f"/api/v1/rps/{rp}/events", params={"after": after}).json()
    return found
