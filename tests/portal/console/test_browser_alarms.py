"""The page of alarms in a real browser: one appears live, is acknowledged, goes, and is found in the history."""

from __future__ import annotations

import re
from typing import Any

import pytest

from demo.harness.servers import Domain
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import PHONE, WITHIN_MS, Closing, Console, created, publish

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]


def test_an_alarm_appears_is_acknowledged_and_goes_without_a_reload(browser: Any, domain: Domain) -> None:
    with Closing(Console(browser, domain)) as console, domain.http() as client:
        console.log_in()
        page = console.go("/alarms")
        console.expect_pill("Live")
        expect(page.get_by_role("navigation").get_by_role("link", name="Alarms")).to_have_attribute(
            "aria-current", "page"
        )
        rp = created(client, name="alarms/plant", watch=[{"lag": {"events": 2}, "severity": "critical", "for_s": 0}])
        expect(page.locator("#watched")).to_have_text(re.compile(r"^[1-9][0-9]* watch rules?$"))
        subscription = client.post(f"/api/v1/rps/{rp}/subscriptions", json={}).json()["id"]
        publish(client, rp, 1, 2, 3)

        row = page.locator("#listing tbody tr").filter(has_text=subscription)
        expect(row).to_contain_text("is 3 events behind, 2 are allowed.")
        expect(row).to_contain_text("/localhost/alarms/plant/")
        expect(row.locator(".badge").first).to_have_text("critical")
        assert_accessible(page)

        row.get_by_role("button", name="Acknowledge").click()
        page.get_by_role("dialog").get_by_label("Note").fill("the reader is being moved")
        page.get_by_role("dialog").get_by_role("button", name="Acknowledge").click()
        expect(row).to_contain_text("acknowledged")
        expect(row).to_contain_text("the reader is being moved")

        console.go("/")  # from the alarm to its cause, and what can be done about it: one click
        page.locator("#alarms").get_by_role("link", name=re.compile(subscription)).click()
        slow = page.locator("#listing tbody tr").filter(has_text=subscription)
        expect(slow).to_contain_text("3 behind")
        expect(slow.get_by_role("button", name="Delete")).to_be_visible()
        console.go("/alarms")
        expect(row).to_contain_text("acknowledged")

        client.delete(f"/api/v1/subscriptions/{subscription}").raise_for_status()
        expect(row).to_be_hidden(timeout=WITHIN_MS)
        page.get_by_label("Show").select_option("cleared")
        expect(row).to_contain_text("cleared")
        expect(row.get_by_role("button")).to_have_count(0)
        page.set_viewport_size(PHONE)
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        client.delete(f"/api/v1/rps/{rp}").raise_for_status()
