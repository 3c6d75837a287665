"""Rules and audiences at real gateways: each is broken and kept again, and somebody is told; leaders and gateways are killed."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from demo.harness.servers import wait_for
from tests.admin_rp.test_served import read_after, until
from tests.gateway.client import Client
from tests.gateway.server import LiveGateway, Prepared, event
from tests.operations.peer_behind import BEHIND, PEER

WITHIN_S = 60.0
PAUSED_S = 1.6
"""Of a gateway: its loop comes back PAUSED_S - 1 s late at least, since it is looked at once a second."""


@pytest.fixture(scope="module")
def live_gateway(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """Two gateways."""
    with LiveGateway(tmp_path_factory.mktemp("watched") / "var", prepared, gateways=2) as running:
        yield running
        assert "Traceback" not in running.log, running.log[-3000:]


def alarms(
    live_gateway: LiveGateway, rp: str | None = None, state: str = "open", gateway: int = 0
) -> list[dict[str, Any]]:
    query = {"state": state} if rp is None else {"rp": rp, "state": state}
    with live_gateway.http("root", admin=True, gateway=gateway) as client:
        found: list[dict[str, Any]] = client.get("/api/v1/alarms", params=query).json()["items"]
    return found


def raised(live_gateway: LiveGateway, rp: str, gateway: int = 0) -> dict[str, Any]:
    return wait_for(lambda: alarms(live_gateway, rp, gateway=gateway), WITHIN_S, about="an alarm")[0]


def cleared(live_gateway: LiveGateway, rp: str, gateway: int = 0) -> None:
    wait_for(lambda: not alarms(live_gateway, rp, gateway=gateway), WITHIN_S, about="the alarm is cleared")


def types(live_gateway: LiveGateway, at: str) -> list[str]:
    return [one["type"].removeprefix("io.herald.") for one in read_after(live_gateway, at) if ".alarm." in one["type"]]


def test_rules_at_an_rp_raise_alarms_and_clear_them(live_gateway: LiveGateway) -> None:
    """Lag of a durable subscription and silence of a publisher, in one domain at once; acknowledged; told as events."""
    lagging = live_gateway.create_rp(
        name="watched/lag", watch=[{"lag": {"events": 3}, "severity": "critical", "for_s": 0}]
    )
    silent = live_gateway.create_rp(watch=[{"silence": {"s": 2, "source": "/tests"}, "for_s": 0}])
    subscription = live_gateway.admin.post(f"/api/v1/rps/{lagging}/subscriptions", json={}).json()["id"]
    live_gateway.publish(lagging, 5)
    other = live_gateway.admin.post(
        f"/api/v1/rps/{silent}/events", json=event("x", source="/others"), headers=STRUCTURED
    )
    assert other.status_code == 201

    alarm = raised(live_gateway, lagging)
    assert (alarm["about"], alarm["severity"], alarm["rp"]) == (subscription, "critical", lagging)
    assert alarm["values"] == [{"name": "events", "value": 5, "limit": 3, "unit": "events"}]
    assert alarm["detail"] == (
        f"The durable subscription {subscription} of /localhost/watched/lag/ is 5 events behind, 3 are allowed."
    )
    quiet = raised(live_gateway, silent)
    assert quiet["detail"].startswith("The source /tests has published nothing to ")

    acknowledged = live_gateway.admin.post(f"/api/v1/alarms/{alarm['id']}/acknowledge", json={"note": "on it"}).json()
    assert (acknowledged["acknowledged"]["by"], acknowledged["acknowledged"]["note"]) == ("root", "on it")
    state = live_gateway.admin.get("/api/v1/admin/snapshot").json()["state"]
    assert state["alarms"][alarm["id"]] == {name: acknowledged[name] for name in acknowledged if name != "cleared"}
    assert alarm["rule"] in state["watches"]

    pulled = live_gateway.admin.get(f"/api/v1/subscriptions/{subscription}/events").json()
    live_gateway.admin.post(
        f"/api/v1/subscriptions/{subscription}/ack", json={"cursor": pulled["cursor"]}
    ).raise_for_status()
    cleared(live_gateway, lagging)
    numbers = itertools.count()
    wait_for(
        lambda: live_gateway.publish(silent, prefix=f"more-{next(numbers)}") and not alarms(live_gateway, silent),
        WITHIN_S,
        about="the alarm is cleared while it publishes",
    )
    told = wait_for(
        lambda: found if (found := types(live_gateway, f"{lagging}.admin"))[-1:] == ["alarm.cleared"] else [],
        WITHIN_S,
        about="the event, which follows the row",
    )
    wait_for(lambda: "alarm.cleared" in types(live_gateway, "domain.admin"), WITHIN_S, about="the domain's event")
    assert (told[0], told[-1], told.count("alarm.raised")) == ("alarm.raised", "alarm.cleared", 1)
    assert "alarm.acknowledged" in told
    assert {"alarm.raised", "alarm.cleared"} <= set(types(live_gateway, "domain.admin"))
    late = live_gateway.admin.post(f"/api/v1/alarms/{alarm['id']}/acknowledge", json={})
    assert (late.status_code, late.json()["type"]) == (409, "urn:herald:problem:conflict")


def test_rules_of_the_domain_and_of_leases(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(lease_s=600, watch=[{"lease_gap": {"s": 3000}, "for_s": 0}])
    rules = {"watch": [{"history_quota": {"percent": 1}, "for_s": 0}, {"backlog": {"oldest_s": 60}}]}
    put = live_gateway.admin.put("/api/v1/watches", json=rules)
    assert (put.status_code, put.json()["version"]) == (200, 1)
    assert live_gateway.admin.put("/api/v1/watches", json=rules).json()["version"] == 1, "nothing changed"
    stale = live_gateway.admin.put("/api/v1/watches", json={"watch": []}, headers={"If-Match": '"7"'})
    assert stale.status_code == 412

    assert "expires in" in raised(live_gateway, rp)["detail"]
    live_gateway.admin.patch(f"/api/v1/rps/{rp}", json={"watch": []}).raise_for_status()
    cleared(live_gateway, rp)
    assert alarms(live_gateway, rp, "cleared")[0]["cleared"]["why"] == "The rule was removed or changed."
    state = live_gateway.admin.get("/api/v1/admin/snapshot").json()["state"]
    assert {rule["kind"] for rule in state["watches"].values() if rule["rp"] is None} == {"history_quota", "backlog"}
    assert live_gateway.admin.put("/api/v1/watches", json={"watch": []}).json()["version"] == 2


@pytest.mark.long
def test_what_waits_for_a_peer_a_gateway_that_hangs_and_a_full_quota_are_told(live_gateway: LiveGateway) -> None:
    """Backlog at an RP and in the domain, a gateway's late loop, histories near their quota: all at once, and kept again."""
    rules = [
        {"backlog": {"events": BEHIND - 1, "peer": PEER}, "for_s": 0, "severity": "critical"},
        {"process_lag": {"ms": 500}, "for_s": 0},
        {"history_quota": {"percent": 2}, "for_s": 0},
    ]
    live_gateway.admin.put("/api/v1/watches", json={"watch": rules}).raise_for_status()
    quota = live_gateway.config.history_quota_bytes
    large = live_gateway.create_rp(history={"max_bytes": quota // 40})
    with live_gateway.python("-m", "tests.operations.peer_behind") as peer:
        live_gateway.pause_gateway(True, gateway=1)
        time.sleep(PAUSED_S)  # a gateway that hangs for so long
        live_gateway.pause_gateway(False, gateway=1)
        assert peer.stdin
        assert peer.stdout
        rp = peer.stdout.readline().strip()
        live_gateway.admin.patch(
            f"/api/v1/rps/{rp}", json={"watch": [{"backlog": {"events": 1}, "for_s": 0}]}
        ).raise_for_status()

        hung = ("process_lag", _id(live_gateway, 1), None)
        wanted = {("backlog", PEER, rp), ("backlog", PEER, None), ("history_quota", "", None), hung}
        wait_for(lambda: wanted <= told(live_gateway, "all").keys(), WITHIN_S, about=f"alarms about {wanted}")
        found = told(live_gateway, "all")
        late = found[hung]["values"][0]
        assert late["value"] > late["limit"] == 500
        assert found[hung]["detail"].startswith(f"The event loop of gateway {hung[1]} was {late['value']:g} ms late")
        assert found["backlog", PEER, rp]["detail"] == (
            f"The peer {PEER}, of events of {rp}, is {BEHIND} events behind, 1 are allowed."
        )
        assert found["backlog", PEER, None]["values"] == [
            {"name": "events", "value": BEHIND, "limit": BEHIND - 1, "unit": "events"}
        ]
        assert found["backlog", PEER, None]["severity"] == "critical"
        assert found["history_quota", "", None]["values"][0]["value"] > 2

        peer.stdin.write("the peer takes them\n")
        peer.stdin.flush()
        live_gateway.admin.delete(f"/api/v1/rps/{large}").raise_for_status()
        wait_for(lambda: wanted <= told(live_gateway, "cleared").keys(), WITHIN_S, about="all of them are cleared")
    assert {told(live_gateway, "cleared")[one]["cleared"]["why"] for one in wanted} == {"The rule is kept again."}
    live_gateway.admin.put("/api/v1/watches", json={"watch": []}).raise_for_status()


def told(live_gateway: LiveGateway, state: str) -> dict[tuple[str, str, str | None], dict[str, Any]]:
    """The alarms in a state, of each rule and thing the first, by kind, about and RP."""
    return {(one["kind"], one["about"], one["rp"]): one for one in alarms(live_gateway, state=state)}


async def test_publishes_are_refused_while_the_audience_is_away(live_gateway: LiveGateway) -> None:
    """Refused, taken while the auditor reads at another gateway, refused again when that gateway is killed."""
    auditors = {"label": "auditors", "at_least": 1, "claims": {"role": {"equals": "auditor"}}}
    rp = await asyncio.to_thread(
        live_gateway.create_rp, audience=[auditors, {"label": "anybody", "at_least": 1, "publishing": "flag"}]
    )

    def publish() -> Any:
        return live_gateway.admin.post(f"/api/v1/rps/{rp}/events", json=event("e"), headers=STRUCTURED)

    refused = await asyncio.to_thread(publish)
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:herald:problem:audience-missing")
    assert refused.json()["missing"] == [{"label": "auditors", "at_least": 1, "present": 0}]
    async with (
        Client(live_gateway, subject="root", admin=True) as publisher,
        Client(live_gateway, gateway=1, subject="ann", role="auditor") as auditor,
        Client(live_gateway, gateway=0, subject="ben", role="guest") as guest,
    ):
        assert await publisher.refused("publish", rp=rp, event=event("a")) == "audience-missing"
        await guest.ok("subscribe", rp=rp)
        assert await publisher.refused("publish", rp=rp, event=event("a")) == "audience-missing"
        await auditor.ok("subscribe", rp=rp)

        async def taken() -> bool:
            return (await publisher.ask("publish", rp=rp, event=event("b")))["op"] == "ok"

        async with asyncio.timeout(WITHIN_S):
            while not await taken():  # noqa: ASYNC110 - another process's state; the auditor's gateway tells the others within moments
                await asyncio.sleep(0.02)
        assert (await asyncio.to_thread(publish)).status_code == 201
        await until(lambda: {one["about"] for one in alarms(live_gateway, rp)} == set(), "no alarm")
        live_gateway.kill_gateway(1)
        async with asyncio.timeout(WITHIN_S):
            while await taken():  # noqa: ASYNC110 - another process's state
                await asyncio.sleep(0.05)
        assert await publisher.refused("publish", rp=rp, event=event("c")) == "audience-missing"
    wanted = {("audience", "auditors", "critical"), ("audience", "anybody", "warning")}
    members = ("kind", "about", "severity")
    await until(
        lambda: {tuple(one[name] for name in members) for one in alarms(live_gateway, rp)} == wanted, "both alarms"
    )
    await asyncio.to_thread(live_gateway.admin.patch, f"/api/v1/rps/{rp}", json={"audience": None})
    assert (await asyncio.to_thread(publish)).status_code == 201
    live_gateway.start_gateway(1)


async def test_an_audience_is_counted_by_its_new_claims_though_python_holds_them_to_be_equal(
    live_gateway: LiveGateway,
) -> None:
    """1 becomes true: the reader whose claim is 1 counts no longer, and the one whose claim is true does."""

    def audience(level: Any) -> list[Any]:
        return [{"label": "a", "at_least": 1, "claims": {"level": {"equals": level}}}]

    rp = await asyncio.to_thread(live_gateway.create_rp, audience=audience(1))
    async with (
        Client(live_gateway, subject="root", admin=True) as publisher,
        Client(live_gateway, subject="ann", level=1) as number,
        Client(live_gateway, subject="ben", level=True) as truth,
    ):

        async def taken() -> bool:
            return (await publisher.ask("publish", rp=rp, event=event("b")))["op"] == "ok"

        await number.ok("subscribe", rp=rp)
        assert await taken()
        await asyncio.to_thread(live_gateway.admin.patch, f"/api/v1/rps/{rp}", json={"audience": audience(True)})
        async with asyncio.timeout(WITHIN_S):
            while await taken():  # noqa: ASYNC110 - another process's state
                await asyncio.sleep(0.05)
        await truth.ok("subscribe", rp=rp)
        async with asyncio.timeout(WITHIN_S):
            while not await taken():  # noqa: ASYNC110 - another process's state
                await asyncio.sleep(0.05)


def test_another_gateway_watches_when_the_leader_is_killed(live_gateway: LiveGateway) -> None:
    rp = live_gateway.create_rp(watch=[{"silence": {"s": 1}, "for_s": 0}])
    first = raised(live_gateway, rp)
    with live_gateway.redis as client:
        leader = wait_for(lambda: client.get("herald:watching-turn"), WITHIN_S, about="somebody leads")
        gateways = [number for number in range(2) if _id(live_gateway, number) == leader.decode()]
        (killed,) = gateways
        live_gateway.kill_gateway(killed)
        left = 1 - killed
        wait_for(lambda: client.get("herald:watching-turn") not in (None, leader), WITHIN_S, about="another one leads")
    assert [one["id"] for one in alarms(live_gateway, rp, gateway=left)] == [first["id"]], (
        "it goes on, and is not raised again"
    )
    with live_gateway.http("root", admin=True, gateway=left) as client:
        client.post(f"/api/v1/rps/{rp}/events", json=event("again"), headers=STRUCTURED).raise_for_status()
        client.delete(f"/api/v1/rps/{rp}").raise_for_status()
        everything = client.get("/api/v1/alarms", params={"state": "cleared"}).json()["items"]
    assert first["id"] in {one["id"] for one in everything if one["rp"] == rp}, "cleared with its RP"


def _id(live_gateway: LiveGateway, number: int) -> str:
    """The id of the gateway process with this number: its own sessions are named by it."""
    name = f"seeker-{number}"
    with (
        live_gateway.http(name, admin=True, gateway=number) as client,
        client.stream("GET", "/api/v1/rps/domain.admin/stream") as answer,
    ):
        assert answer.status_code == 200

        def rows() -> list[dict[str, Any]]:  # those of gateways that answer in time
            return list(client.get("/api/v1/sessions", params={"principal": name}).json()["items"])

        (row,) = wait_for(rows, WITHIN_S, about="the gateway tells its session")
    return str(row["gateway"])


STRUCTURED = {"content-type": "application/cloudevents+json"}
