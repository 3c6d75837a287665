"""Moves of a home between real domains: nothing that is published meanwhile is lost, and either of them is the home."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any

import httpx
import pytest

from demo.harness.network import Network
from demo.harness.servers import wait_for

pytestmark = [pytest.mark.processes, pytest.mark.long]

ALL = ["describe", "publish", "subscribe", "history", "replicate"]
POLICY = [{"issuer": "domain", "allow": ALL}, *({"issuer": f"peer:{at}.test", "allow": ALL} for at in "bc")]
BATCH, EVERY_S = 50, 0.1
"""500 events a second."""
REFUSED_S_MAX = 1.0
BUSY_S = 5.0
"""By which a machine that is busy with other tests may be late."""
SILENCE_S = 5
BATCHES = {"content-type": "application/cloudevents-batch+json"}


class Load(threading.Thread):
    """Publishes BATCH events each EVERY_S at one domain, each batch until it is accepted."""

    def __init__(self, network: Network, rp: str, at: str) -> None:
        super().__init__(daemon=True)
        self.accepted: list[str] = []
        self.longest_refusal_s = 0.0
        self._member, self._rp, self._at = network[at], rp, at
        self._ends = threading.Event()

    def run(self) -> None:
        token = self._member.token(subject="loader")
        headers = {"Authorization": f"Bearer {token}", **BATCHES}
        number = 0
        with httpx.Client(base_url=self._member.url, headers=headers, timeout=60) as client:
            while not self._ends.is_set():
                ids = [f"{self._at}{number + step}" for step in range(BATCH)]
                number += BATCH
                batch = [{"specversion": "1.0", "id": it, "source": f"/{self._at}", "type": "test"} for it in ids]
                self._publish(client, json.dumps(batch))
                self.accepted += ids
                self._ends.wait(EVERY_S)

    def _publish(self, client: httpx.Client, content: str) -> None:
        refused_at: float | None = None
        while (answer := client.post(f"/api/v1/rps/{self._rp}/events", content=content)).status_code != 201:
            refused_at = refused_at or time.monotonic()
            assert answer.status_code in (409, 429, 503), answer.text
            time.sleep(0.02)
        if refused_at is not None:
            self.longest_refusal_s = max(self.longest_refusal_s, time.monotonic() - refused_at)

    def end(self) -> None:
        self._ends.set()
        self.join(60)


def shared_rp(network: Network) -> str:
    for at, of in permutations("abc", 2):  # whoever is the home may hand over to whomever
        network[at].ask("PATCH", f"/api/v1/peers/{of}.test", {"host": True})
    rp = network.create_rp("a", policy=POLICY, history={"max_events": 100_000, "max_bytes": 20_000_000})
    for at in "bc":
        network.join(rp, at, "a")
    return rp


def moved(network: Network, rp: str, at: str, to: str) -> dict[str, Any]:
    """Move the home; a refusal that asks to try again is not the end on a busy machine."""

    def accepted() -> dict[str, Any] | None:
        answer = network[at].admin.post(f"/api/v1/rps/{rp}/move", json={"domain": f"{to}.test"})
        assert answer.status_code in (200, 409, 503), answer.text
        if answer.status_code != 200:
            assert "ry again" in answer.json()["detail"], answer.text
            return None
        document: dict[str, Any] = answer.json()
        return document

    return wait_for(accepted, within_s=120, every_s=1.0, about=f"{at} hands over to {to}") or {}


def home_at(network: Network, rp: str, at: str) -> tuple[str, int]:
    document = network[at].ask("GET", f"/api/v1/rps/{rp}")
    return document["home"], document["term"]


def all_know(network: Network, rp: str, home: str, term: int) -> None:
    wait_for(
        lambda: all(home_at(network, rp, at) == (home, term) for at in "abc"), about=f"all know that {home} is home"
    )


def held(network: Network, rp: str, at: str) -> set[str]:
    found: set[str] = set()
    after = "earliest"
    while True:
        page: dict[str, Any] = network[at].ask("GET", f"/api/v1/rps/{rp}/events?after={after}&limit=1000")
        found |= {event["id"] for event in page["events"]}
        if not page["events"]:
            return found
        after = page["cursor"]


def test_a_home_moves_under_load_and_nothing_is_lost(network: Network) -> None:
    rp = shared_rp(network)
    loads = [Load(network, rp, at) for at in "ab"]
    for load in loads:
        load.start()
    wait_for(lambda: all(len(load.accepted) > 500 for load in loads), about="the load runs")
    document = moved(network, rp, "a", "b")
    assert (document["home"], document["term"]) == ("b.test", 1)
    all_know(network, rp, "b.test", 1)
    before = [len(load.accepted) for load in loads]
    wait_for(
        lambda: all(len(load.accepted) > count + 500 for load, count in zip(loads, before, strict=True)),
        about="the load goes on",
    )
    for load in loads:
        load.end()
    accepted = {it for load in loads for it in load.accepted}
    wait_for(
        lambda: all(held(network, rp, at) >= accepted for at in "abc"), about=f"all hold the {len(accepted)} events"
    )
    refused_s = max(load.longest_refusal_s for load in loads)
    print(f"\n{len(accepted)} events, longest refusal {refused_s:.3f} s")
    assert refused_s <= REFUSED_S_MAX + BUSY_S
    assert [one for at in "abc" for one in network.misbehaviour(at)] == []
    document = network["b"].ask("PATCH", f"/api/v1/rps/{rp}", {"title": "Moved"})
    assert document["title"] == "Moved"
    wait_for(
        lambda: network["c"].ask("GET", f"/api/v1/rps/{rp}")["title"] == "Moved", about="the new home's word counts"
    )
    refused = network["a"].admin.patch(f"/api/v1/rps/{rp}", json={"title": "Mine"})
    assert refused.status_code == 409


def test_a_home_that_is_killed_for_good_is_succeeded_and_comes_back_as_a_replica(network: Network) -> None:
    rp = shared_rp(network)
    plan = network["a"].ask(
        "POST", f"/api/v1/rps/{rp}/succession", {"electors": ["b.test", "c.test"], "silence_s": SILENCE_S}
    )["succession"]
    assert plan == {"electors": ["b.test", "c.test"], "silence_s": SILENCE_S, "version": 1}
    wait_for(
        lambda: all(network[at].ask("GET", f"/api/v1/rps/{rp}")["succession"] == plan for at in "bc"),
        about="all know it",
    )
    published = set(network.publish(rp, "a", 5))
    wait_for(lambda: all(held(network, rp, at) >= published for at in "bc"), about="it is at the replicas")
    network.kill("a")
    began = time.monotonic()
    wait_for(lambda: home_at(network, rp, "b")[1] > 0 or home_at(network, rp, "c")[1] > 0, about="one was elected")
    print(f"\nsucceeded {time.monotonic() - began:.1f} s after the kill, of {SILENCE_S} s of silence")
    wait_for(lambda: home_at(network, rp, "b") == home_at(network, rp, "c"), about="the other knows")
    home, term = home_at(network, rp, "b")
    assert home in ("b.test", "c.test")
    at = home[0]
    assert network[at].ask("PATCH", f"/api/v1/rps/{rp}", {"title": "Succeeded"})["title"] == "Succeeded"
    published |= set(network.publish(rp, at, 5))
    network.start("a")
    all_know(network, rp, home, term)
    wait_for(lambda: network["a"].ask("GET", f"/api/v1/rps/{rp}")["title"] == "Succeeded", about="its word counts at a")
    refused = network["a"].admin.patch(f"/api/v1/rps/{rp}", json={"title": "Mine"})
    assert refused.status_code == 409
    published |= set(network.publish(rp, "a", 5))
    wait_for(lambda: all(held(network, rp, one) >= published for one in "abc"), about="all hold everything")
    assert [one for name in "abc" for one in network.misbehaviour(name)] == []
    document = moved(network, rp, at, "a")
    assert (document["home"], document["term"] > term) == ("a.test", True), "back, with the electors' consent"
    all_know(network, rp, "a.test", document["term"])


def test_electors_finish_a_plan_whose_home_died_before_its_last_signature(network: Network) -> None:
    """One elector has endorsed it and votes by the older plan no more; the other was away."""
    rp = shared_rp(network)
    path, electors = f"/api/v1/rps/{rp}/succession", ["b.test", "c.test"]
    plan = network["a"].ask("POST", path, {"electors": electors, "silence_s": SILENCE_S})["succession"]
    wait_for(
        lambda: all(network[at].ask("GET", f"/api/v1/rps/{rp}")["succession"] == plan for at in "bc"),
        about="all know it",
    )
    network.kill("c")
    changed = {"electors": electors[::-1], "silence_s": SILENCE_S}
    refused = network["a"].admin.post(path, json=changed)
    assert (refused.status_code, "1 of 2 electors" in refused.json()["detail"]) == (409, True), refused.text
    network.kill("a")
    network.start("c")
    wait_for(lambda: home_at(network, rp, "b")[1] > 0, within_s=120, about="one was elected")
    wait_for(lambda: home_at(network, rp, "b") == home_at(network, rp, "c"), about="the other knows")
    assert network["b"].ask("GET", f"/api/v1/rps/{rp}")["succession"] == {**changed, "version": 2}
    assert [one for name in "bc" for one in network.misbehaviour(name)] == []


def test_a_domain_that_drains_hands_over_homes_deliveries_and_readers(network: Network) -> None:
    rp = shared_rp(network)
    made = network["a"].ask(
        "POST", f"/api/v1/rps/{rp}/subscriptions", {"lease_s": 600, "replicas": 3, "deliver": {"mode": "pull"}}
    )
    owner = {"Authorization": f"Bearer {network['a'].token(subject='owner')}"}
    made_alone = httpx.post(
        f"{network['a'].url}/api/v1/rps/{rp}/subscriptions", json={"lease_s": 600}, headers=owner, timeout=60
    )
    alone = made_alone.raise_for_status().json()
    path, solitary = f"/api/v1/subscriptions/{made['id']}", f"/api/v1/subscriptions/{alone['id']}"
    wait_for(lambda: network["a"].ask("GET", path)["shared"]["delivers"] == "a.test", about="a delivers")
    reader = network.reader(rp, "a")
    published = network.publish(rp, "a", 3)
    reader.has(published)
    fates = {(one["what"], one["fate"]) for one in network["a"].ask("GET", "/api/v1/drain/preview")["items"]}
    assert fates >= {("home", "handed-over"), ("delivery", "handed-over"), ("subscription", "handed-over")}
    network["a"].ask("POST", "/api/v1/drain", {"for_s": 600})

    wait_for(
        lambda: network["a"].ask("GET", "/api/v1/drain")["state"] == "done", within_s=120, about="all is handed over"
    )
    assert network["a"].ask("GET", "/api/v1/drain")["refusals"] == []
    home, term = home_at(network, rp, "a")
    assert (home in ("b.test", "c.test"), term) == (True, 1)
    wait_for(
        lambda: network["b"].ask("GET", path)["shared"]["delivers"] in ("b.test", "c.test"), about="another delivers"
    )
    holder = network["a"].ask("GET", solitary)["shared"]["holders"][1]
    at = network[holder[0]]
    wait_for(lambda: at.ask("GET", solitary)["shared"]["delivers"] == holder, about="so is what only a had held")
    published += network.publish(rp, home[0], 3)
    reader.has(published)

    def read() -> set[str]:
        page = httpx.get(f"{at.url}{solitary}/events", headers=owner, timeout=60)
        return {event["id"] for event in page.json()["events"]} if page.status_code == 200 else set()

    wait_for(
        lambda: set(published) == read(), about="its owner reads there what came since it began, by the token of a"
    )
    network["a"].ask("DELETE", "/api/v1/drain")
    assert network["a"].ask("GET", "/api/v1/drain")["state"] == "ended"


def test_whatever_is_killed_during_a_move_one_domain_is_the_home_in_the_end(network: Network) -> None:
    """The kill falls before, at and after the last signature, at the former and at the next home."""
    rp = shared_rp(network)
    published: set[str] = set()
    for killed, after_s in (("a", 0.0), ("b", 0.0), ("a", 0.15), ("b", 0.3)):
        home, term = home_at(network, rp, "c")
        asked, to = home[0], "b.test" if home == "a.test" else "a.test"
        published |= set(network.publish(rp, "c", 3))
        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(_asked_to_move, network, asked, rp, to)
            time.sleep(after_s)
            network.kill(killed)
            answer.result(60)
        network.start(killed)
        wait_for(
            lambda: len({home_at(network, rp, at) for at in "abc"}) == 1, within_s=120, about="all agree on one home"
        )
        home, now = home_at(network, rp, "a")
        assert home in ("a.test", "b.test")
        assert now in (term, term + 1)
        document = network[home[0]].ask("PATCH", f"/api/v1/rps/{rp}", {"title": f"{killed}{after_s}"})
        assert document["home"] == home, "it is the home, and acts as one"
    wait_for(lambda: all(held(network, rp, at) >= published for at in "abc"), about="nothing is lost")
    assert [one for at in "abc" for one in network.misbehaviour(at)] == []


def _asked_to_move(network: Network, at: str, rp: str, to: str) -> int:
    try:
        return network[at].admin.post(f"/api/v1/rps/{rp}/move", json={"domain": to}).status_code
    except httpx.TransportError:
        return 0  # it was killed meanwhile
