"""What all pages have in common for who looks for something, in a real browser: search, ranges of time, the zone of times; and the
search in events, and the page of sessions.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from demo.harness.servers import Domain
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import (
    PHONE,
    WITHIN_MS,
    Closing,
    Console,
    created,
    eventually,
    expect_to_fit,
    publish,
    resize,
)

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]


@pytest.mark.long
def test_search_ranges_and_zone_hold_on_every_page(browser: Any, domain: Domain) -> None:
    with Closing(Console(browser, domain)) as console, domain.http(admin=True) as client:
        console.log_in()
        rp = created(client, name="tools/north-pier")
        page = console.go("/")
        console.expect_pill("Live")
        page.locator("#range").get_by_text("6 h", exact=True).click()
        expect(page.locator("#rates-title")).to_have_text("Events per second, last 6 hours")
        expect(page.locator("#rates-begin")).to_contain_text("Data begins")

        page.keyboard.press("Control+k")
        search = page.get_by_role("dialog", name="Search")
        search.get_by_role("combobox").fill("north-p")
        expect(search.get_by_role("option").filter(has_text="tools/north-pier")).to_have_attribute(
            "aria-selected", "true"
        )
        assert_accessible(page)
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(f"/rps/{rp}"))
        expect(page.locator("#load-title")).to_have_text("Events per second, last 6 hours")
        page.get_by_role("button", name="Search").click()
        search.get_by_role("combobox").fill("quot")
        expect(search.get_by_role("option")).to_have_text(["Quotas"])
        page.keyboard.press("Escape")
        expect(search).to_be_hidden()

        created_at = page.locator(".facts time[data-local]").first
        expect(created_at).not_to_contain_text("UTC")
        page.get_by_role("button", name=re.compile("Your account")).click()
        page.locator("#times").get_by_text("UTC", exact=True).click()
        expect(created_at).to_contain_text("UTC")
        console.go("/system")
        expect(page.locator("#past-title")).to_have_text("Gateways, last 6 hours")
        expect(page.locator("#zone-said")).to_have_text("UTC")
        expect(page.locator("#past-cpu canvas")).to_be_visible()
        page.set_viewport_size(PHONE)
        expect_to_fit(page)
        client.delete(f"/api/v1/rps/{rp}").raise_for_status()


def test_events_are_searched_downloaded_and_linked(browser: Any, domain: Domain) -> None:
    with Closing(Console(browser, domain)) as console, domain.http(admin=True) as client:
        console.log_in()
        rp = created(client, name="tools/events")
        publish(client, rp, *({"n": number, "word": "needle" if number == 3 else "hay"} for number in range(1, 8)))
        console.open(rp)
        page = console.page
        page.get_by_text("Search and download").click()
        page.get_by_label("Text", exact=True).first.fill("NEEDLE")
        page.locator("#event-filters").get_by_role("button", name="Search").click()
        found = page.locator("#found > li")
        expect(found).to_have_count(1)
        expect(found.locator(".ev-offset")).to_have_text("#3")
        expect(page.locator("#search-said")).to_contain_text("7 of 7 events read")
        expect(page.locator("#events")).to_be_hidden()
        assert_accessible(page)
        with page.expect_download() as download:
            page.get_by_role("link", name="Download JSON lines").click()
        (line,) = download.value.path().read_text().splitlines()
        assert json.loads(line)["data"] == {"n": 3, "word": "needle"}

        found.locator("summary").click()
        link = found.get_by_role("link", name="Link to this event").get_attribute("href")
        page.get_by_role("button", name="Back to live events").click()
        expect(page.locator("#events")).to_be_visible()
        console.go(link)
        opened = page.locator("#one-event")
        expect(opened).to_contain_text('"word": "needle"')
        expect(opened.locator(".ev-offset")).to_have_text("#3")
        cut = "[...document.querySelectorAll('.ev-time')].filter((one) => one.scrollWidth > one.clientWidth + 1).length"
        for width in (1440, 1024, 390):
            resize(page, width)
            assert page.evaluate(cut) == 0, f"no time is cut at {width}"
        console.go(f"/rps/{rp}?event=999#events-tab")
        expect(opened).to_contain_text("cannot be shown")
        client.delete(f"/api/v1/rps/{rp}").raise_for_status()


def test_sessions_of_the_domain_are_listed_and_ended(browser: Any, domain: Domain) -> None:
    with Closing(Console(browser, domain)) as console, domain.http(admin=True) as client:
        console.log_in()
        rp = created(client, name="tools/sessions")
        headers = {"Authorization": client.headers["Authorization"]}
        url = f"ws{domain.url.removeprefix('http')}/ws"
        protocols = [Subprotocol("herald.v1")]
        with connect(url, additional_headers=headers, subprotocols=protocols, open_timeout=60, proxy=None) as reader:
            reader.send(json.dumps({"op": "subscribe", "id": 1, "rp": rp, "from": "now"}))
            while json.loads(reader.recv(timeout=60)).get("id") != 1:
                pass
            page = console.go("/sessions")
            console.expect_pill("Live")
            row = page.locator("#listing tbody tr").filter(has_text="/localhost/tools/sessions/")
            expect(row).to_be_visible()
            expect(row).to_contain_text("WebSocket")
            expect(row).to_contain_text("127.0.0.1")
            expect(row).to_contain_text(re.compile(r"\d\s/s"))
            assert_accessible(page)
            row.get_by_role("button", name="End…").click()
            dialog = page.get_by_role("dialog")
            dialog.get_by_label("Reason").fill("floods")
            dialog.get_by_role("button", name="End session").click()
            expect(row).to_be_hidden(timeout=WITHIN_MS)
        eventually(page, lambda: "floods" in _reasons(client), "the reason is in the audit")
        client.delete(f"/api/v1/rps/{rp}").raise_for_status()


def _reasons(client: Any) -> list[str]:
    items = client.get("/api/v1/audit", params={"action": "session.disconnect"}).json()["items"]
    return [one["details"]["reason"] for one in items if one["details"].get("reason")]
