"""What an operator asks a domain by `herald`: leases, subscriptions, peers, proofs, the domain as it is, tables of reports."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from herald import Client, ConnectionLost, Problem
from herald.commands import cli

from tests.gateway.server import LiveGateway, Prepared

pytestmark = pytest.mark.processes

MADE_WITHIN_S = 60.0


class Operator:
    """An administrator at a terminal; `made` is what there is in the domain (tests/client/operated.py)."""

    def __init__(self, live_gateway: LiveGateway) -> None:
        self.live_gateway = live_gateway
        self.token = live_gateway.token("root", admin=True)
        with live_gateway.python("-m", "tests.client.operated") as process:
            said, _ = process.communicate(timeout=MADE_WITHIN_S)
        self.made: dict[str, str] = json.loads(said)

    def herald(self, *arguments: str, token: str | None = None) -> Result:
        clean = {name: None for name in os.environ if name.startswith("HERALD_")}
        env = {**clean, "HERALD_URL": self.live_gateway.url(), "HERALD_TOKEN": token or self.token}
        return CliRunner().invoke(cli, arguments, env=env)

    def says(self, *arguments: str) -> str:
        result = self.herald(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.says(*arguments, "--json").splitlines()]


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Operator]:
    with LiveGateway(tmp_path_factory.mktemp("operated") / "var", prepared) as live_gateway:
        yield Operator(live_gateway)
        assert "Traceback" not in live_gateway.log, live_gateway.log[-3000:]


def later(item: dict[str, Any], than: dict[str, Any]) -> bool:
    return datetime.fromisoformat(item["expires_at"]) > datetime.fromisoformat(than["expires_at"])


def test_leases_of_every_kind_are_listed_and_renewed(operator: Operator) -> None:
    rp = operator.live_gateway.create_rp(lease_s=60, name="leased/here")
    made = operator.live_gateway.admin.post(f"/api/v1/rps/{rp}/subscriptions", json={"lease_s": 50}).json()
    soon = operator.rows("lease", "list", "--within", "10m")
    assert [(one["kind"], one["id"]) for one in soon] == [("subscription", made["id"]), ("rp", rp)]
    listed = operator.says("lease", "list", "--kind", "rp", "--within", "10m", "--columns", "kind,name,id").split()
    assert listed == ["rp", "/localhost/leased/here/", rp]
    (peer,) = operator.rows("lease", "list", "--kind", "peer")
    assert peer["id"] == operator.made["peer"]

    (renewed,) = operator.rows("lease", "renew", "rp", "leased/here")
    assert renewed["lease"]["granted_s"] == 60, "the granted duration"
    assert later(renewed["lease"], soon[1])
    (renewed,) = operator.rows("lease", "renew", "subscription", made["id"], "--lease-s", "1200")
    assert renewed["lease"]["granted_s"] == 1200
    assert operator.says("lease", "renew", "peer", peer["id"]).startswith(
        f"renewed peer {peer['id']}: 2592000 s, until "
    )
    assert later(operator.rows("peer", "renew", peer["id"])[0]["lease"], peer)
    assert [one["id"] for one in operator.rows("lease", "list", "--within", "10m")] == [rp]

    assert operator.herald("lease", "renew", "peer", "b.test", "--lease-s", "5").exit_code == 2
    gone = operator.herald("lease", "renew", "peer", "nobody.test")
    assert (gone.exit_code, gone.stderr) == (1, "herald: There is no such peer. `herald peer list` shows all peers.\n")
    assert "There are more, which expire later: --limit 10" in operator.herald("lease", "list", "--limit", "1").stderr
    assert operator.herald("lease", "list", "--within", "1s").stderr == "No lease expires by then.\n"
    refused = operator.herald("lease", "list", token=operator.live_gateway.token("ann"))
    assert (refused.exit_code, refused.stdout) == (1, "")


def test_subscriptions_are_listed_the_furthest_behind_first(operator: Operator) -> None:
    rp = operator.live_gateway.create_rp()
    path = f"/api/v1/rps/{rp}/subscriptions"
    first = operator.live_gateway.admin.post(path, json={"from": "now"}).json()["id"]
    operator.live_gateway.publish(rp, 3)
    second = operator.live_gateway.admin.post(path, json={"from": "now"}).json()["id"]
    operator.live_gateway.publish(rp, 2, prefix="more")
    assert [(one["id"], one["lag"]) for one in operator.rows("sub-durable", "list", "--rp", rp)] == [
        (first, 5),
        (second, 2),
    ]
    line, _ = operator.says("sub-durable", "list", "--rp", rp, "--columns", "id,behind,lost,rp").splitlines()
    assert line.split() == [first, "5", "0", rp], "an RP without a name has its id for one"
    narrow = operator.live_gateway.create_rp(history={"max_events": 4})
    operator.live_gateway.admin.post(f"/api/v1/rps/{narrow}/subscriptions", json={}).raise_for_status()
    operator.live_gateway.publish(narrow, 1200)
    assert operator.says("sub-durable", "list", "--rp", narrow, "--columns", "behind,lost").split() == ["1200", "1196"]
    lossy = operator.rows("sub-durable", "list", "--rp", narrow)[0]["id"]
    assert "1,200 behind, 1,196 of them lost" in operator.says("sub-durable", "show", lossy)
    assert len(operator.rows("sub-durable", "list", "--rp", rp, "--sort", "ends", "--limit", "1")) == 1
    assert operator.herald("sub-durable", "list", "--owner", "nobody").stderr.startswith("There are no subscriptions.")


def test_what_is_shared_with_a_peer_says_who_lacks_how_much(operator: Operator) -> None:
    peer, rp = operator.made["peer"], operator.made["rp"]
    (link,) = operator.rows("peer", "links", peer)
    assert (link["rp"], link["backlog"], link["ahead"]) == (rp, 4, 0)
    columns = "rp-id,link,peer-lacks,lacks-here"
    assert operator.says("peer", "links", peer, "--columns", columns).split() == [rp, link["link"], "4", "0"]


def test_a_proof_of_two_stories_is_listed_shown_and_kept(operator: Operator, tmp_path: Path) -> None:
    peer, rp, file = operator.made["peer"], operator.made["rp"], tmp_path / "proof.json"
    (listed,) = operator.rows("misbehaviour", "evidence", "--domain", peer)
    assert (listed["origin"], listed["rp"], listed["carrier"]) == (peer, rp, "c.test")
    assert operator.says("misbehaviour", "evidence").split()[:2] == [peer, rp]
    said = operator.says("misbehaviour", "evidence", listed["digest"], "--save", str(file))
    assert said.startswith(f"{peer} signed two seals of its feed ")
    assert f"The proof is in {file}; anybody can verify it without this domain." in said
    kept = json.loads(file.read_text())
    assert kept == operator.rows("misbehaviour", "evidence", listed["digest"])[0]
    assert len({seal["signature"] for seal in kept["seals"]}) == 2
    assert operator.herald("misbehaviour", "evidence", "--domain", "c.test").stderr.startswith("There are no proofs")
    assert operator.herald("misbehaviour", "evidence", "--save", str(file)).exit_code == 2
    nowhere = operator.herald("misbehaviour", "evidence", listed["digest"], "--save", str(tmp_path / "no" / "x"))
    assert (nowhere.exit_code, nowhere.stderr.endswith("cannot be written: No such file or directory.\n")) == (2, True)


def test_the_domain_as_it_is_and_all_names_are_valid_at_a_cursor(operator: Operator) -> None:
    (found,) = operator.rows("admin", "snapshot")
    assert found["state"]["peers"].keys() == {operator.made["peer"]}
    said = operator.says("admin", "snapshot")
    for part in (
        "localhost, Herald ",
        "gateway ",
        "peer          b.test active, 4 events wait",
        "quarantine    b.test since ",
    ):
        assert f"\n{part}" in f"\n{said}"
    assert "\nfollow changes: herald sub domain.admin --from " in said

    rp = operator.live_gateway.create_rp(name="as/it/is", title="As it is")
    operator.live_gateway.publish(rp, 3)
    said = operator.says("admin", "snapshot", "as/it/is")
    assert said.startswith("/localhost/as/it/is/  As it is\n3 events held, offsets 1 to 3, ")
    assert f"\nfollow changes: herald sub {rp}.admin --from " in said

    *rows, end = operator.rows("admin", "names")
    assert {"id": rp, "name": "/localhost/as/it/is/", "title": "As it is", "home": "localhost", "version": 1} in rows
    assert list(end) == ["cursor"]
    cursor = operator.herald("admin", "names").stderr.rsplit(maxsplit=1)[1]
    operator.live_gateway.admin.delete(f"/api/v1/rps/{rp}").raise_for_status()
    changed = operator.live_gateway.admin.get("/api/v1/rps/domain.admin/events", params={"after": cursor}).json()[
        "events"
    ]
    assert [one["data"]["rp"]["id"] for one in changed if one["type"] == "io.herald.rp.deleted"] == [rp]


def test_an_overlay_is_founded_described_and_left(operator: Operator) -> None:
    assert "takes part in no overlay" in operator.says("overlay", "status")
    refused = operator.herald("overlay", "join", "nobody.example")
    assert refused.exit_code == 1
    assert "is no peer" in refused.stderr
    founded = operator.says("overlay", "found")
    assert "a founder" in founded
    assert "1 domains, 0 links" in founded
    (own,) = operator.rows("overlay", "map")
    assert operator.says("overlay", "map", "--search", "nothing-like-it") == ""
    assert own["name"] in operator.says("overlay", "explain", own["name"])
    assert operator.herald("overlay", "explain", "b.example").exit_code == 1
    assert operator.rows("overlay", "links") == []
    assert operator.herald("overlay", "found").exit_code == 1, "it takes part in one already"
    assert "no overlay" in operator.says("overlay", "leave", "--yes")


def test_a_table_comes_whole_in_chunks(operator: Operator, tmp_path: Path) -> None:
    """All of a table, as CSV and as Parquet, by the library and by the command; a refusal is a Problem, not a file."""
    run, file = operator.made["run"], tmp_path / "table.csv"
    csv = asyncio.run(downloaded(operator.live_gateway.url(), operator.token, run, "principals", "csv"))
    assert csv.decode().splitlines() == ["principal,operations", *(f"'=name{number},{number}" for number in range(7))]
    parquet = asyncio.run(downloaded(operator.live_gateway.url(), operator.token, run, "principals", "parquet"))
    table = pq.read_table(pa.BufferReader(parquet))
    assert table["principal"].to_pylist() == [f"=name{number}" for number in range(7)]
    with pytest.raises(Problem) as caught:
        asyncio.run(downloaded(operator.live_gateway.url(), operator.token, run, "nothing", "csv"))
    assert (caught.value.code, caught.value.status) == ("not-found", 404)

    assert operator.herald("report", "download", run, "principals").stdout_bytes == csv
    operator.says("report", "download", run, "principals", "-o", str(file))
    assert file.read_bytes() == csv
    assert operator.herald("report", "download", run, "nothing", "-o", str(tmp_path / "none")).exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


async def downloaded(url: str, token: str, run: str, table: str, form: str) -> bytes:
    async with Client(url, token=token) as client:
        return b"".join([chunk async for chunk in client.reports.download(run, table, form)])


class Vanishing(BaseHTTPRequestHandler):
    """Begins to answer, and is gone."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"principal,operations\n")

    def log_message(self, *_: Any) -> None:
        """Not on the terminal."""


