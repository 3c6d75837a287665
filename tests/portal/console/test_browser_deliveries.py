"""Deliveries, one endpoint, and the page that a link opens, in a real browser against a real domain and a real endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from demo.harness.servers import Domain
from tests.gateway.server import PLAIN
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import PHONE, Closing, Console, created, eventually, expect_to_fit, publish
from tests.portal.console.keyboard import assert_usable_by_keyboard
from tests.subscriptions.push.receiver import Receiver

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]

SECRET = "whsec_" + "A" * 40


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """An endpoint."""
    with Receiver() as running:
        yield running


@pytest.fixture(scope="module")
def tab(browser: Any, domain: Domain) -> Iterator[Console]:
    """An administrator's tab."""
    with Closing(Console(browser, domain)) as tab:
        yield tab.log_in()


def hook(domain: Domain, receiver: Receiver, path: str, *data: Any, **deliver: Any) -> str:
    """Make a webhook of a new RP that sends to a path of the receiver, and publish events."""
    with domain.http(subject="hook-owner") as http:
        rp = created(http)
        stated = {"deliver": {"mode": "webhook", "url": receiver.url(path), "secret": SECRET, **deliver}}
        made = http.post(f"/api/v1/rps/{rp}/subscriptions", json=stated)
        assert made.status_code == 201, made.text
        publish(http, rp, *data)
    return str(made.json()["id"])


def state(page: Any) -> Any:
    return page.locator("#endpoint-tiles .badge")


def test_an_endpoint_is_found_in_the_list_and_looked_after(tab: Console, domain: Domain, receiver: Receiver) -> None:
    receiver.answer["/ok/console"] = 204
    subscription = hook(domain, receiver, "/ok/console", 1, 2, 3)
    page = tab.go("/deliveries?sort=id")
    tab.expect_pill("Live")
    row = page.locator("#listing tbody tr").filter(has_text="/ok/console")
    expect(row.locator(".badge")).to_have_text("active")
    expect(row).to_contain_text("3 of 3")
    assert_accessible(page)
    assert_usable_by_keyboard(page)
    page.get_by_label("State", exact=True).select_option("paused")
    expect(row).to_be_hidden()
    assert "state=paused" in page.url
    page.get_by_label("State", exact=True).select_option("")
    row.get_by_role("link").click()
    page.wait_for_url(f"**/deliveries/{subscription}")
    expect(state(page)).to_have_text("active")
    page.get_by_role("button", name="Send test event").click()
    expect(page.locator("#attempts")).to_contain_text("Test event")
    page.get_by_role("button", name="Pause…").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(state(page)).to_have_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(state(page)).to_have_text("active")
    page.get_by_role("button", name="Replace secret…").click()
    page.get_by_role("dialog").get_by_role("button", name="Replace").click()
    expect(page.locator("#endpoint-secret pre")).to_contain_text("whsec_")
    page.locator("#attempts summary").first.click()
    expect(page.locator("#attempts .facts").first).to_contain_text("webhook-id")
    assert_accessible(page)
    page.reload()
    expect(page.locator("#endpoint-facts")).to_contain_text("two secrets")
    expect(page.locator("#endpoint-secret")).to_be_hidden()


@pytest.mark.long
def test_a_dead_letter_is_replayed_and_its_answer_is_shown_as_text(
    tab: Console, domain: Domain, receiver: Receiver
) -> None:
    body = b"<img src=x onerror=alert(1)>"
    receiver.answer["/bad/console"] = b"HTTP/1.1 400 No\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    subscription = hook(domain, receiver, "/bad/console", 1, max_attempts=1)
    page = tab.go(f"/deliveries/{subscription}")
    letters = page.locator("#letters tbody tr")
    expect(letters).to_have_count(1)
    refused = page.locator("#attempts tbody tr").filter(has_text="status 400")  # the request for consent is below
    refused.locator("summary").click()
    expect(refused.locator(".excerpt")).to_have_text(body.decode())
    receiver.answer["/bad/console"] = 204
    letters.get_by_role("button", name="Replay").click()
    expect(page.locator("#letters")).to_contain_text("No dead letters")
    eventually(page, lambda: receiver.data("/bad/console") == [1, 1], "the event is delivered again")


def test_a_link_opens_the_page_of_one_endpoint_to_somebody_without_an_account(
    browser: Any, tab: Console, domain: Domain, receiver: Receiver
) -> None:
    receiver.answer["/ok/owner"] = 204
    subscription = hook(domain, receiver, "/ok/owner", 1)
    page = tab.go(f"/deliveries/{subscription}")
    page.get_by_role("button", name="Link for its owner…").click()
    page.get_by_role("dialog").get_by_role("button", name="Make link").click()
    link = page.locator("#endpoint-secret pre").inner_text()
    with Closing(Console(browser, domain, PHONE, color_scheme="dark")) as theirs:
        asked: list[str] = []
        own = theirs.page
        own.on("request", lambda request: asked.append(request.url))
        own.goto(link)
        own.get_by_role("button", name="Open the page").click()
        expect(state(own)).to_have_text("active")
        assert own.url == f"{domain.url}/endpoint"
        token = link.partition("#")[2]
        assert not any(token in url.partition("#")[0] for url in asked)
        assert own.evaluate("document.cookie").count("herald_endpoint") == 0, "scripts cannot read the session"
        own.get_by_role("button", name="Pause…").click()
        own.get_by_role("dialog").get_by_role("button", name="Pause").click()
        expect(state(own)).to_have_text("paused")
        expect_to_fit(own)
        assert_accessible(own)
        own.reload()
        expect(state(own)).to_have_text("paused")
        expect(state(page)).to_have_text("paused")
        own.goto(f"{domain.url}/deliveries/{subscription}")
        assert "/login" in own.url
    with Closing(Console(browser, domain)) as late:
        late.page.goto(link)
        late.page.get_by_role("button", name="Open the page").click()
        expect(late.page.locator("#link-problem")).to_contain_text("used")
        eventually(late.page, lambda: late.page.locator("#own").is_hidden(), "nothing is shown")


@pytest.mark.long
def test_an_intake_is_added_with_its_address_shown_once_used_and_removed(tab: Console, domain: Domain) -> None:
    with domain.http(subject="admin", admin=True) as http:
        rp = created(http)
    page = tab.go(f"/rps/{rp}#intakes")
    expect(page.locator("#intake-list")).to_contain_text("No intakes")
    page.get_by_role("button", name="New intake…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Format").select_option("github")
    dialog.get_by_role("button", name="Create").click()
    expect(dialog).to_be_visible()  # GitHub signs, and a secret is needed
    dialog.get_by_label("Format").select_option("plain")
    dialog.get_by_label("Title").fill("build server")
    dialog.get_by_role("button", name="Create").click()
    url = page.locator("#intake-made pre").inner_text()
    assert_accessible(page)
    row = page.locator("#intake-list tbody tr").filter(has_text="build server")
    expect(row).to_contain_text("not yet")
    assert httpx.post(url, json={"built": True}, **PLAIN).status_code == 201
    expect(row).to_contain_text("ago")
    page.reload()
    expect(row).to_be_visible()
    assert url not in page.content()
    row.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("#intake-list")).to_contain_text("No intakes")
    assert httpx.post(url, json={}, **PLAIN).status_code in (404, 410)
