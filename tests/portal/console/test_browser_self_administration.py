"""Self-administration in a real browser against a real domain: switches, dry runs, parts that fail and come back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from demo.harness.servers import Domain
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import PHONE, Closing, Console, created, expect_to_fit, press_if_there

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]

PAGE = "/self-administration"


@pytest.fixture
def tab(browser: Any, domain: Domain) -> Iterator[Console]:
    """An administrator's tab; the planners are switched as the settings state afterwards."""
    with Closing(Console(browser, domain)) as tab:
        yield tab.log_in()
    with domain.http(subject="root", admin=True) as http:
        for path in ("/api/v1/plan", "/api/v1/plan/routes"):
            assert http.patch(path, json={"mode": None}).status_code == 200


def tile(page: Any, name: str) -> Any:
    return page.locator("#switches .tile").filter(has=page.locator(".tile-name", has_text=name))


def switch(page: Any, planner: str, mode: str) -> None:
    page.get_by_role("button", name=f"Switch… the planner of {planner}").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("radio", name=re.compile(f"^{mode}")).check()
    dialog.get_by_role("button", name="Switch").click()
    expect(dialog).to_be_hidden()


@pytest.mark.long
def test_planners_are_switched_by_a_dialog_with_who_did_it_in_the_audit(tab: Console, domain: Domain) -> None:
    page = tab.go(PAGE)
    tab.expect_pill("Live")
    expect(tile(page, "Replicas").locator(".badge")).to_have_text("advise")
    expect(tile(page, "Routes").locator(".badge")).to_have_text("apply")
    assert_accessible(page)
    page.get_by_role("button", name="Switch… the planner of replicas").click()
    assert_accessible(page)
    page.keyboard.press("Escape")
    switch(page, "replicas", "off")
    switch(page, "routes", "advise")
    expect(tile(page, "Replicas").locator(".badge")).to_have_text("off")
    expect(tile(page, "Routes").locator(".badge")).to_have_text("advise")
    with domain.http(subject="root", admin=True) as http:
        acts = http.get("/api/v1/audit", params={"limit": 20}).json()["items"]
        details = {one["action"]: one["details"] for one in reversed(acts)}
        assert details["placement.bound"]["before"]["mode"] == ""
        assert (details["routes.switch"]["before"], details["routes.switch"]["after"]) == ("", "advise")
        assert http.patch("/api/v1/plan", json={"mode": "apply"}).status_code == 200
    expect(tile(page, "Replicas").locator(".badge")).to_have_text("apply")  # told by an event
    page.get_by_role("button", name="Dry run", exact=True).click()
    expect(page.locator("#next")).to_contain_text("Nothing was recorded or changed.")
    expect(page.locator("#next")).to_be_focused()
    page.locator("#next").get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="Dry run", exact=True)).to_be_focused()
    page.get_by_role("button", name="Dry run of a drain").click()
    expect(page.locator("#drain")).to_contain_text(re.compile("would hand over nothing|handed over|waits|ends|paused"))


@pytest.mark.long
def test_on_a_phone_a_target_is_shown_and_its_dry_run_says_why_there_is_none(
    browser: Any, tab: Console, domain: Domain
) -> None:
    with domain.http(subject="root", admin=True) as http:
        rp = created(http, reliability=0.999)
    with Closing(Console(browser, domain, PHONE, color_scheme="dark")) as phone:
        page = phone.log_in().go(PAGE)
        row = page.locator("#routes tbody tr").filter(has=page.locator(f'a[href="/rps/{rp}#replicas"]'))
        expect(row).to_contain_text("99.9\u202f%")
        expect(row.locator(".badge").first).to_have_text("no plan")
        row.get_by_role("button", name="Dry run").click()
        expect(page.locator(".toast")).to_contain_text("No other domain takes part")
        page.get_by_label("Rendezvous point").fill(rp)
        page.get_by_role("button", name="Filter").click()
        expect(page.locator("#listing")).to_contain_text("No results")
        assert f"rp={rp}" in page.url
        expect_to_fit(page)
        assert_accessible(page)
    with domain.http(subject="root", admin=True) as http:
        assert http.delete(f"/api/v1/rps/{rp}").status_code == 204


def test_a_part_that_fails_says_so_and_is_whole_again_when_the_domain_answers(tab: Console, domain: Domain) -> None:
    page = tab.page
    page.route(re.compile(r"/api/v1/plan/(loads|routes)$"), lambda route: route.abort())
    tab.go(PAGE)
    expect(page.locator("#loads")).to_contain_text("No response")
    expect(page.locator("#routes")).to_contain_text("No response")
    expect(page.locator("#limits")).to_contain_text("Invitations accepted")
    assert_accessible(page)
    page.unroute_all(behavior="ignoreErrors")
    for part in ("#loads", "#routes"):
        press_if_there(
            page.locator(part).get_by_role("button", name="Try again")
        )  # each part looks again by itself, too
        expect(page.locator(part)).not_to_contain_text("No response")
    expect(page.locator("#loads tbody th").first).to_contain_text("this domain")
    tab.expect_pill("Live")
    page.route(re.compile(r"/api/v1/plan/loads$"), lambda route: route.abort())
    with domain.http(subject="root", admin=True) as http:  # whose event has the page look again
        assert http.patch("/api/v1/plan/invitations", json={"whom": "trusted-peers"}).status_code == 200
    expect(page.locator("#away")).to_contain_text("out of date")
    expect(page.locator("#loads")).to_have_class(re.compile("stale"))
    expect(page.locator("#loads tbody th").first).to_contain_text("this domain")
    page.unroute_all(behavior="ignoreErrors")
