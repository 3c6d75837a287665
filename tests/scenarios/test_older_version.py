"""An older state of Herald beside this one: data folders pass from one to the other, and two domains exchange events.

The older source tree is taken from the history of the repository and run by the same Python; a checkout without that history skips the
tests. docs/versions.md states what is promised.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.harness.network import Network, NetworkDomain
from demo.harness.servers import ROOT, Domain

pytestmark = [pytest.mark.long, pytest.mark.processes]

OLDER = "6895f1639c12"
"""The oldest commit whose packages are those of today (requirements/run.txt)."""


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The older source tree."""
    found = subprocess.run(["git", "archive", OLDER], cwd=ROOT, capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"the commit {OLDER} is not in the history of this checkout")
    folder = tmp_path_factory.mktemp("older")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # absent before 3.11.4
        archive.extractall(folder)
    return folder


def migrations(root: Path) -> set[str]:
    return {path.stem for app in ("eventing", "portal") for path in (root / app / "migrations").glob("0*.py")}


def published(client: httpx.Client, rp: str, *numbers: int) -> None:
    for number in numbers:
        client.post(f"/api/v1/rps/{rp}/events", json={"n": number}).raise_for_status()


def held(client: httpx.Client, rp: str) -> list[int]:
    events = client.get(f"/api/v1/rps/{rp}/events", params={"after": "earliest"}).raise_for_status().json()["events"]
    return [event["data"]["n"] for event in events]


def written(domain: Domain) -> tuple[str, str]:
    """Use a domain: an RP with a rule and five events, and a durable subscription that has acknowledged two. Returns both."""
    with domain.http(admin=True) as client:
        members: dict[str, Any] = {"name": "kept", "lease_s": 3600, "watch": [{"silence": {"s": 3600}}]}
        rp = client.post("/api/v1/rps", json=members).raise_for_status().json()["id"]
        subscription = client.post(f"/api/v1/rps/{rp}/subscriptions", json={}).raise_for_status().json()["id"]
        published(client, rp, 1, 2)
        cursor = client.get(f"/api/v1/subscriptions/{subscription}/events").raise_for_status().json()["cursor"]
        client.post(f"/api/v1/subscriptions/{subscription}/ack", json={"cursor": cursor}).raise_for_status()
        published(client, rp, 3, 4, 5)
    return rp, subscription


def assert_goes_on(domain: Domain, rp: str, subscription: str) -> None:
    """What `written` left is there, under the same cursors, and the domain takes more."""
    with domain.http(admin=True) as client:
        assert held(client, rp) == [1, 2, 3, 4, 5]
        pending = client.get(f"/api/v1/subscriptions/{subscription}/events").raise_for_status().json()
        assert [event["data"]["n"] for event in pending["events"]] == [3, 4, 5]
        assert client.get("/api/v1/rps/kept").raise_for_status().json()["watch"][0]["silence"] == {"s": 3600}
        published(client, rp, 6)
        assert held(client, rp) == [1, 2, 3, 4, 5, 6]


def test_a_data_folder_of_the_older_one_starts_with_everything_in_it(older: Path, tmp_path: Path) -> None:
    with Domain(tmp_path / "var", root=older) as before:
        left = written(before)
    with Domain(tmp_path / "var") as after:
        assert_goes_on(after, *left)


def test_the_older_one_starts_on_a_data_folder_of_this_one_or_names_what_it_does_not_know(
    older: Path, tmp_path: Path
) -> None:
    with Domain(tmp_path / "var") as newer:
        left = written(newer)
    added = migrations(ROOT) - migrations(older)
    back = Domain(tmp_path / "var", root=older)
    if not added:
        with back:
            assert_goes_on(back, *left)
        return
    assert back.spawn().wait(180) != 0
    assert "was used by a newer Herald" in back.output
    assert any(name in back.output for name in added)
    with Domain(tmp_path / "var") as again:
        assert_goes_on(again, *left)


def test_two_domains_of_different_age_exchange_events(older: Path, tmp_path: Path) -> None:
    network = Network(tmp_path, "ab")
    network.members["a"] = NetworkDomain(tmp_path, "a", root=older)
    with network:
        network.peer("a", "b")
        at_a, at_b = network.replicated_rp("a", "b"), network.replicated_rp("b", "a")
        for rp in (at_a, at_b):
            network.publish(rp, "a", 20)
            network.publish(rp, "b", 20)
            network.converged(rp)
        assert [network.misbehaviour(name) for name in "ab"] == [[], []]
