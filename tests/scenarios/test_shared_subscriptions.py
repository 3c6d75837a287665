"""Fault-tolerant durable subscriptions between real domains: one delivers, another takes over, nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from herald import Client
from herald.commands import cli
from websockets.sync.client import connect as ws_connect

from demo.harness.network import DELIVERY_LEASE_S, Network
from demo.harness.servers import wait_for

pytestmark = pytest.mark.processes

TAKEN_OVER_WITHIN_S = 120.0  # a lease and a turn take 9 s; the machine may be busy
READ_BEFORE_KILL = 600
ANSWERED_S = 9.0  # after the last event, for the acknowledgements; one by one they would take 12 s and more
TOLD_S = 30.0  # for the other holder to be told what is acknowledged, which takes a second
REPEATED_MAX = 0.1  # of the events read before a takeover; acknowledged one by one it was two thirds


class Owner:
    """Who owns a subscription that was created at a, and uses it wherever it is delivered."""

    def __init__(self, network: Network, rp: str, **asked: Any) -> None:
        self.network, self.rp = network, rp
        self.token = network["a"].token(subject="owner")
        body = {"replicas": 2, "lease_s": 600, **asked}
        answer = self.asks("a", "POST", f"/api/v1/rps/{rp}/subscriptions", json=body)
        assert answer.status_code == 201, answer.text
        self.document = answer.json()
        self.id = str(self.document["id"])
        wait_for(lambda: self.shown("b") is not None, about="b holds it too")

    def asks(self, at: str, method: str, path: str, **request: Any) -> httpx.Response:
        """A request with the owner's token, which is one of a."""
        headers = {"Authorization": f"Bearer {self.token}"}
        with httpx.Client(base_url=self.network[at].url, headers=headers, timeout=60) as client:
            return client.request(method, path, **request)

    def of(self, at: str, method: str, action: str = "", **request: Any) -> httpx.Response:
        """A request about the subscription."""
        return self.asks(at, method, f"/api/v1/subscriptions/{self.id}{action}", **request)

    def shown(self, at: str) -> dict[str, Any] | None:
        """What a holder shows of it; None if there is no such subscription there."""
        answer = self.of(at, "GET")
        return answer.json()["shared"] if answer.status_code == 200 else None

    def delivered_at(self, at: str, *, seen_from: str | None = None) -> None:
        """Wait until a domain says that it, or the one it names, delivers."""
        wait_for(
            lambda: (self.shown(seen_from or at) or {}).get("delivers") == f"{at}.test",
            TAKEN_OVER_WITHIN_S,
            every_s=0.1,
            about=f"{at} delivers",
        )

    def pulled(self, at: str) -> tuple[list[str], str]:
        """Ids of what is not acknowledged yet, and the cursor behind it."""
        answer = self.of(at, "GET", "/events")
        assert answer.status_code == 200, answer.text
        assert answer.json()["recovered"] is not False, answer.text
        return [event["id"] for event in answer.json()["events"]], answer.json()["cursor"]

    def acks(self, at: str, cursor: str) -> None:
        """Acknowledge, and wait until the other holder has heard of it."""
        answer = self.of(at, "POST", "/ack", json={"cursor": cursor})
        assert answer.status_code == 200, answer.text
        acked = (self.shown(at) or {})["acked"]
        wait_for(lambda: (self.shown("b" if at == "a" else "a") or {}).get("acked") == acked, about="it was told")

    def attached(self, at: str, count: int) -> list[str]:
        """The ids of the next events by an attached WebSocket, which acknowledges them."""

        async def read() -> list[str]:
            found: list[str] = []
            async with (
                asyncio.timeout(120),
                Client(self.network[at].url, token=self.token) as client,
                client.attach(self.id) as items,
            ):
                async for item in items:
                    found.append(item.id)  # type: ignore[union-attr]
                    if len(found) == count:
                        return found
            raise AssertionError("the reading ended")

        return asyncio.run(read())

    def lease_ends(self, at: str) -> str:
        """When the lease ends, as a holder knows it."""
        return str(self.of(at, "GET").json()["lease"]["expires_at"])

    def reads_on_and_renews(self, first: str, then: str, *, for_s: float) -> list[str]:
        """Attach as a program does that knows two domains, of which the first is away: read for a while what is published,
        until the other has renewed the lease; the ids."""
        found: list[str] = []
        renewed_from, deadline = self.lease_ends(then), time.monotonic() + TAKEN_OVER_WITHIN_S
        urls = [self.network[name].url for name in (first, then)]

        async def read() -> None:
            async with Client(urls, token=self.token) as client, client.attach(self.id) as items:
                until = time.monotonic() + for_s
                while time.monotonic() < until or self.lease_ends(then) <= renewed_from:
                    assert time.monotonic() < deadline, "nobody renewed it"
                    await asyncio.to_thread(self.network.publish, self.rp, then)
                    async with asyncio.timeout(60):
                        found.append((await anext(items)).id)  # type: ignore[union-attr]
                    await asyncio.sleep(0.2)

        asyncio.run(read())
        return found


