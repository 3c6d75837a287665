"""Joining, leaving, inviting, between real domains in a line A - B - C: A and C are no peers and reach each other through B only."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from herald.commands import cli

from demo.harness.network import QUOTA_BYTES, Network, line
from demo.harness.servers import wait_for
from tests.access.issuer_server import IssuerServer

pytestmark = pytest.mark.processes

TO_ALL = ["describe", "publish", "subscribe", "history"]
HOMES_OWN = {"issuer": "domain", "allow": TO_ALL}
OF_B = {"issuer": "peer:b.test", "allow": [*TO_ALL, "replicate"]}
OF_ANYONE = {"issuer": "anyone", "allow": ["replicate", "describe"]}  # C is no peer of A: for A it is anyone
EVENT = {"specversion": "1.0", "id": "1", "source": "/test", "type": "test"}
SHAPE = line("abc")
STRUCTURED = {"content-type": "application/cloudevents+json"}


def asked(
    network: Network, at: str, method: str, path: str, *, of: str = "", subject: str = "tester", **request: Any
) -> httpx.Response:
    """A request at a domain with a token that the domain `of` issued for itself (None: with that of `token`)."""
    token = request.pop("token", None) or network[of or at].token(subject=subject)
    with httpx.Client(base_url=network[at].url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        return client.request(method, path, **request)


def publishes(network: Network, rp: str, at: str, event_id: str, **who: Any) -> int:
    """Publish one event; the status."""
    content = json.dumps({**EVENT, "id": event_id})
    return asked(
        network, at, "POST", f"/api/v1/rps/{rp}/events", content=content, headers=STRUCTURED, **who
    ).status_code


def read(network: Network, rp: str, at: str, **who: Any) -> list[str]:
    """Ids of the history."""
    answer = asked(network, at, "GET", f"/api/v1/rps/{rp}/events?after=earliest", **who)
    assert answer.status_code == 200, answer.text
    return [event["id"] for event in answer.json()["events"]]


def participants(network: Network, rp: str, at: str) -> dict[str, str]:
    """Who participates, as a domain shows it, with their roles."""
    items = network[at].ask("GET", f"/api/v1/rps/{rp}/replicas")["items"]
    return {one["domain"]: one["role"] for one in items}


def refused_join(network: Network, at: str, rp: str, **wish: Any) -> dict[str, Any]:
    """The problem document that a join is refused with."""
    answer = network[at].admin.post("/api/v1/replicas", json={"rp": rp, **wish})
    assert answer.status_code >= 400, answer.text
    return answer.json()


@pytest.mark.long
def test_a_replica_serves_every_operation_under_its_homes_policy(network: Network) -> None:
    with IssuerServer() as issuer:
        of_issuer = {"issuer": issuer.url, "allow": ["publish", "history"]}
        rp = network.create_rp(
            "a", name="joined", policy=[HOMES_OWN, {**OF_B, "claims": {"sub": {"in": ["b.test", "bea"]}}}, of_issuer]
        )
        document = network.join(rp, "b", "a")
        assert (document["home"], document["name"]) == ("a.test", "/a.test/joined/")
        assert (
            participants(network, rp, "a") == participants(network, rp, "b") == {"a.test": "home", "b.test": "replica"}
        )
        reader = network.reader(rp, "b", subject="bea")
        assert publishes(network, rp, "b", "1", subject="bea") == 201
        assert publishes(network, rp, "b", "2", of="a") == 201, "a token of the home, at the replica"
        assert publishes(network, rp, "b", "3", token=issuer.token("citizen", aud="b.test")) == 201
        assert publishes(network, rp, "b", "5", subject="mallory") == 403
        assert publishes(network, rp, "a", "4") == 201
        reader.has(["1", "2", "3", "4"])
        wait_for(
            lambda: set(read(network, rp, "a")) == {"1", "2", "3", "4"}, about="the home holds what came at the replica"
        )
        assert set(read(network, rp, "b", of="a")) == {"1", "2", "3", "4"}
        by_name = asked(network, "b", "GET", "/api/v1/rps/%2Fa.test%2Fjoined%2F", of="a")
        assert by_name.json()["id"] == rp


@pytest.mark.long
def test_a_domain_joins_through_a_relay_where_it_does_not_reach_the_home(network: Network) -> None:
    rp = network.create_rp("a", policy=[HOMES_OWN, OF_B, OF_ANYONE])
    assert refused_join(network, "c", rp)["status"] == 404, "B does not participate yet"
    network.join(rp, "b", "a")
    network.join(rp, "c", "b")
    expected = {"a.test": "home", "b.test": "replica", "c.test": "replica"}
    wait_for(lambda: all(participants(network, rp, at) == expected for at in "abc"), about="all know all")
    assert publishes(network, rp, "c", "1", of="a") == 201, "the home's people, at a domain that its home never met"
    wait_for(lambda: read(network, rp, "a") == ["1"], about="the event went C -> B -> A")
    assert not any(network.misbehaviour(at) for at in "abc")


def test_a_join_that_the_policy_refuses_says_which_rule_is_lacking(network: Network) -> None:
    rp = network.create_rp("a", policy=[HOMES_OWN])
    problem = refused_join(network, "b", rp, via="a.test")
    assert problem["type"] == "urn:herald:problem:forbidden"
    assert '{"issuer": "peer:b.test", "allow": ["replicate"]}' in problem["detail"]
    assert problem["detail"].startswith("At a.test: ")
    assert network["b"].admin.get(f"/api/v1/rps/{rp}").status_code == 404
    network["a"].ask("PATCH", f"/api/v1/rps/{rp}", {"policy": [HOMES_OWN, OF_B]})
    network.join(rp, "b", "a")
    problem = refused_join(network, "c", rp, via="b.test")
    assert problem["status"] == 403, "the relay passes the home's refusal on"
    assert participants(network, rp, "a") == {"a.test": "home", "b.test": "replica"}


def test_a_join_without_a_place_here_is_refused_whole_and_taken_back_at_the_home(network: Network) -> None:
    rp = network.create_rp("a", history={"max_bytes": QUOTA_BYTES // 2})
    filling = network.create_rp("b", history={"max_bytes": QUOTA_BYTES // 2 + 1024})
    problem = refused_join(network, "b", rp, via="a.test")
    assert problem["type"] == "urn:herald:problem:quota-exceeded"
    assert network["b"].admin.get(f"/api/v1/rps/{rp}").status_code == 404
    assert participants(network, rp, "a") == {"a.test": "home"}
    less = network["b"].ask("POST", "/api/v1/replicas", {"rp": rp, "history": {"max_bytes": 4096}})
    assert less["history"]["max_bytes"] == 4096
    for at, one in (("a", rp), ("b", filling)):
        network[at].ask("DELETE", f"/api/v1/rps/{one}")


def test_a_replica_is_renewed_for_as_long_as_it_is_wanted(network: Network) -> None:
    rp = network.create_rp("a")
    first = network.join(rp, "b", "a", lease_s=16)["lease"]["expires_at"]

    def ends_at() -> str:
        return str(network["b"].ask("GET", f"/api/v1/rps/{rp}")["lease"]["expires_at"])

    wait_for(lambda: ends_at() > first, about="a renewal")
    assert participants(network, rp, "a") == {"a.test": "home", "b.test": "replica"}
    network["b"].ask("DELETE", f"/api/v1/replicas/{rp}")


def test_a_join_while_the_home_cannot_be_reached_says_so(network: Network) -> None:
    rp = network.create_rp("a")
    network.join(rp, "b", "a")
    network.partition("a", "b")
    problem = refused_join(network, "c", rp, via="b.test")
    assert problem["status"] == 503
    network.heal()
    network.join(rp, "c", "b")


def test_an_invited_peer_has_a_replica_if_it_trusts_the_home_to_host(network: Network) -> None:
    rp = network.create_rp("a", policy=[HOMES_OWN])
    path = f"/api/v1/rps/{rp}/replicas"
    refused = network["a"].admin.post(path, json={"peer": "b.test"})
    assert refused.status_code == 403, "the policy first"
    network["a"].ask("PATCH", f"/api/v1/rps/{rp}", {"policy": [HOMES_OWN, OF_B]})
    network["b"].ask("PATCH", "/api/v1/peers/a.test", {"host": False})
    refused = network["a"].admin.post(path, json={"peer": "b.test"})
    assert refused.status_code == 403
    assert "herald peer change a.test --host" in refused.json()["detail"]
    network["b"].ask("PATCH", "/api/v1/peers/a.test", {"host": True})
    wait_for(lambda: network["a"].admin.post(path, json={"peer": "b.test"}).status_code == 201, every_s=0.3)
    assert participants(network, rp, "a") == {"a.test": "home", "b.test": "replica"}
    assert publishes(network, rp, "b", "1") == 201
    wait_for(lambda: read(network, rp, "a") == ["1"])
    refused = network["a"].admin.post(path, json={"peer": "c.test"})
    assert refused.status_code == 409
    assert "herald peer list" in refused.json()["detail"]


def test_a_policy_that_changes_at_the_home_is_in_force_at_the_replica_for_live_sessions_too(network: Network) -> None:
    rp = network.create_rp("a", policy=[HOMES_OWN, OF_B])
    network.join(rp, "b", "a")
    assert publishes(network, rp, "b", "1") == 201
    headers = {"Authorization": f"Bearer {network['b'].token()}"}
    with httpx.stream("GET", f"{network['b'].url}/api/v1/rps/{rp}/stream", headers=headers, timeout=30) as stream:
        lines = stream.iter_lines()
        assert stream.status_code == 200
        network["a"].ask("PATCH", f"/api/v1/rps/{rp}", {"policy": [HOMES_OWN, {**OF_B, "allow": ["replicate"]}]})
        rest = "\n".join(lines)  # until the replica ends it; its heartbeats would go on for ever
    assert "forbidden" in rest
    assert publishes(network, rp, "b", "2") == 403
    assert publishes(network, rp, "b", "3", of="a") == 201, "the home's people go on"


def test_a_domain_that_leaves_is_taken_off_by_the_home_and_serves_it_no_more(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    network.join(rp, "c", "b")
    assert network["c"].admin.delete(f"/api/v1/replicas/{rp}").status_code == 204
    expected = {"a.test": "home", "b.test": "replica"}
    wait_for(lambda: participants(network, rp, "a") == participants(network, rp, "b") == expected)
    assert publishes(network, rp, "c", "1") in (307, 404)
    network.join(rp, "c", "b")
    assert publishes(network, rp, "c", "2") == 201
    wait_for(lambda: read(network, rp, "a", subject="x") == ["2"], about="it has come back")


def test_a_domain_that_leaves_while_the_home_is_away_is_taken_off_when_it_is_back(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    network.partition("a", "b")
    assert network["b"].admin.delete(f"/api/v1/replicas/{rp}").status_code == 204
    assert participants(network, rp, "a") == {"a.test": "home", "b.test": "replica"}
    network.heal()
    wait_for(lambda: participants(network, rp, "a") == {"a.test": "home"}, about="the leave was told again")


def serves_no_more(network: Network, rp: str, at: str) -> bool:
    """Whether a domain neither shows the RP's history to its own people any more, nor takes their events for it."""
    shown = asked(network, at, "GET", f"/api/v1/rps/{rp}/events?after=earliest").status_code
    return shown in (307, 404, 410) and publishes(network, rp, at, "late") in (307, 404, 410)


