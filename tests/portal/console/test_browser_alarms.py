"""The page of alarms in a real browser: one appears live, is acknowledged, goes, and is found in the history."""

from __future__ import annotations

import re
from typing import Any

import pytest

from demo.harness.servers import Domain
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import PHONE, WITHIN_MS, Closing, Console, created, expect_to_fit, publish
from tests.subscriptions.push.receiver import Receiver, own_host

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
        badge = page.locator("#alarm-count")
        expect(badge).to_have_text(re.compile(r"^\d+$"))
        expect(page).to_have_title(re.compile(r"^\(\d+\) Alarms"))
        expect(row.get_by_role("link", name="Rule")).to_have_attribute("href", f"/rps/{rp}#watching")
        expect(row.get_by_role("link", name="What to do")).to_have_attribute("href", "/docs/alarms#lag")
        row.get_by_role("button", name="Mute…").click()
        page.get_by_role("dialog").get_by_label("Reason").fill("planned work")
        page.get_by_role("dialog").get_by_role("button", name="Mute").click()
        expect(row).to_contain_text("muted until")
        expect(row).to_contain_text("planned work")
        muted = client.get("/api/v1/alarms", params={"rp": rp}).json()["items"]
        assert [one["muted"]["reason"] for one in muted if one["about"] == subscription] == ["planned work"]
        row.get_by_role("button", name="Unmute").click()
        expect(row).not_to_contain_text("muted until")

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
        page.get_by_label("Show", exact=True).select_option("cleared")
        expect(row).to_contain_text("cleared")
        expect(row.get_by_role("button")).to_have_count(0)
        page.set_viewport_size(PHONE)
        assert_accessible(page)
        expect_to_fit(page)
        client.delete(f"/api/v1/rps/{rp}").raise_for_status()


def test_a_contact_point_is_added_tested_notified_and_deleted(browser: Any, domain: Domain) -> None:
    with Closing(Console(browser, domain)) as console, Receiver(host=own_host()) as receiver:
        console.log_in()
        page = console.go("/alarms")
        expect(page.get_by_text("Nobody is notified")).to_be_visible()
        page.get_by_role("button", name="Add…").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("on call")
        dialog.get_by_label("URL").fill(receiver.url("/ok?key=hidden"))
        dialog.get_by_role("button", name="Add").click()
        secret = page.get_by_role("dialog", name="Keep the signing secret")
        expect(secret).to_contain_text("whsec_")
        secret.get_by_role("button", name="Done").click()
        row = page.locator("#contact-points tbody tr").filter(has_text="on call")
        expect(row).to_contain_text("all alarms")
        expect(row).not_to_contain_text("hidden")
        row.get_by_role("button", name="Send a test").click()
        expect(page.locator("#toasts")).to_contain_text("on call accepted the test")
        sent = [event["type"] for event in receiver.events("/ok?key=hidden")]
        assert "io.herald.alarms.tested" in sent, sent  # and alarms, if some were raised meanwhile
        assert_accessible(page)
        row.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_text("Nobody is notified")).to_be_visible()
