"""Loss of durable subscriptions: one figure everywhere, an alarm before it, while it goes on, and after its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from demo.harness.servers import wait_for
from tests.gateway.server import LiveGateway, Prepared
from tests.operations.test_watched import alarms, cleared, types

WITHIN_S = 60.0
HISTORY = 50


@pytest.fixture(scope="module")
def live_gateway(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    with LiveGateway(tmp_path_factory.mktemp("loss") / "var", prepared) as running:
        yield running
        assert "Traceback" not in running.log, running.log[-3000:]


def subscribed(live_gateway: LiveGateway, rp: str, **asked: Any) -> str:
    return str(live_gateway.admin.post(f"/api/v1/rps/{rp}/subscriptions", json=asked).json()["id"])


def lossy(live_gateway: LiveGateway, **asked: Any) -> str:
    return live_gateway.create_rp(history={"max_events": HISTORY}, **asked)


def of_loss(live_gateway: LiveGateway, rp: str, state: str = "open") -> list[dict[str, Any]]:
    return [one for one in alarms(live_gateway, rp, state) if one["kind"] == "loss"]


def losing(live_gateway: LiveGateway, rp: str, about: str = "an alarm about the loss") -> dict[str, Any]:
    def found() -> Any:
        return next((one for one in of_loss(live_gateway, rp) if "lost:" in one["detail"]), None)

    alarm: dict[str, Any] = wait_for(found, WITHIN_S, about=about)
    return alarm


@pytest.mark.long
def test_what_is_lost_is_the_same_figure_everywhere_and_that_of_the_pull(live_gateway: LiveGateway) -> None:
    """Without any rule: an alarm, critical, with the numbers; cleared, with what was lost, when the reader reads on."""
    rp = lossy(live_gateway, name="loss/everywhere")
    subscription = subscribed(live_gateway, rp)
    live_gateway.publish(rp, 3 * HISTORY)
    lag, lost = 3 * HISTORY, 2 * HISTORY

    pulled = live_gateway.admin.get(f"/api/v1/subscriptions/{subscription}/events").json()
    assert pulled["gap"]["to"] - pulled["gap"]["from"] + 1 == lost
    listed = live_gateway.admin.get("/api/v1/subscriptions", params={"sort": "lag"}).json()["items"]
    at_rp = live_gateway.admin.get(f"/api/v1/rps/{rp}/subscriptions").json()["items"]
    shown = live_gateway.admin.get(f"/api/v1/subscriptions/{subscription}").json()
    for one in (*listed, *at_rp, shown):
        assert (one["id"], one["lag"], one["lost"]) == (subscription, lag, lost)
    state = live_gateway.admin.get(f"/api/v1/rps/{rp}/snapshot").json()["state"]
    assert (state["subscriptions"][subscription]["lag"] | {"at": None, "oldest_at": None}) == {
        "events": lag,
        "lost": lost,
        "acknowledged": shown["cursor"],
        "oldest_at": None,
        "at": None,
    }

    alarm = losing(live_gateway, rp)
    assert (alarm["about"], alarm["severity"], alarm["lasting"]) == (subscription, "critical", False)
    assert alarm["detail"] == (
        f"The durable subscription {subscription} of /localhost/loss/everywhere/ is {lag} events behind, {lost} of "
        "them lost: they were trimmed from the history before they were read."
    )
    exposed = wait_for(lambda: metrics(live_gateway, "herald_subscriptions_losing"), WITHIN_S, about="the metric")
    assert (exposed, metrics(live_gateway, "herald_subscriptions_lost_events")) == (1, lost)
    assert metrics(live_gateway, "herald_subscriptions_lag_events_max") == lag

    live_gateway.admin.post(
        f"/api/v1/subscriptions/{subscription}/ack", json={"cursor": pulled["cursor"]}
    ).raise_for_status()
    cleared(live_gateway, rp)
    (done,) = of_loss(live_gateway, rp, "cleared")
    assert done["cleared"]["why"] == f"The subscription reads on; {lost} earlier events were lost."


def metrics(live_gateway: LiveGateway, name: str) -> float:
    with live_gateway.http("root", admin=True) as client:
        text = client.get("/metrics").text
    return sum(
        float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{"))
    )


@pytest.mark.long
def test_an_alarm_comes_before_the_loss_and_says_when_it_is(live_gateway: LiveGateway) -> None:
    rp = lossy(live_gateway)
    subscription = subscribed(live_gateway, rp)

    def warned() -> Any:
        """One event at a time: the alarm has to come before the history is full of what was not read."""
        lag = live_gateway.admin.get(f"/api/v1/subscriptions/{subscription}").json()
        if lag["lag"] < HISTORY - 5:
            live_gateway.publish(rp, prefix=f"slow-{time.monotonic_ns()}")
        return of_loss(live_gateway, rp)

    (alarm,) = wait_for(warned, 2 * WITHIN_S, every_s=0.3, about="an alarm before the loss")
    assert alarm["about"] == subscription
    assert "and loses events in about " in alarm["detail"]
    assert alarm["detail"].endswith(" at this rate.")
    values = {one["name"]: one for one in alarm["values"]}
    assert values["events"]["value"] < HISTORY == values["events"]["limit"]
    assert 0 < values["left"]["value"] <= values["left"]["limit"] == 600
    assert live_gateway.admin.get(f"/api/v1/subscriptions/{subscription}").json()["lost"] == 0, "it was told before"


def test_it_can_be_switched_off_at_an_rp_and_in_the_domain(live_gateway: LiveGateway) -> None:
    off = [{"loss": {"within_s": 0}}]
    silent, loud = lossy(live_gateway, watch=off), lossy(live_gateway)
    for rp in (silent, loud):
        subscribed(live_gateway, rp)
        live_gateway.publish(rp, 2 * HISTORY)
    losing(live_gateway, loud)
    assert of_loss(live_gateway, silent) == []
    live_gateway.admin.put("/api/v1/watches", json={"watch": off}).raise_for_status()
    cleared(live_gateway, loud)
    wait_for(lambda: of_loss(live_gateway, loud, "cleared"), WITHIN_S, about="its rule is no more")
    assert of_loss(live_gateway, loud, "cleared")[0]["cleared"]["why"] == "The rule was removed or changed."
    live_gateway.admin.patch(
        f"/api/v1/rps/{silent}", json={"watch": [{"loss": {"within_s": 60}, "severity": "warning", "for_s": 0}]}
    ).raise_for_status()
    assert losing(live_gateway, silent, "the RP's own rule")["severity"] == "warning", (
        "its own rule comes before the domain's"
    )
    live_gateway.admin.put("/api/v1/watches", json={"watch": []}).raise_for_status()


@pytest.mark.long
def test_what_ends_while_it_loses_leaves_an_alarm_until_somebody_acknowledges_it(live_gateway: LiveGateway) -> None:
    rp = lossy(live_gateway, name="loss/ended", watch=[{"lag": {"events": 5}, "severity": "critical", "for_s": 0}])
    subscription = subscribed(live_gateway, rp, lease_s=60)
    other = subscribed(live_gateway, rp)
    live_gateway.publish(rp, 2 * HISTORY)
    alarm = losing(live_gateway, rp)
    wait_for(lambda: len(alarms(live_gateway, rp)) == 4, WITHIN_S, about="lag and loss of both")
    expire(live_gateway, subscription)

    of_it = [one for one in alarms(live_gateway, rp) if one["about"] == subscription]
    assert [(one["kind"], one["lasting"], one["severity"]) for one in of_it] == [("loss", True, "critical")]
    assert of_it[0]["detail"] == (
        f"The durable subscription {subscription} of /localhost/loss/ended/ was 100 behind, 50 of them lost, when its "
        "lease expired."
    )
    (lag,) = [one for one in alarms(live_gateway, rp, "cleared") if one["about"] == subscription]
    assert (lag["kind"], lag["cleared"]["why"]) == (
        "lag",
        "Its lease expired while it was 100 behind, 50 of them lost.",
    )
    entries = live_gateway.admin.get("/api/v1/audit", params={"action": "subscription.expire"}).json()["items"]
    assert [(one["on"]["id"], one["who"], one["details"]["lag"], one["details"]["lost"]) for one in entries] == [
        (subscription, "domain", 100, 50)
    ]

    turns = len(types(live_gateway, f"{rp}.admin"))
    live_gateway.publish(rp, 1, prefix="on")
    wait_for(
        lambda: len(types(live_gateway, f"{rp}.admin")) > turns,
        2 * WITHIN_S,
        about="the watcher goes on with the other",
    )
    assert [one["id"] for one in alarms(live_gateway, rp) if one["about"] == subscription] == [of_it[0]["id"]]
    live_gateway.kill_gateway()
    live_gateway.start_gateway()
    wait_for(lambda: metrics(live_gateway, "herald_subscriptions_losing"), WITHIN_S, about="the next leader has looked")
    assert of_it[0]["id"] in {one["id"] for one in alarms(live_gateway, rp)}, "whoever takes over leaves it open"

    live_gateway.admin.post(
        f"/api/v1/alarms/{of_it[0]['id']}/acknowledge", json={"note": "told ann"}
    ).raise_for_status()
    done = next(one for one in alarms(live_gateway, rp, "cleared") if one["id"] == of_it[0]["id"])
    assert done["cleared"]["why"] == "root acknowledged it."
    assert alarm["rp"] == rp

    live_gateway.admin.delete(f"/api/v1/subscriptions/{other}").raise_for_status()
    wait_for(lambda: not alarms(live_gateway, rp), WITHIN_S, about="an operator who deletes it knows")
    whys = {one["cleared"]["why"] for one in alarms(live_gateway, rp, "cleared") if one["about"] == other}
    assert whys == {"It was deleted while it was 101 behind, 51 of them lost."}


def expire(live_gateway: LiveGateway, subscription: str) -> None:
    """End the lease now, as the worker does."""
    code = (
        "import django; django.setup()\n"
        "from datetime import timedelta; from django.utils import timezone\n"
        "from eventing.subscriptions.models import Subscription\n"
        "from eventing.operations.services.leases import subscriptions_expire\n"
        f"past = timezone.now() - timedelta(seconds=1)\n"
        f"Subscription.objects.filter(id='{subscription}').update(expires_at=past, warn_at=past)\n"
        "assert subscriptions_expire(now=timezone.now()) == 1\n"
    )
    with live_gateway.python("-c", code) as process:
        assert process.wait(180) == 0, process.stdout and process.stdout.read()
    with suppress(httpx.HTTPError):
        assert live_gateway.admin.get(f"/api/v1/subscriptions/{subscription}").status_code in (404, 410)
