"""Two domains become peers, follow each other's keys, and part: as processes that speak to each other over HTTP."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from click.testing import CliRunner, Result
from herald.commands import cli

from demo.harness.servers import ROOT, wait_for
from eventing.peering.rules.domain_documents import fingerprint_shown
from tests.gateway.server import PLAIN, LiveGateway, Prepared, prepare


class Two(NamedTuple):
    """Two domains."""

    a: LiveGateway
    b: LiveGateway


A, B = "a.test", "b.test"
NOBODY = "http://127.0.0.1:9"  # where nobody listens


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Two]:
    folder = tmp_path_factory.mktemp("peering")
    with (
        LiveGateway(folder / "a", prepared, domain=A) as a,
        LiveGateway(folder / "b", prepare(folder / "of-b"), domain=B) as b,
    ):
        yield Two(a, b)


@pytest.fixture(autouse=True)
def strangers(two: Two) -> Iterator[None]:
    """After each test they do not know each other, whatever it did."""
    yield
    for live_gateway, name in ((two.a, B), (two.b, A)):
        live_gateway.admin.delete(f"/api/v1/peers/{name}")
    for live_gateway, name in ((two.a, B), (two.b, A)):
        live_gateway.admin.delete(f"/api/v1/peers/{name}")


def ask(live_gateway: LiveGateway, path: str, expected: int = 200, **body: Any) -> dict[str, Any]:
    answer = live_gateway.admin.post(f"/api/v1/peers{path}", json=body)
    assert answer.status_code == expected, answer.text
    document: dict[str, Any] = answer.json()
    return document


def add(live_gateway: LiveGateway, other: LiveGateway, expected: int = 201, **stated: Any) -> dict[str, Any]:
    fingerprint = ask(live_gateway, "/look", url=other.url())["fingerprint"]
    return ask(live_gateway, "", expected, url=other.url(), **{"fingerprint": fingerprint, **stated})


def peer(live_gateway: LiveGateway, name: str) -> dict[str, Any]:
    """The peer; empty if there is none."""
    answer = live_gateway.admin.get(f"/api/v1/peers/{name}")
    return answer.json() if answer.status_code == 200 else {}


def both_active(two: Two) -> None:
    add(two.a, two.b)
    assert add(two.b, two.a, 200)["state"] == "active"
    assert peer(two.a, B)["state"] == "active"


def in_domain(live_gateway: LiveGateway, code: str) -> str:
    """Run `code` in a process of the domain, as its worker would; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", f"import django; django.setup()\n{code}"],
        env=live_gateway._env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


GREET = "from eventing.peering.wire.hello import peers_greet; print(peers_greet())"


PROBE = f"""
import time
from eventing.peering.wire.client import PeerError, call
from eventing.peering.selectors.peers import peer_row
for _ in range(100):
    try:
        call(peer_row("{B}").url, "{B}", "/federation/v1/probe", b"", 5)
    except PeerError as error:
        print(error.kind)
        time.sleep(0.1)
    else:
        print("answered")
        break
"""


def herald(live_gateway: LiveGateway, *arguments: str, answer: str = "") -> Result:
    """Run the `herald` command as the domain's administrator."""
    env = {"HERALD_URL": live_gateway.url(), "HERALD_TOKEN": live_gateway.token("root", admin=True)}
    return CliRunner().invoke(cli, arguments, input=answer, env=env)


def test_each_administrator_agrees_and_both_are_active(two: Two) -> None:
    proposed = add(two.a, two.b)
    assert (proposed["state"], proposed["theirs"]) == ("proposed", "waits")
    asked = peer(two.b, A)
    assert (asked["state"], asked["theirs"], asked["url"]) == ("asked", "proposes", two.a.url())
    assert asked["safety_number"] == proposed["safety_number"]
    assert (asked["fingerprint"], asked["own_fingerprint"]) == (proposed["own_fingerprint"], proposed["fingerprint"])
    approved = ask(two.b, f"/{A}/approve", fingerprint=asked["fingerprint_shown"])
    assert (approved["state"], approved["theirs"]) == ("active", "approves")
    assert (peer(two.a, B)["state"], peer(two.a, B)["theirs"]) == ("active", "approves")