def test_an_admission_that_the_home_takes_back_ends_the_replica_at_once(network: Network) -> None:
    """Their leases last for an hour. C is told by B, its only peer."""
    rp = network.create_rp("a", policy=[HOMES_OWN, OF_B, OF_ANYONE])
    network.join(rp, "b", "a", lease_s=3600)
    assert publishes(network, rp, "b", "1") == 201
    network.join(rp, "c", "b", lease_s=3600)
    network["a"].ask("PATCH", f"/api/v1/rps/{rp}", {"policy": [HOMES_OWN, OF_B]})
    wait_for(
        lambda: network["c"].admin.get(f"/api/v1/rps/{rp}").status_code in (307, 404, 410), 60, about="C is told by B"
    )
    assert publishes(network, rp, "b", "2") == 201, "B is admitted still"
    network["a"].ask("PATCH", f"/api/v1/rps/{rp}", {"policy": [HOMES_OWN]})
    wait_for(lambda: serves_no_more(network, rp, "b"), 60, about="B is told by the home")
    assert participants(network, rp, "a") == {"a.test": "home"}
    assert not any(network.misbehaviour(at) for at in "abc")


def test_a_replica_that_was_away_when_its_admission_was_taken_back_is_told_when_it_is_back(network: Network) -> None:
    rp = network.create_rp("a", policy=[HOMES_OWN, OF_B])
    network.join(rp, "b", "a", lease_s=3600)
    assert publishes(network, rp, "b", "1") == 201
    network.partition("a", "b")
    network["a"].ask("PATCH", f"/api/v1/rps/{rp}", {"policy": [HOMES_OWN]})
    wait_for(lambda: participants(network, rp, "a") == {"a.test": "home"})
    assert publishes(network, rp, "b", "2") == 201, "it cannot know"
    network.heal()
    wait_for(lambda: serves_no_more(network, rp, "b"), 60, about="it is told")


