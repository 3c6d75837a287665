"""A proposal of the planner between real domains, on the page Self-administration: seen, approved and carried out, without a reload.

The load is stated by a gateway that does not exist, in the home's Redis; all else is real.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from demo.harness.network import Network, mesh
from eventing.store import keys
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import Closing, Console

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.long]

SHAPE = mesh("ab")
GATEWAY = "of-the-browser-test"
PROPOSED_MS, DONE_MS = 180_000, 180_000
TO_ALL = ["describe", "publish", "subscribe", "history"]
POLICY = [{"issuer": "domain", "allow": TO_ALL}, {"issuer": "peer:b.test", "allow": [*TO_ALL, "replicate"]}]


@pytest.fixture
def full(network: Network) -> Iterator[str]:
    """An RP at a with 9,000 readers and a target, in mode advise; b accepts. All is as before afterwards."""
    rp = network.create_rp("a", policy=POLICY, reliability=0.9)
    network["b"].ask("PATCH", "/api/v1/plan/invitations", {"whom": "peers"})
    network["a"].ask("PATCH", f"/api/v1/plan/rps/{rp}", {"mode": "advise"})
    sample = {"interval_s": 1.0, "sessions": 9000, "hot": [{"rp": rp, "events_in": 2, "readings": 9000}]}
    with redis.Redis(unix_socket_path=str(network["a"].data_dir / "redis.sock")) as store:
        store.set(keys.gateway_load_key(GATEWAY), json.dumps(sample), ex=600)
        store.zadd(keys.GATEWAYS_KEY, {GATEWAY: time.time() + 600})
        yield rp
        store.delete(keys.gateway_load_key(GATEWAY))
        store.zrem(keys.GATEWAYS_KEY, GATEWAY)
    network["a"].ask("PATCH", f"/api/v1/plan/rps/{rp}", {"mode": "off"})
    network["b"].ask("PATCH", "/api/v1/plan/invitations", {"whom": "trusted-peers"})


def row_of(page: Any, rp: str, part: str) -> Any:
    return page.locator(f"{part} tbody tr").filter(has=page.locator(f'a[href="/rps/{rp}#replicas"]'))


def test_a_proposal_appears_is_explained_approved_and_carried_out(browser: Any, network: Network, full: str) -> None:
    with Closing(Console(browser, network["a"])) as console:
        page = console.log_in().go("/self-administration")
        console.expect_pill("Live")
        decision = row_of(page, full, "#listing").first
        expect(decision).to_contain_text("add b.test", timeout=PROPOSED_MS)
        expect(decision).to_contain_text(
            re.compile(r"The pressure of a\.test is \d+%")
        )  # 90, or what a busy machine adds
        decision.locator("summary").click()
        expect(decision.locator(".planning-inputs")).to_contain_text("pressure")
        expect(page.locator("#loads tbody tr").first).to_contain_text(re.compile(r"[1-9]\d+\u202f%"))
        assert_accessible(page)
        page.get_by_role("button", name="Dry run", exact=True).click()
        expect(page.locator("#next")).to_contain_text("add b.test")
        decision.get_by_role("button", name="Approve").click()
        expect(decision.locator(".badge")).to_have_text("done", timeout=DONE_MS)
        expect(page.locator("#limits")).to_contain_text("1 of 6")
        target = row_of(page, full, "#routes")
        expect(target.locator(".badge").first).not_to_have_text("no plan", timeout=DONE_MS)
        target.get_by_role("button", name="Dry run").click()
        expect(page.locator("#routes-preview")).to_contain_text("b.test")
        expect(page.locator("#routes-preview")).to_contain_text("Nothing was changed.")
        assert_accessible(page)
