"""A domain without workers (docs/decisions/0073): three processes, and all that time brings about is done."""

from __future__ import annotations

import httpx
import pytest

from demo.harness.servers import wait_for
from tests.conftest import DomainFactory
from tests.gateway.server import PLAIN

pytestmark = [pytest.mark.processes, pytest.mark.timeout(180)]


def test_a_domain_without_workers_is_ready_and_its_forwarder_runs_every_periodic_task(
    new_domain: DomainFactory,
) -> None:
    domain = new_domain(workers=0, reports="off")
    assert set(domain.pids) == {"redis", "gateway", "forwarder"}
    checks = httpx.get(f"{domain.url}/readyz", **PLAIN).json()["checks"]
    assert {"workers", "beat"}.isdisjoint(checks)
    with domain.http(admin=True) as admin:
        made = admin.post("/api/v1/rps", json={"lease_s": 2})
        rp = made.json()["id"]

        def reaped() -> bool:
            page = admin.get("/api/v1/rps/domain.admin/events?limit=500&after=earliest").json()
            return any(
                one["type"] == "io.herald.rp.deleted" and one["data"]["rp"]["id"] == rp for one in page["events"]
            )

        wait_for(reaped, 30, every_s=0.2, about="the expired RP is removed")