def test_adding_each_other_is_agreement_enough(two: Two) -> None:
    both_active(two)
    states = [event["data"]["peer"]["state"] for event in events(two.b) if event["type"].startswith("io.herald.peer.")]
    assert states[0] == "asked"
    assert states[-1] == "active"


def events(live_gateway: LiveGateway) -> list[dict[str, Any]]:
    """What was reported on domain.admin, oldest first."""
    answer = live_gateway.admin.get("/api/v1/rps/domain.admin/events", params={"limit": 1000})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["events"]
    return found


def test_a_fingerprint_that_is_not_the_one_compared_is_refused(two: Two) -> None:
    own = two.a.admin.get("/.well-known/herald").json()["fingerprint"]
    answer = add(two.a, two.b, 409, fingerprint=own)
    assert "somebody intercepts the connection" in answer["detail"]
    assert not peer(two.a, B)
    assert not peer(two.b, A), "and it was not told of anything"


def test_nobody_is_added_unseen(two: Two) -> None:
    ask(two.a, "", 400, url=two.b.url())


def test_suspending_tells_the_other_and_resuming_goes_on(two: Two) -> None:
    both_active(two)
    assert ask(two.a, f"/{B}/suspend", note="under investigation")["state"] == "suspended"
    seen = peer(two.b, A)
    assert (seen["state"], seen["theirs"]) == ("active", "suspends")
    assert ask(two.a, f"/{B}/resume")["state"] == "active"
    seen = peer(two.b, A)
    assert (seen["state"], seen["theirs"]) == ("active", "approves")


def test_removing_tells_the_other_which_asks_no_more(two: Two) -> None:
    both_active(two)
    assert two.a.admin.delete(f"/api/v1/peers/{B}").status_code == 204
    left = peer(two.b, A)
    assert (left["state"], left["theirs"], left["hello"]["next_at"]) == ("proposed", "leaves", None)
    assert in_domain(two.b, GREET).strip() == "0"
    assert not peer(two.a, B)


def test_a_removal_that_nobody_heard_of_is_found_by_the_next_hello(two: Two) -> None:
    both_active(two)
    with sqlite3.connect(two.a.config.data_path / "herald.sqlite3", timeout=60) as database:
        database.execute("DELETE FROM eventing_peer")
    ask(two.b, f"/{A}/resume")  # which changes nothing, and says hello
    left = peer(two.b, A)
    assert (left["state"], left["theirs"]) == ("proposed", "leaves")
    assert not peer(two.a, B), "and does not make it one that asks"


def test_a_hello_that_was_lost_is_sent_again(two: Two) -> None:
    both_active(two)
    address = two.b.url()
    assert two.a.admin.patch(f"/api/v1/peers/{B}", json={"url": NOBODY}).status_code == 200
    suspended = ask(two.a, f"/{B}/suspend")
    assert suspended["hello"]["failures"] == 1
    assert "cannot be reached" in suspended["hello"]["problem"]
    assert peer(two.b, A)["theirs"] == "approves"
    two.a.admin.patch(f"/api/v1/peers/{B}", json={"url": address})
    assert in_domain(two.a, GREET).strip() == "1"
    assert peer(two.b, A)["theirs"] == "suspends"
    now = peer(two.a, B)["hello"]
    assert (now["failures"], now["problem"]) == (0, None)


def test_keys_that_are_rotated_are_told_and_used(two: Two) -> None:
    both_active(two)
    assert two.a.admin.post("/api/v1/keys/rotate", json={"signs_after_s": 0}).status_code == 201
    assert in_domain(two.a, f"{GREET}; print(peers_greet())").split() == ["1", "0"], "new keys are told, once"
    last = [event for event in events(two.b) if event["type"] == "io.herald.peer.rekeyed"][-1]
    assert last["data"]["peer"]["name"] == A
    assert ask(two.a, f"/{B}/suspend")["hello"]["failures"] == 0, "a hello that the new key has signed"
    assert peer(two.b, A)["theirs"] == "suspends"


def test_a_key_that_signs_before_it_was_told_is_fetched(two: Two) -> None:
    both_active(two)
    assert two.a.admin.post("/api/v1/keys/rotate", json={"signs_after_s": 0}).status_code == 201
    found = in_domain(two.a, PROBE).split()
    assert found[0] == "busy", "it is told to come again: that stops no delivery"
    assert found[-1] == "answered"


