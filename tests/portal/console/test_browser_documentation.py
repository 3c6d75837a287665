"""The pages of the API and of the documents in a real browser, for everybody: light and dark, wide and on a phone."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from demo.harness.servers import Domain
from tests.gateway.server import PLAIN
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import PHONE, WIDE, Closing, Console

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]
API_SCRIPT_BYTES_MAX = 8 * 1024  # compressed; lit-html, which other pages have, is another file


def fits(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.parametrize(
    ("viewport", "scheme"), [pytest.param(WIDE, "light", marks=[pytest.mark.long, pytest.mark.soak]), (PHONE, "dark")]
)
def test_every_page_of_the_documentation_is_readable_by_everybody(
    browser: Any, domain: Domain, viewport: dict[str, int], scheme: str
) -> None:
    with Closing(Console(browser, domain, viewport, color_scheme=scheme)) as console:
        page = console.go("/docs/")
        expect(page.get_by_role("heading", level=1)).to_have_text("Documents")
        for path in ("/docs/protocol", "/docs/screens/", "/docs/settings"):
            console.go(path)
            assert fits(page), path
        for path in ("/docs/how-to/webhooks", "/docs/search?q=cursor"):
            console.go(path)
            assert fits(page), path
            assert_accessible(page)
        console.go("/docs/")
        page.get_by_role("searchbox").fill("close codes")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="Protocol", exact=True).last.click()
        page.wait_for_url(re.compile("/docs/protocol$"))
        page.get_by_role("navigation", name="On this page").get_by_role("link", name="Limits").click()
        page.wait_for_url(re.compile("#limits$"))


@pytest.mark.parametrize(
    ("viewport", "scheme"), [(WIDE, "dark"), pytest.param(PHONE, "light", marks=[pytest.mark.long, pytest.mark.soak])]
)
def test_every_operation_of_the_api_is_shown_and_opened(
    browser: Any, domain: Domain, viewport: dict[str, int], scheme: str
) -> None:
    document = httpx.get(f"{domain.url}/api/v1/schema", **PLAIN).json()
    count = sum(
        method in item for item in document["paths"].values() for method in ("get", "post", "put", "patch", "delete")
    )
    with Closing(Console(browser, domain, viewport, color_scheme=scheme)) as console:
        page = console.go("/api/docs")
        expect(page.locator("#api")).to_have_attribute("aria-busy", "false")
        expect(page.locator(".api-entry")).to_have_count(count)
        expect(page.get_by_text("Loading")).to_have_count(0)
        assert fits(page)
        page.get_by_role("searchbox", name="Search operations").fill("publish event")
        expect(page.locator("#rps_publish")).to_be_visible()
        expect(page.locator(".api-entry")).not_to_have_count(count)
        page.locator("#rps_publish > summary").click()
        expect(page.locator("#rps_publish")).to_contain_text("application/cloudevents+json")
        expect(page.locator("#rps_publish pre").first).to_contain_text(f"curl -X POST '{domain.url}/api/v1/rps/")
        assert_accessible(page)
        assert fits(page)
        console.go("/api/docs#rps_create")
        expect(page.locator("#rps_create")).to_have_attribute("open", "")
        page.locator("#rps_create").get_by_text("Members of HistoryRequest").first.click()
        expect(page.locator("#rps_create")).to_contain_text("max_events")
        assert_accessible(page)
        page.get_by_role("link", name="WebSocket, streams, deliveries").click()
        expect(page.locator("#publish")).to_be_visible()
        page.locator("#publish > summary").click()
        expect(page.locator("#publish")).to_contain_text('"op": "publish"')
        assert_accessible(page)
        assert fits(page)


def test_the_page_loads_little_and_from_this_domain_alone(browser: Any, domain: Domain) -> None:
    with Closing(Console(browser, domain)) as console:
        answers: list[Any] = []
        console.page.on("response", lambda answer: answers.append(answer))
        console.go("/api/docs")
        expect(console.page.locator("#api")).to_have_attribute("aria-busy", "false")
        console.page.wait_for_load_state("networkidle")
        assert all(answer.url.startswith(domain.url) for answer in answers), [answer.url for answer in answers]
        own = [answer for answer in answers if re.search(r"/dist/api-\w+\.js$", answer.url)]
        assert [answer.request.sizes()["responseBodySize"] <= API_SCRIPT_BYTES_MAX for answer in own] == [True]


@pytest.mark.long
def test_every_operation_can_be_opened(browser: Any, domain: Domain) -> None:
    with Closing(Console(browser, domain)) as console:
        for path in ("/api/docs", "/api/docs/events"):
            page = console.go(path)
            expect(page.locator("#api")).to_have_attribute("aria-busy", "false")
            page.evaluate("for (const one of document.querySelectorAll('.api-entry')) one.open = true")
            expect(page.locator(".api-entry[open] > .api-body:empty")).to_have_count(0)
            expect(page.locator(".api-body:not(:has(h3))")).to_have_count(0)