def test_the_command_joins_lists_leaves_and_invites(network: Network) -> None:
    rp = network.create_rp("a")

    def herald(at: str, *arguments: str) -> str:
        token = network[at].token(admin=True, subject="root")
        asking = ["replica", *arguments, "--url", network[at].url, "--token", token]
        result = CliRunner().invoke(cli, asking)
        assert result.exit_code == 0, result.output
        return result.output

    assert f"herald replica leave {rp}" in herald("b", "join", rp, "--via", "a.test", "--max-events", "5")
    assert network["b"].ask("GET", f"/api/v1/rps/{rp}")["history"]["max_events"] == 5
    assert [rp, "a.test"] in [line.split() for line in herald("b", "list", "--columns", "id,home").splitlines()]
    assert [text.split()[:2] for text in herald("b", "list", rp).splitlines()] == [
        ["a.test", "home"],
        ["b.test", "replica"],
    ]
    assert herald("b", "leave", rp) == f"left {rp}\n"
    assert rp not in herald("b", "list")
    assert "b.test holds a replica" in herald("a", "invite", rp, "b.test")


def test_a_replica_lapses_on_both_sides_when_its_lease_is_not_renewed(network: Network) -> None:
    rp = network.create_rp("a")
    lasting = network.replicated_rp("a", "b")
    network.join(rp, "b", "a", lease_s=5)
    network.partition("a", "b")
    wait_for(lambda: participants(network, rp, "a") == {"a.test": "home"}, about="the home lets it go")
    wait_for(lambda: network["b"].admin.get(f"/api/v1/rps/{rp}").status_code in (404, 410), about="the replica ends")
    assert network["b"].admin.get(f"/api/v1/rps/{lasting}").status_code == 200, "a longer lease lasts through it"
    network.heal()