def test_a_table_that_breaks_off_is_no_file(tmp_path: Path) -> None:
    with HTTPServer(("127.0.0.1", 0), Vanishing) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(ConnectionLost):
            asyncio.run(downloaded(url, "t", "1", "principals", "csv"))
        arguments = ["report", "download", "1", "principals", "-o", str(tmp_path / "table.csv"), "--url", url]
        result = CliRunner().invoke(cli, arguments)
        server.shutdown()
    assert (result.exit_code, "was lost" in result.stderr) == (3, True)
    assert list(tmp_path.iterdir()) == []


def test_an_intake_is_made_with_a_secret_listed_rotated_renewed_and_ended(operator: Operator, tmp_path: Path) -> None:
    rp = operator.live_gateway.create_rp()
    (made,) = operator.rows("intake", "create", rp, "--format", "github", "--title", "releases")
    assert (made["format"], made["signed"], len(made["secret"])) == ("github", True, 64)
    assert made["url"].partition("/hooks/")[2].startswith("hk_")
    (listed,) = operator.rows("intake", "list", rp)
    assert listed["id"] == made["id"]
    assert "url" not in listed
    assert made["id"] in operator.says("lease", "list", "--kind", "intake")
    operator.says("lease", "renew", "intake", made["id"], "--lease-s", "3600")
    file = tmp_path / "secret"
    file.write_text("the-next-secret-of-the-sender\n")
    assert "accepted until" in operator.says("intake", "rotate", made["id"], "--secret-file", str(file))
    assert operator.herald("intake", "create", rp, "--format", "stripe").exit_code == 1, "its secret is the sender's"
    operator.says("intake", "delete", made["id"], "--yes")
    assert "no intakes" in operator.herald("intake", "list", rp).output
