"""The administrative interface served by real gateways: a directory of names through the loss of its gateway, samples of what
real clients do, and what is answered to whom."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from admin_rp.catalogue import CATALOGUE, etag, exported
from client.examples.keep_names import keep
from tests.admin_rp.proving import followed, validate
from tests.gateway.client import Client
from tests.gateway.server import PLAIN, LiveGateway, Prepared


@pytest.fixture(scope="module")
def live_gateway(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """Two gateways."""
    with LiveGateway(tmp_path_factory.mktemp("admin") / "var", prepared, gateways=2) as running:
        yield running
        assert "Traceback" not in running.log, running.log[-3000:]


def read_after(live_gateway: LiveGateway, at: str, cursor: str = "earliest") -> list[dict[str, Any]]:
    """The events at an administrative RP after a cursor."""
    found: list[dict[str, Any]] = []
    while True:
        answer = live_gateway.admin.get(f"/api/v1/rps/{at}/events", params={"after": cursor, "limit": 1000}).json()
        if not answer["events"]:
            return found
        found, cursor = found + answer["events"], answer["cursor"]


def told(live_gateway: LiveGateway, at: str, kind: str) -> list[dict[str, Any]]:
    """The data of all events of a type at an administrative RP, read as any client does."""
    found = read_after(live_gateway, at)
    for event in found:
        validate(event, at)
    return [event["data"] for event in found if event["type"] == f"io.herald.{kind}"]


def names_of(live_gateway: LiveGateway) -> tuple[dict[str, Any], str]:
    lines = [json.loads(line) for line in live_gateway.admin.get("/api/v1/admin/names").text.splitlines()]
    return {row["id"]: row for row in lines[:-1]}, lines[-1]["cursor"]


async def until(holds: Callable[[], bool], about: str) -> None:
    """Wait for a condition without holding up this event loop."""
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110 - another process's state
            await asyncio.sleep(0.02)


@pytest.mark.long
async def test_a_file_of_names_is_kept_current_through_the_loss_of_its_gateway(
    live_gateway: LiveGateway, tmp_path: Path
) -> None:
    path = tmp_path / "names.json"

    def shown() -> dict[str, Any]:
        return json.loads(path.read_text())["names"] if path.exists() else {}

    def create(name: str) -> str:
        return live_gateway.create_rp(name=name)

    kept, gone = await asyncio.to_thread(create, "kept"), await asyncio.to_thread(create, "gone")
    keeper = asyncio.create_task(keep(live_gateway.url(1), live_gateway.token("root", admin=True), path))
    try:
        await until(lambda: {kept, gone} <= shown().keys(), "exported")
        later = await asyncio.to_thread(create, "later")
        await asyncio.to_thread(
            live_gateway.admin.patch, f"/api/v1/rps/{kept}", json={"title": "Roof", "name": "renamed"}
        )
        await asyncio.to_thread(live_gateway.admin.delete, f"/api/v1/rps/{gone}")
        await until(lambda: gone not in shown() and shown().get(kept, {}).get("title") == "Roof", "followed")
        await asyncio.to_thread(live_gateway.kill_gateway, 1)
        meanwhile = await asyncio.to_thread(create, "meanwhile")  # at the other gateway
        await asyncio.to_thread(live_gateway.admin.delete, f"/api/v1/rps/{later}")
        live_gateway.spawn_gateway(1)  # by this thread: a child dies with the thread that made it
        await asyncio.to_thread(live_gateway.wait_gateway, 1)
        await until(lambda: meanwhile in shown() and later not in shown(), "caught up")
        real, _ = await asyncio.to_thread(names_of, live_gateway)
        assert shown() == real
        assert real[kept]["name"] == "/localhost/renamed/"
    finally:
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)
    assert not keeper.cancelled() or json.loads(path.read_text())["cursor"]
    keeper = asyncio.create_task(
        keep(live_gateway.url(1), live_gateway.token("root", admin=True), path)
    )  # the next process goes on
    try:
        newest = await asyncio.to_thread(create, "newest")
        await until(lambda: newest in shown(), "went on")
    finally:
        keeper.cancel()
        await asyncio.gather(keeper, return_exceptions=True)


async def test_what_clients_do_is_sampled_within_a_second_or_two_while_somebody_looks(
    live_gateway: LiveGateway,
) -> None:
    rp = await asyncio.to_thread(live_gateway.create_rp)
    admin = f"{rp}.admin"
    async with Client(live_gateway, gateway=1, subject="root", admin=True) as console, Client(live_gateway) as reader:
        await console.ask("subscribe", rp=admin)
        await console.ask("subscribe", rp="domain.admin")
        before = (await asyncio.to_thread(live_gateway.admin.get, f"/api/v1/rps/{rp}/snapshot")).json()
        await reader.ask("subscribe", rp=rp)
        await asyncio.to_thread(live_gateway.publish, rp, 30)

        def sums() -> tuple[int, int, int]:
            rows = told(live_gateway, admin, "load.sampled")
            return tuple(sum(row[name] for row in rows) for name in ("events_in", "deliveries", "joined"))

        await until(lambda: sums() == (30, 30, 1), "sampled")
        (changed,) = await asyncio.to_thread(told, live_gateway, admin, "sessions.changed")
        assert changed["who"] == [{"principal": "tester", "client": "herald.v1", "joined": 1, "left": 0}]
        log = await asyncio.to_thread(read_after, live_gateway, admin, before["cursor"])
        after = (await asyncio.to_thread(live_gateway.admin.get, f"/api/v1/rps/{rp}/snapshot")).json()
        state = followed("rp", before, log)
        assert state["load"].keys() == after["state"]["load"].keys()
        assert sum(row["readings"] for row in state["load"].values()) == 1
        assert (state["history"]["next"], state["history"]["epoch"]) == (31, after["state"]["history"]["epoch"])

        def hot() -> bool:
            return any(
                one["rp"] == rp for row in told(live_gateway, "domain.admin", "load.sampled") for one in row["hot"]
            )

        await until(hot, "the domain's sample names it")
    snapshot = (await asyncio.to_thread(live_gateway.admin.get, "/api/v1/admin/snapshot")).json()["state"]
    assert len(snapshot["gateways"]) >= 2
    assert snapshot["redis"]["used_bytes"] > 0


def test_a_gateway_that_stops_in_order_is_off_the_list_at_once(live_gateway: LiveGateway) -> None:
    live_gateway.terminate_gateway(1)
    live_gateway.wait_stopped(1)
    assert [row["reason"] for row in told(live_gateway, "domain.admin", "gateway.lost")][-1] == "stopped"
    live_gateway.spawn_gateway(1)


def test_the_catalogue_is_served_with_a_tag_and_needs_somebody_known(live_gateway: LiveGateway) -> None:
    first = live_gateway.admin.get("/api/v1/admin/catalogue")
    assert first.content == exported()
    assert first.json()["types"].keys() == CATALOGUE.keys()
    again = live_gateway.admin.get("/api/v1/admin/catalogue", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert httpx.get(live_gateway.url() + "/api/v1/admin/catalogue", **PLAIN).status_code == 401


def test_the_catalogue_is_compressed_and_kept_for_good_at_the_address_that_names_it(live_gateway: LiveGateway) -> None:
    path = f"/api/v1/admin/catalogue?v={etag()}"
    plain = live_gateway.admin.get(path, headers={"Accept-Encoding": "identity"})
    packed = live_gateway.admin.get(path, headers={"Accept-Encoding": "br, gzip"})
    assert plain.content == packed.content == exported()
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(exported()) / 5
    assert plain.headers["etag"] != packed.headers["etag"]
    assert {plain.headers["vary"], packed.headers["vary"]} == {"Accept-Encoding"}
    assert "immutable" in packed.headers["cache-control"]
    assert "private" in packed.headers["cache-control"]
    for other in ("/api/v1/admin/catalogue", "/api/v1/admin/catalogue?v=older"):
        assert "immutable" not in live_gateway.admin.get(other).headers["cache-control"]
    refusing = live_gateway.admin.get(path, headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in refusing.headers


def test_a_snapshot_is_for_whoever_may_read_the_administrative_rp(live_gateway: LiveGateway) -> None:
    with live_gateway.http("ann") as ann, live_gateway.http("ben") as ben:
        rp = ann.post("/api/v1/rps", json={"name": "anns"}).json()["id"]
        assert ann.get(f"/api/v1/rps/{rp}/snapshot").json()["state"]["rp"]["id"] == rp
        assert ann.get("/api/v1/rps/localhost/anns//snapshot").status_code in (200, 404)
        assert ben.get(f"/api/v1/rps/{rp}/snapshot").status_code == 403
        assert ann.get(f"/api/v1/rps/{'a' * 26}/snapshot").status_code == 404
        assert ann.get(f"/api/v1/rps/{rp}.admin/snapshot").status_code == 404
        for path in ("/api/v1/admin/snapshot", "/api/v1/admin/names"):
            assert ann.get(path).status_code == 403
