"""The policy editor in a real browser: rows and JSON in step, checked by the domain, explained before anything is saved."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from demo.harness.servers import Domain
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import Closing, Console, created
from tests.portal.console.keyboard import assert_usable_by_keyboard

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.long]

SENSORS: dict[str, Any] = {
    "issuer": "domain",
    "claims": {"sub": {"in": ["roof", "cellar"]}},
    "allow": ["describe", "publish"],
}
EVERYBODY: dict[str, Any] = {"issuer": "anyone", "allow": ["describe", "subscribe", "history"]}


def test_a_policy_is_edited_as_rows_or_json_and_explained_before_it_is_saved(browser: Any, domain: Domain) -> None:
    with domain.http() as client, Closing(Console(browser, domain)) as console:
        rp = created(client, name="edited/policy", policy=[SENSORS])
        page = console.log_in().go(f"/rps/{rp}#access")
        page.get_by_role("button", name="Change…").and_(page.locator("#change-policy")).click()
        rows = page.locator(".policy-row")
        expect(rows).to_have_count(1)
        expect(rows.get_by_label("Rule 1, condition 1: texts, one per line")).to_have_value("roof\ncellar")
        page.get_by_role("button", name="Everybody: read only").press("Enter")
        page.get_by_role("button", name="A peer: read, publish and replicate").click()
        page.get_by_role(
            "button", name="One subject: nothing"
        ).click()  # although a fault of the rule before is told then
        page.get_by_role("button", name="Remove rule 4").press("Enter")
        expect(rows.nth(2)).to_contain_text("Never decides: rule 2 matches everybody")
        page.get_by_role("button", name="Move rule 3 up").press("Enter")
        expect(rows.nth(1).get_by_label("Rule 2: who")).to_have_value("peer")
        page.get_by_role("button", name="Save policy").click()  # nothing is saved without the peer's name
        expect(rows.nth(1).get_by_role("alert")).to_have_text("Enter the name of the peer.")
        rows.nth(1).get_by_label("Rule 2: Peer").fill("Not A Peer")
        expect(rows.nth(1).get_by_role("alert")).to_contain_text("issuer is")  # as the domain says it
        rows.nth(1).get_by_label("Rule 2: Peer").fill("b.example")
        expect(rows.nth(1).get_by_role("alert")).to_have_count(0)
        rows.nth(1).get_by_label("publish").uncheck()
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            assert_accessible(page)
        assert_usable_by_keyboard(page)

        page.get_by_label("Operation", exact=True).select_option("subscribe")
        page.get_by_role("radio", name="No token").check()
        page.get_by_role("button", name="Explain").click()
        explained = page.locator("#explanation")
        expect(explained).to_contain_text(re.compile(r"allowed\s+subscribe\s+decided by rule 3"))
        expect(explained).to_contain_text(re.compile(r"Saved policy:\s+refused\s+decided by no rule"))
        assert client.get(f"/api/v1/rps/{rp}").json()["policy"] == [SENSORS]

        page.get_by_role("radio", name="JSON").check()
        typed = page.get_by_label("Rules, as JSON")
        peer = {"issuer": "peer:b.example", "allow": ["describe", "subscribe", "history", "replicate"]}
        assert json.loads(typed.input_value()) == [SENSORS, peer, EVERYBODY]
        typed.fill("[{")
        expect(page.locator("#policy-json-fault")).to_contain_text("Not valid JSON")
        expect(page.get_by_role("radio", name="Rules")).to_be_disabled()
        wanted = [peer, {**EVERYBODY, "claims": {"age": {"range": {"min": 18}}}}]
        typed.fill(json.dumps(wanted))
        page.get_by_role("radio", name="Rules").check()
        expect(rows).to_have_count(2)
        expect(rows.nth(1).get_by_label("Rule 2, condition 1: from")).to_have_value("18")
        rows.nth(1).get_by_role("radio", name="Refuse").check()
        page.get_by_role("button", name="Save policy").click()
        expect(page.locator("#rules li")).to_have_count(2)
        expect(page.locator("#policy-editor")).to_be_hidden()
        assert client.get(f"/api/v1/rps/{rp}").json()["policy"] == [peer, {**wanted[1], "allow": []}]
        assert page.get_by_role("link", name="More about policies").get_attribute("href") == "/docs/policy"
