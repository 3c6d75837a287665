"""The audit at the edge: who is refused on any binding is recorded, a flood of it costs a few rows, every request has an id."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result
from herald.commands import cli
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from demo.harness.servers import ROOT, wait_for
from eventing.audit.refusals import Refusals
from eventing.core.errors import Forbidden
from eventing.core.request_origin import Origin
from tests.cpu_time import cpu_time
from tests.gateway.client import Client
from tests.gateway.raw import Raw
from tests.gateway.server import PLAIN, LiveGateway, Prepared, environment, event

NOBODY: list[dict[str, Any]] = []


@pytest.fixture(scope="module")
def live_gateway(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """An edge of this module's own: elsewhere so many strangers are refused that they are not told apart any more."""
    with LiveGateway(tmp_path_factory.mktemp("audit") / "var", prepared) as running:
        yield running
        assert "Traceback" not in running.log


def entries(live_gateway: LiveGateway, **query: Any) -> list[dict[str, Any]]:
    """The entries that `query` asks for, oldest first, as many as one page holds."""
    answer = live_gateway.admin.get("/api/v1/audit", params={"order": "oldest", "limit": 500, **query})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


def refused(live_gateway: LiveGateway, who: str, count: int) -> list[dict[str, Any]]:
    """The refusals of `who`, as soon as there are `count` of them."""
    query = {"who": who, "outcome": "refused"}
    return wait_for(
        lambda: found if len(found := entries(live_gateway, **query)) >= count else [], 60, about=f"{count} refusals"
    )


async def test_refusals_of_every_binding_are_recorded_with_who_and_what(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(policy=NOBODY)
    who = f"eve-{rp[:8]}"
    with live_gateway.http(who, jti="token-of-eve") as http:
        assert http.post(f"/api/v1/rps/{rp}/events", json={}).status_code == 403
        assert http.get(f"/api/v1/rps/{rp}/events").status_code == 403
        assert http.get(f"/api/v1/rps/{rp}/stream").status_code == 403
        assert http.patch(f"/api/v1/rps/{rp}", json={"title": "mine"}).status_code == 403
    async with Client(live_gateway, subject=who, jti="token-of-eve") as client:
        assert await client.refused("publish", rp=rp, event=event("a")) == "forbidden"
        assert await client.refused("subscribe", rp=rp) == "forbidden"
        assert await client.refused("renew", rp=rp) == "forbidden"
    found = refused(live_gateway, who, 7)
    assert sorted((entry["via"], entry["action"]) for entry in found) == [
        ("api", "history"),
        ("api", "publish"),
        ("api", "rp.update"),
        ("api", "subscribe"),
        ("websocket", "publish"),
        ("websocket", "rp.renew"),
        ("websocket", "subscribe"),
    ]
    for entry in found:
        assert entry["on"] == {"kind": "rp", "id": rp}
        assert (entry["token_id"], entry["issuer"]) == ("token-of-eve", "localhost")
        assert entry["problem"] == "urn:herald:problem:forbidden"
        assert entry["address"] == "127.0.0.1"
        assert entry["reason"].endswith(".")
        assert entry["request_id"]


async def test_strangers_are_recorded_by_their_address_and_never_with_what_they_showed(
    live_gateway: LiveGateway,
) -> None:
    rp = live_gateway.create_rp()
    garbage = "a-token-that-is-none"
    before = entries(live_gateway, order="newest", limit=1)[0]["id"]
    bearer = {"Authorization": f"Bearer {garbage}"}
    async with httpx.AsyncClient(base_url=live_gateway.url(), **PLAIN) as http:
        await http.get(f"/api/v1/rps/{rp}/events", headers=bearer)
        await http.get(f"/api/v1/rps/{rp}/events?access_token={garbage}")
        await http.get("/api/v1/rps", headers=bearer)
    with pytest.raises(InvalidStatus):
        await connect(live_gateway.ws_url(access_token=garbage), proxy=None)

    def found() -> list[dict[str, Any]]:
        return entries(live_gateway, after=before, outcome="refused", who="127.0.0.1")

    wanted = {"history", "rp.list", "connect"}
    wait_for(lambda: wanted <= {entry["action"] for entry in found()}, about="the refusals are recorded")
    recorded = found()
    assert garbage not in json.dumps(recorded)
    assert {entry["token_id"] for entry in recorded} == {None}


async def test_a_flood_of_refusals_is_two_entries_and_its_count_survives_a_stop(live_gateway: LiveGateway) -> None:
    rp, sent = live_gateway.create_rp(policy=NOBODY), 3000
    frame = json.dumps({"op": "publish", "id": 1, "rp": rp, "event": event("a")})
    async with Client(live_gateway, subject="flood") as client:
        for _ in range(sent):
            await client.ws.send(frame)
        for _ in range(sent):
            answer = await client.frame()
            assert answer["op"] == "error", answer
    assert len(refused(live_gateway, "flood", 1)) == 1
    live_gateway.terminate_gateway()
    live_gateway.wait_stopped()
    live_gateway.start_gateway()
    found = entries(live_gateway, who="flood")
    assert len(found) in (1, 2)  # one, where the first was written only when all had come
    assert sum(entry["count"] for entry in found) == sent


def test_a_flood_costs_little() -> None:
    """100,000 equal refusals a second must leave the event loop to others: a fifth of a core here, with room for a slow one."""
    gathered, origin, error = Refusals(), Origin("192.0.2.1", "r", "api"), Forbidden("No.")
    gathered.flushed = True
    with cpu_time() as took:
        for _ in range(20_000):
            gathered.note(action="publish", error=error, on=("rp", "a" * 26), origin=origin)
    assert took.seconds / 20_000 < 10e-6


# Request ids


@pytest.mark.parametrize(
    "path", ["/api/v1/rps", "/livez", "/.well-known/jwks.json", "/login", "/api/v1/rps/x/events", "/nowhere"]
)
def test_a_clients_request_id_is_answered_whoever_answers(live_gateway: LiveGateway, path: str) -> None:
    answer = httpx.get(live_gateway.url() + path, headers={"X-Request-Id": "my.request_1-a"}, **PLAIN)
    assert answer.headers.get_list("x-request-id") == ["my.request_1-a"]


def test_a_request_without_one_gets_one_of_its_own(live_gateway: LiveGateway) -> None:
    given = [httpx.get(live_gateway.url() + "/livez", **PLAIN).headers["x-request-id"] for _ in range(3)]
    assert len(set(given)) == 3
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,64}", one) for one in given)


