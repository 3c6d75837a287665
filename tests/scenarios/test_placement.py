"""Placement between real domains: a home that is full gets a replica where one is held willingly, by the schedule and without a person.

The load is stated by a gateway that does not exist, in the home's Redis; all else is real.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import redis

from demo.harness.network import Network, mesh
from demo.harness.servers import wait_for
from eventing.store import keys

pytestmark = [pytest.mark.processes, pytest.mark.long]

KILLED_AFTER_S = (None, 0.0, 0.15)
"""When the process that carries out a decision is killed, after the decision is recorded; None: never."""
SHAPE = mesh("abc")
GATEWAY = "of-the-test"
TO_ALL = ["describe", "publish", "subscribe", "history"]
POLICY = [{"issuer": "domain", "allow": TO_ALL}] + [
    {"issuer": f"peer:{name}.test", "allow": [*TO_ALL, "replicate"]} for name in "bc"
]


@pytest.fixture
def famous(network: Network) -> Iterator[str]:
    """An RP at a with 9,000 readers, in mode apply; b's policy accepts, c's refuses. All is as before afterwards."""
    rp = network.create_rp("a", policy=POLICY)
    network.publish(rp, "a", 3)
    network["b"].ask("PATCH", "/api/v1/plan/invitations", {"whom": "peers"})
    network["c"].ask("PATCH", "/api/v1/plan/invitations", {"whom": "nobody"})
    network["a"].ask("PATCH", f"/api/v1/plan/rps/{rp}", {"mode": "apply"})
    sample = {"interval_s": 1.0, "sessions": 9000, "hot": [{"rp": rp, "events_in": 2, "readings": 9000}]}
    with redis.Redis(unix_socket_path=str(network["a"].data_dir / "redis.sock")) as store:
        store.set(keys.gateway_load_key(GATEWAY), json.dumps(sample), ex=600)
        store.zadd(keys.GATEWAYS_KEY, {GATEWAY: time.time() + 600})
        yield rp
        store.delete(keys.gateway_load_key(GATEWAY))
        store.zrem(keys.GATEWAYS_KEY, GATEWAY)
    network["a"].ask("PATCH", f"/api/v1/plan/rps/{rp}", {"mode": "off"})
    for name in "bc":
        network[name].ask("PATCH", "/api/v1/plan/invitations", {"whom": "trusted-peers"})


def test_a_full_home_gets_a_replica_that_serves_and_a_domain_that_refuses_is_asked_once(
    network: Network, famous: str
) -> None:
    wait_for(lambda: "b.test" in network.participants(famous, "a"), within_s=180)
    wait_for(lambda: network["b"].admin.get(f"/api/v1/rps/{famous}").status_code == 200)
    network.converged(famous, "a", "b")

    def refused() -> list[dict[str, Any]]:
        recent = network["c"].ask("GET", "/api/v1/plan/invitations")["recent"]
        return [one for one in recent if one["rp"] == famous]

    wait_for(lambda: len(refused()) == 1, within_s=180, about="the home is still full, and asks the other one")
    assert (refused()[0]["home"], refused()[0]["reason"]) == ("a.test", "not-trusted")

    def decisions() -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = network["a"].ask("GET", f"/api/v1/plan/decisions?rp={famous}")["items"]
        return items

    wait_for(lambda: all(one["state"] in ("done", "failed") for one in decisions()), within_s=120)
    asked = [name for one in decisions() for name in one["adds"]]
    assert sorted(asked) == ["b.test", "c.test"]
    plan = network["a"].ask("GET", "/api/v1/plan")
    assert list(plan["not_asked"]) == ["c.test"]
    wait_for(
        lambda: [it["rp"] for it in network["a"].ask("GET", "/api/v1/plan")["shortfalls"]] == [famous], within_s=120
    )
    assert len(refused()) == 1, "it is not asked again"


def decided(network: Network, rp: str, *, adds: list[str], retires: list[str]) -> int:
    """Record a decision at a, as its planner does, which takes an hour to give a replica back. Returns its id."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    members = {"rp": rp, "state": "approved", "reason": "load", "why": "", "decided_by": "", "detail": ""}
    members |= {"inputs": "{}", "progress": "{}", "adds": json.dumps(adds), "retires": json.dumps(retires)}
    members |= {"created_at": now, "changed_at": now}
    with (
        contextlib.closing(sqlite3.connect(network["a"].data_dir / "herald.sqlite3", timeout=30)) as database,
        database,
    ):
        marks = ", ".join("?" * len(members))
        done = database.execute(
            f"INSERT INTO eventing_placementdecision ({', '.join(members)}) VALUES ({marks})", list(members.values())
        )
        return int(done.lastrowid or 0)


def carried_out(network: Network, decision: int) -> None:
    wait_for(
        lambda: network["a"].ask("GET", f"/api/v1/plan/decisions/{decision}")["state"] == "done",
        within_s=240,
        about="the decision is carried out",
    )


def test_a_replica_that_is_given_back_loses_and_doubles_nothing_for_its_readers(network: Network) -> None:
    """Whenever the process of the planner is killed in between, too; no half-made replica is left."""
    network["b"].ask("PATCH", "/api/v1/plan/invitations", {"whom": "peers"})
    for after_s in KILLED_AFTER_S:
        rp = network.create_rp("a", policy=POLICY)
        carried_out(network, decided(network, rp, adds=["b.test"], retires=[]))
        wait_for(lambda rp=rp: network["b"].admin.get(f"/api/v1/rps/{rp}").status_code == 200)  # type: ignore[misc]
        reader = network.reader(rp, "b", also="a")
        published = network.publish(rp, "a", 20)
        reader.has(published)
        wait_for(
            lambda rp=rp: network["b"].ask("GET", f"/api/v1/sessions?rp={rp}")["matching"] == 1,  # type: ignore[misc]
            about="it reads where the replica is",
        )
        decision = decided(network, rp, adds=[], retires=["b.test"])
        if after_s is not None:
            time.sleep(after_s)
            os.kill(network["a"].pids["worker"], signal.SIGKILL)
        published += network.publish(rp, "a", 20)
        carried_out(network, decision)
        published += network.publish(rp, "a", 20)
        reader.has(published)
        assert reader.ids == published, "each once, in order"
        wait_for(lambda rp=rp: "b.test" not in network.participants(rp, "a"))  # type: ignore[misc]
        wait_for(
            lambda rp=rp: rp not in [one["id"] for one in network["b"].ask("GET", "/api/v1/replicas")["items"]],  # type: ignore[misc]
            about="nothing half-made is left",
        )
    network["b"].ask("PATCH", "/api/v1/plan/invitations", {"whom": "trusted-peers"})