def test_the_end_at_the_home_reaches_replicas_that_it_never_met(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    network.join(rp, "c", "b")
    network["a"].ask("DELETE", f"/api/v1/rps/{rp}")
    for at in "bc":
        wait_for(
            lambda at=at: network[at].admin.get(f"/api/v1/rps/{rp}").status_code in (404, 410),  # type: ignore[misc]
            about=f"the replica at {at} ends",
        )


def test_what_is_published_at_a_replica_renews_the_lease_at_home_and_reading_there_does_not(network: Network) -> None:
    rp = network.replicated_rp("a", "b", lease_s=1000)

    def left_s() -> float:
        until = network["a"].ask("GET", f"/api/v1/rps/{rp}")["lease"]["expires_at"]
        return (datetime.fromisoformat(until) - datetime.now(UTC)).total_seconds()

    until = datetime.now(UTC) + timedelta(seconds=400)
    texts = [(until - timedelta(seconds=before)).strftime("%Y-%m-%d %H:%M:%S.%f") for before in (0, 1)]
    with closing(sqlite3.connect(network["a"].data_dir / "herald.sqlite3", timeout=60)) as database, database:
        database.execute("UPDATE eventing_rendezvouspoint SET expires_at = ?, warn_at = ? WHERE id = ?", [*texts, rp])
    assert network["b"].ask("GET", f"/api/v1/rps/{rp}/events")["events"] == []
    assert left_s() < 400

    def renewed_by_an_event() -> bool:
        network.publish(
            rp, "b"
        )  # one after another: what the home knows of the lease, changed in SQL here, may be seconds old
        return left_s() > 900

    wait_for(renewed_by_an_event, 60, about="the home counts it as use")
    shown = network["b"].ask("GET", f"/api/v1/rps/{rp}")
    assert (shown["renew_on_use"], shown["notice"]) == (False, None), "its admission is renewed by b itself"