@pytest.mark.parametrize("bad", ["", "x" * 65, "a b", "a\tb", "<script>", "\xff"])
def test_a_request_id_that_would_garble_a_log_is_replaced(live_gateway: LiveGateway, bad: str) -> None:
    with Raw(live_gateway) as raw:
        raw.send(b"GET /livez HTTP/1.1\r\nHost: x\r\nX-Request-Id: " + bad.encode("latin-1") + b"\r\n\r\n")
        given = raw.answer().headers["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]+-[0-9a-f]+", given)


async def test_a_websocket_handshake_and_its_acts_carry_the_id(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    bearer = {"Authorization": f"Bearer {live_gateway.token('root', admin=True)}", "X-Request-Id": f"ws-{rp}"}
    async with connect(live_gateway.ws_url(), additional_headers=bearer, proxy=None) as socket:
        assert socket.response is not None
        assert socket.response.headers["X-Request-Id"] == f"ws-{rp}"
        await socket.send(json.dumps({"op": "renew", "id": 1, "rp": rp}))
        assert json.loads(await socket.recv())["op"] == "ok"
    renewed = entries(live_gateway, action="rp.renew", on=rp)[0]
    assert (renewed["request_id"], renewed["via"], renewed["who"]) == (f"ws-{rp}", "websocket", "root")


def test_an_act_carries_the_id_of_its_request(live_gateway: LiveGateway) -> None:
    with live_gateway.http("ann") as http:
        answer = http.post("/api/v1/rps", json={}, headers={"X-Request-Id": "create-1"})
    created = entries(live_gateway, action="rp.create", on=answer.json()["id"])[0]
    assert (created["request_id"], created["via"], created["address"]) == ("create-1", "api", "127.0.0.1")
    assert (created["who"], created["outcome"], created["count"]) == ("ann", "ok", 1)


# The export

FILL = """
import sys, django
django.setup()
from eventing.audit.services import AuditAct, audit_record_all
for turn in range(int(sys.argv[1])):
    audit_record_all([AuditAct("x.fill", who="filler", details={"text": "x" * 1800}) for _ in range(1000)])
"""


@pytest.mark.long
def test_an_export_holds_everything_in_order_in_bounded_memory_while_entries_are_added(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway(records=False)  # whose memory is not the export's
    rp = live_gateway.create_rp()
    env = environment(live_gateway.data_dir, port=live_gateway.port())
    subprocess.run([sys.executable, "-c", FILL, "20"], env=env, cwd=ROOT, check=True, timeout=240)
    with live_gateway.http("root", admin=True) as http:  # what a gateway needs once for either is not counted
        http.post(f"/api/v1/rps/{rp}/renew").raise_for_status()
        http.get("/api/v1/audit/export", params={"after": 19_500}).raise_for_status()
    before = live_gateway.gateway_process().memory_info().rss
    ids, size, peak = [], 0, before
    with live_gateway.admin.stream("GET", "/api/v1/audit/export", timeout=60) as answer:
        assert answer.status_code == 200
        for number, line in enumerate(answer.iter_lines()):
            ids.append(json.loads(line)["id"])
            size += len(line)
            if number % 1000 == 0:
                with live_gateway.http("root", admin=True) as http:
                    http.post(f"/api/v1/rps/{rp}/renew").raise_for_status()
                peak = max(peak, live_gateway.gateway_process().memory_info().rss)
    assert ids == list(range(1, len(ids) + 1))
    assert size > 40_000_000
    assert peak - before < 20_000_000, "the export is not held in memory"
    assert len(entries(live_gateway, action="rp.renew", on=rp)) >= 8, "acts went on meanwhile"


# `herald audit`


def herald(live_gateway: LiveGateway, *arguments: str, token: str | None = None) -> Result:
    clean: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HERALD_")}
    shown = {"HERALD_URL": live_gateway.url(), "HERALD_TOKEN": token or live_gateway.token("root", admin=True)}
    return CliRunner().invoke(cli, ["audit", *arguments], env={**clean, **shown})


def test_the_command_shows_the_newest_entries_in_order_and_filters(live_gateway: LiveGateway) -> None:
    rps = [live_gateway.create_rp(title=f"t{number}") for number in range(3)]
    # Done ones only: refusals of an earlier test are gathered, and may be written between ours.
    lines = herald(
        live_gateway, "--action", "rp.*", "--outcome", "ok", "--limit", "2", "--since", "1h"
    ).output.splitlines()
    assert [line.split()[4] for line in lines] == rps[1:]
    assert all(line.split()[2:6:3] == ["rp.create", "root"] and "  127.0.0.1  " in line for line in lines)
    shown = herald(live_gateway, "--on", rps[0], "--json").output.splitlines()
    assert [json.loads(line)["on"]["id"] for line in shown] == [rps[0]]
    assert herald(live_gateway, "--on", rps[0], "--outcome", "failed").stdout == ""
    assert herald(live_gateway, "--on", rps[0], "--until", "2026-01-01T00:00").stdout == ""


def test_the_command_says_what_is_wrong_in_a_line(live_gateway: LiveGateway) -> None:
    for arguments in (("--since", "yesterday"), ("--export", "x", "--follow"), ("--outcome", "maybe")):
        assert herald(live_gateway, *arguments).exit_code == 2
    refused_one = herald(live_gateway, token=live_gateway.token("nobody"))
    assert refused_one.exit_code == 1
    assert "administrator" in refused_one.output


def test_the_command_follows(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp()
    arguments = [
        "--on",
        rp,
        "--follow",
        "--json",
        "--url",
        live_gateway.url(),
        "--token",
        live_gateway.token("root", admin=True),
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", "from herald.commands import main; main()", "audit", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "client"), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        assert json.loads(process.stdout.readline())["action"] == "rp.create"
        live_gateway.admin.patch(f"/api/v1/rps/{rp}", json={"title": "new"}).raise_for_status()
        assert json.loads(process.stdout.readline())["action"] == "rp.update"
    finally:
        process.terminate()
        process.wait(10)
        process.stdout.close()


def test_the_command_exports_to_a_file_of_its_owners_that_is_whole_or_not_there(
    live_gateway: LiveGateway, tmp_path: Path
) -> None:
    live_gateway.create_rp()
    file = tmp_path / "audit.jsonl"
    done = herald(live_gateway, "--export", str(file), "--action", "rp.create")
    assert done.exit_code == 0, done.output
    lines = file.read_text().splitlines()
    assert f"{len(lines)} entries" in done.output
    assert {json.loads(line)["action"] for line in lines} == {"rp.create"}
    assert file.stat().st_mode & 0o077 == 0
    file.unlink()
    assert herald(live_gateway, "--export", str(file), token=live_gateway.token("nobody")).exit_code == 1
    assert list(tmp_path.iterdir()) == [], "nothing half-written is left"
    assert herald(live_gateway, "--export", str(tmp_path / "no" / "x")).exit_code == 2
