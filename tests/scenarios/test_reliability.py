"""A target reliability among real domains: a link that drops data and answers probes is found by its data, and events take another way."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from demo.harness.network import Network, mesh
from demo.harness.servers import wait_for
from tests.gateway.server import Prepared

pytestmark = [pytest.mark.long, pytest.mark.soak, pytest.mark.processes, pytest.mark.timeout(600)]

TARGET = 0.9
LARGE = secrets.token_hex(20_000)
"""Data of events that make a request large; requests without events are a tenth of that."""
LARGE_BYTES = 24_000
FOUND_WITHIN_S = 120.0


@pytest.fixture(scope="module")
def domains(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Network]:
    """Three domains, all peers of each other, and members of one overlay."""
    settings: dict[str, Any] = {"records": 0, "push": 0, "lease_s_default": 3600}
    with Network(tmp_path_factory.mktemp("reliability"), "abc", seed=prepared.migrated, **settings) as network:
        network.shape(mesh("abc"))
        network["a"].ask("POST", "/api/v1/overlay/found")
        for name in "bc":
            network[name].ask("POST", "/api/v1/overlay/join", {"sponsor": "a.test"})
        yield network


def reliability(network: Network, at: str, rp: str) -> dict[str, Any]:
    found: dict[str, Any] = network[at].ask("GET", f"/api/v1/rps/{rp}/reliability")
    return found


def links_for(found: dict[str, Any], origin: str) -> set[tuple[str, ...]]:
    return {tuple(link["ends"]) for link in found["links"] if origin in link["origins"]}


def delivery(found: dict[str, Any], *ends: str) -> float:
    (share,) = [float(link["delivery"]) for link in found["links"] if tuple(link["ends"]) == ends]
    return share


def arrived(found: dict[str, Any], participant: str) -> tuple[float, float]:
    """Events that a participant held in time, and all that were judged."""
    (one,) = [one for one in found["participants"] if one["domain"] == participant]
    return (one["measured"] or 0.0) * one["events"], one["events"]


def publish_until(network: Network, rp: str, done: Callable[[], bool]) -> None:
    """Publish large events one by one until something is true, for FOUND_WITHIN_S at most."""
    deadline = time.monotonic() + FOUND_WITHIN_S
    while not done():
        assert time.monotonic() < deadline, json.dumps({at: reliability(network, at, rp) for at in "abc"})
        for _ in range(5):
            network.publish(rp, "a", data=LARGE)
            time.sleep(0.05)


def test_a_link_that_drops_data_and_answers_probes_is_found_and_events_arrive_as_planned_by_another_way(
    domains: Network,
) -> None:
    rp = domains.replicated_rp("a", "b", "c", reliability=TARGET, history={"max_events": 100, "max_bytes": 8_000_000})
    wait_for(lambda: reliability(domains, "b", rp)["target"] == TARGET, 60)
    publish_until(domains, rp, lambda: reliability(domains, "a", rp)["state"] == "met")
    assert delivery(reliability(domains, "a", rp), "a.test", "b.test") > 0.8

    dropping = domains.proxy("a", "b")
    dropping.drop_large(LARGE_BYTES, 2)

    def found_out() -> bool:
        seen = {at: reliability(domains, at, rp) for at in "abc"}
        around = {("a.test", "c.test"), ("b.test", "c.test")}
        return delivery(seen["a"], "a.test", "b.test") < 0.7 and all(
            one["state"] == "met" and around <= links_for(one, "a.test") for one in seen.values()
        )

    publish_until(domains, rp, found_out)
    told = domains["a"].ask("GET", f"/api/v1/rps/{rp}.admin/events?limit=500&after=earliest")["events"]
    assert any(event["type"] == "io.herald.routes.planned" for event in told)

    domains.converged(rp)
    before = {one: arrived(reliability(domains, "a", rp), one) for one in ("b.test", "c.test")}
    for _ in range(60):
        domains.publish(rp, "a", data=LARGE)
        time.sleep(0.1)
    wait_for(
        lambda: all(arrived(reliability(domains, "a", rp), one)[1] >= of[1] + 50 for one, of in before.items()), 60
    )
    for participant, (in_time, judged) in before.items():
        now_in_time, now_judged = arrived(reliability(domains, "a", rp), participant)
        assert (now_in_time - in_time) / (now_judged - judged) >= TARGET, participant
    domains.converged(rp)