def test_in_the_normal_case_one_domain_delivers_once_and_the_other_sends_its_clients_there(network: Network) -> None:
    owner = Owner(network, network.replicated_rp("a", "b"))
    assert owner.document["shared"]["holders"] == ["a.test", "b.test"]
    published = network.publish(owner.rp, "b", 3) + network.publish(owner.rp, "a", 3)
    network.converged(owner.rp)
    owner.delivered_at("a", seen_from="b")
    for action, method in (("/events", "GET"), ("/ack", "POST")):
        answer = owner.of("b", method, action, json={"cursor": owner.document["cursor"]} if action == "/ack" else None)
        assert answer.status_code == 307, answer.text
        assert answer.json()["to"] == [network["a"].url]
        assert answer.headers["location"] == f"{network['a'].url}/api/v1/subscriptions/{owner.id}{action}"
    delivered, cursor = owner.pulled("a")
    assert sorted(delivered) == sorted(published)
    owner.acks("a", cursor)
    assert owner.pulled("a")[0] == []
    again = owner.of("a", "GET", "/events", params={"after": owner.document["cursor"]}).json()["events"]
    assert [event["id"] for event in again] == delivered, "a reader's own place counts, whoever acknowledged what"


def test_what_left_the_history_after_it_was_read_can_be_acknowledged(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    owner = Owner(network, rp)
    published = network.publish(rp, "b", 3) + network.publish(rp, "a", 3)
    network.converged(rp)
    owner.delivered_at("a")
    page = owner.of("a", "GET", "/events", params={"limit": 2}).json()
    behind = owner.of("a", "GET", "/events", params={"limit": 5}).json()["cursor"].partition("~")[0]
    network["a"].ask("POST", f"/api/v1/rps/{rp}/trim", {"before": behind})
    owner.acks("a", page["cursor"])
    assert sum((owner.shown("b") or {})["acked"].values()) == 2
    left = owner.of("a", "GET", "/events").json()
    assert (len(left["events"]), left["recovered"]) == (1, False), "what is left, and that some is not"
    assert {event["id"] for event in left["events"]} <= set(published)


@pytest.mark.long
def test_changes_are_made_where_it_was_created_and_its_deletion_spreads(network: Network) -> None:
    owner = Owner(network, network.replicated_rp("a", "b"))
    owner.delivered_at("a", seen_from="b")
    for method, body in (("PATCH", {"history": {"max_events": 5}}), ("DELETE", None)):
        answer = owner.of("b", method, json=body)
        assert answer.status_code == 307, answer.text
        assert answer.headers["location"] == f"{network['a'].url}/api/v1/subscriptions/{owner.id}"
    assert owner.of("a", "PATCH", json={"history": {"max_events": 5}}).status_code == 200
    wait_for(lambda: owner.of("b", "GET").json()["history"]["max_events"] == 5, about="b follows the change")
    assert owner.of("a", "POST", "/renew", json={"lease_s": 5000}).status_code == 200
    wait_for(lambda: owner.of("b", "GET").json()["lease"]["granted_s"] > 4000, about="b follows the renewal")
    outlasted(owner)
    assert owner.of("a", "DELETE").status_code == 204
    wait_for(lambda: owner.of("b", "GET").status_code == 404, about="it ended at b as well")


def outlasted(owner: Owner) -> None:
    """Wait until nobody has taken over for longer than a lease lasts, so that it was renewed. A machine that stands still makes
    one lapse; without any renewal all would."""
    known, since = None, time.monotonic()

    def outlasts() -> bool:
        nonlocal known, since
        terms = [(owner.shown(at) or {})["term"] for at in "ab"]
        if terms != known:
            known, since = terms, time.monotonic()
        return time.monotonic() > since + DELIVERY_LEASE_S + 1

    wait_for(outlasts, TAKEN_OVER_WITHIN_S, every_s=0.1, about="a lease outlasts its length")


def test_more_replicas_than_there_are_peers_to_hold_them_are_refused_clearly(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    token = {"Authorization": f"Bearer {network['a'].token()}"}
    url = f"{network['a'].url}/api/v1/rps/{rp}/subscriptions"
    answer = httpx.post(url, json={"replicas": 3}, headers=token, timeout=60)
    assert (answer.status_code, answer.json()["available"]) == (409, 2)
    assert httpx.post(url, json={"replicas": 6}, headers=token, timeout=60).status_code == 400
    assert httpx.get(url, headers=token, timeout=60).json()["items"] == []


def test_the_command_creates_one_at_two_domains_and_shows_who_delivers(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    where = ["--url", network["a"].url, "--token", network["a"].token()]
    made = CliRunner().invoke(cli, ["sub-durable", "create", rp, "--replicas", "2", "--json", *where])
    assert made.exit_code == 0, made.output
    shown = CliRunner().invoke(cli, ["sub-durable", "show", json.loads(made.output)["id"], *where])
    assert "a.test (of a.test, b.test)" in shown.output


@pytest.mark.long
def test_in_a_partition_both_deliver_and_when_it_heals_one_stands_down_and_no_acknowledgement_is_lost(
    network: Network,
) -> None:
    rp = network.replicated_rp("a", "b")
    owner = Owner(network, rp)
    network.publish(rp, "a", 2)
    network.publish(rp, "b", 2)
    network.converged(rp)
    with ws_connect(f"{network['a'].ws_url}", additional_headers={"Authorization": f"Bearer {owner.token}"}) as reading:
        reading.send(json.dumps({"op": "subscribe", "id": 1, "subscription": owner.id}))
        assert json.loads(reading.recv(60))["op"] == "ok"
        network.partition("a", "b")
        try:
            owner.delivered_at("b")
            assert (owner.shown("a") or {})["delivers"] == "a.test", "nobody told it: at least once, never lost"
            assert sorted(owner.pulled("a")[0]) == sorted(owner.pulled("b")[0]) == sorted(network.published[rp])
            network.publish(rp, "a", 1)
            network.publish(rp, "b", 1)
            for at in "ab":
                answer = owner.of(at, "POST", "/ack", json={"cursor": owner.pulled(at)[1]})
                assert answer.status_code == 200, answer.text
        finally:
            network.heal()
        owner.delivered_at("b", seen_from="a")
        frames = _until_error(reading)
    assert frames[-2] == {"op": "redirect", "rp": rp, "to": [network["b"].url]}
    assert frames[-1]["type"].endswith("moved")
    network.converged(rp)
    wait_for(lambda: owner.pulled("b")[0] == [], about="what either side acknowledged stays acknowledged")


def _until_error(reading: Any) -> list[dict[str, Any]]:
    """All frames of a reading until it is ended."""
    frames: list[dict[str, Any]] = []
    while not frames or frames[-1]["op"] != "error":
        frames.append(json.loads(reading.recv(60)))
    return frames


@pytest.mark.long
def test_ack_at_a_kill_a_and_b_goes_on_right_behind_and_a_stands_down_when_it_is_back(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    owner = Owner(network, rp)
    network.publish(rp, "a", 4)
    network.publish(rp, "b", 4)
    network.converged(rp)
    assert sorted(owner.attached("a", 5)) == sorted(
        set(network.published[rp]) - set(owner_left := owner.pulled("a")[0])
    )
    assert len(owner_left) == 3
    wait_for(lambda: (owner.shown("b") or {}).get("acked") == (owner.shown("a") or {}).get("acked"))
    network.kill("a")
    owner.delivered_at("b")
    network.publish(rp, "b", 2)
    assert owner.pulled("b")[0] == [*owner_left, *network.published[rp][-2:]], "right behind the last acknowledgement"
    assert owner.attached("b", 2) == owner_left[:2]
    before = len(network.published[rp])
    read = owner.reads_on_and_renews("a", "b", for_s=3)
    assert read == [owner_left[2], *network.published[rp][before - 2 :]][: len(read)], "a's absence ends no reading"
    assert owner.of("b", "POST", "/renew", json={"lease_s": 900}).status_code == 200, "without its keeper too"
    network.partition("b", "a", one_way=True)  # no line of b comes: a knows only if it asks
    try:
        network.start("a")
        owner.delivered_at("b", seen_from="a")
    finally:
        network.heal()
    wait_for(lambda: owner.of("a", "GET", "/events").status_code == 307, about="b's lines come again")
    wait_for(lambda: (owner.shown("a") or {}).get("acked") == (owner.shown("b") or {}).get("acked"))
    assert (owner.shown("a") or {})["term"] >= 2
    wait_for(lambda: owner.of("a", "GET").json()["lease"]["granted_s"] > 800, about="the keeper knows the renewal")


@pytest.mark.long
def test_a_reader_that_acknowledges_each_event_sees_few_of_them_again_after_a_takeover(network: Network) -> None:
    rp = network.replicated_rp("a", "b")
    owner = Owner(network, rp)
    published = [*network.publish(rp, "a", READ_BEFORE_KILL // 2), *network.publish(rp, "b", READ_BEFORE_KILL // 2)]
    network.converged(rp)
    owner.delivered_at("a", seen_from="b")

    async def read() -> None:
        """Acknowledge each event as it comes, and leave ANSWERED_S after the last."""
        async with (
            asyncio.timeout(120),
            Client(network["a"].url, token=owner.token) as client,
            client.attach(owner.id, auto_ack=False) as items,
        ):
            acking: list[asyncio.Task[None]] = []
            async for item in items:
                acking.append(asyncio.create_task(items.ack(item)))
                if len(acking) == READ_BEFORE_KILL:
                    break
            await asyncio.wait(acking, timeout=ANSWERED_S)
            for task in acking:
                task.cancel()

    asyncio.run(read())
    until = time.monotonic() + TOLD_S
    while time.monotonic() < until and sum((owner.shown("b") or {})["acked"].values()) < READ_BEFORE_KILL:
        time.sleep(0.05)
    network.kill("a")
    owner.delivered_at("b")
    answer = owner.of("b", "GET", "/events", params={"limit": READ_BEFORE_KILL})
    repeated = {event["id"] for event in answer.json()["events"]}
    assert repeated <= set(published)
    assert len(repeated) <= REPEATED_MAX * READ_BEFORE_KILL