def test_a_domain_that_cannot_be_reached_is_added_by_its_document(two: Two, tmp_path: Path) -> None:
    """A has no way to B; B reaches A, and that is enough."""
    path = tmp_path / "b.json"
    path.write_text(herald(two.b, "peer", "document").stdout)
    fingerprint = two.b.admin.get("/.well-known/herald").json()["fingerprint"]
    added = herald(two.a, "peer", "add", NOBODY, "--document", str(path), "--fingerprint", fingerprint)
    assert added.exit_code == 0, added.stderr
    assert f"Waiting for {B}'s administrator, who runs: herald peer approve {A}" in added.stdout
    assert "failed and is retried" in added.stdout
    assert not peer(two.b, A)
    assert add(two.b, two.a)["state"] == "active"
    assert peer(two.a, B)["state"] == "active"


def test_the_commands_read_aloud(two: Two) -> None:
    """Two administrators on the telephone."""
    seen = herald(two.a, "peer", "add", two.b.url(), answer="y\n")
    fingerprint = two.b.admin.get("/.well-known/herald").json()["fingerprint"]
    assert fingerprint_shown(fingerprint) in seen.stderr
    assert "safety number" in seen.stderr
    assert f"Waiting for {B}'s administrator, who runs: herald peer approve {A}" in seen.stdout
    assert f"{A} asks to be a peer" in herald(two.b, "peer", "show", A).stdout
    refused = herald(two.b, "peer", "approve", A, "--fingerprint", "abcd efgh")
    assert refused.exit_code == 1
    assert "somebody intercepts the connection" in refused.stderr
    said_no = herald(two.b, "peer", "approve", A, answer="n\n")
    assert (said_no.exit_code, "Nothing was changed" in said_no.stderr) == (2, True)
    approved = herald(two.b, "peer", "approve", A, answer="y\n")
    assert "both have agreed, and events can be exchanged" in approved.stdout
    assert herald(two.a, "peer", "list").stdout.startswith(B)
    changed = json.loads(herald(two.a, "peer", "trust", B, "--host", "--no-push", "--json").stdout)
    assert (changed["host"], changed["push"]) == (True, False)
    assert f"herald peer resume {B}" in herald(two.a, "peer", "suspend", B).stdout
    assert "has suspended this domain" in herald(two.b, "peer", "show", A).stdout
    assert "events can be exchanged" in herald(two.a, "peer", "resume", B).stdout
    assert "no longer a peer" in herald(two.a, "peer", "remove", B).stdout
    assert "declined, or has removed this domain" in herald(two.b, "peer", "show", A).stdout


def test_a_peers_people_use_what_a_policy_opens_to_them_until_it_is_suspended(two: Two) -> None:
    both_active(two)
    policy = [{"issuer": f"peer:{B}", "allow": ["describe", "publish", "history"]}]
    rp = two.a.create_rp(policy=policy)
    with httpx.Client(headers={"Authorization": f"Bearer {two.b.token('bea')}"}, base_url=two.a.url(), **PLAIN) as bea:
        publish = lambda: bea.post(f"/api/v1/rps/{rp}/events", json={"n": 1}).status_code == 201  # noqa: E731
        wait_for(publish, about="the gateway knows that B is a peer again")
        assert len(bea.get(f"/api/v1/rps/{rp}/events").json()["events"]) == 1
        assert bea.post("/api/v1/rps", json={}).status_code == 403
        ask(two.a, f"/{B}/suspend")
        wait_for(lambda: bea.get(f"/api/v1/rps/{rp}/events").status_code == 401, 15, about="its tokens are refused")
    with two.b.http("ben") as own:
        assert own.get("/api/v1/rps").status_code == 200, "at home nothing has changed"


def test_what_is_at_the_address_must_be_a_domain_and_no_secret_place(two: Two) -> None:
    for url, said in (
        (two.a.url(), "each needs a name of its own"),
        (NOBODY, "cannot be reached"),
        ("https://169.254.169.254", "not public"),
        ("ftp://b.test", "not an https address"),
    ):
        answer = two.a.admin.post("/api/v1/peers/look", json={"url": url})
        assert answer.status_code in (400, 424)
        assert said in answer.json()["detail"], answer.text
