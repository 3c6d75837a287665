"""What changes in the domain while a page loads, or while its dialog is open, is neither missed nor undone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from demo.harness.servers import Domain
from tests.portal.console.browsing import Closing, Console, created, eventually, publish

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]


@pytest.fixture
def console(browser: Any, domain: Domain) -> Iterator[Console]:
    with Closing(Console(browser, domain)) as tab:
        yield tab.log_in()


def before_snapshot(console: Console, rp: str, change: Callable[[], object]) -> None:
    """Have the domain change after it has rendered a page, and before it is asked for the state that the page follows."""

    def answer(route: Any) -> None:
        change()
        route.continue_()

    console.page.route(re.compile(rf"/api/v1/{rp}/snapshot"), answer, times=1)


def test_an_rp_that_is_created_while_the_list_loads_is_listed(console: Console) -> None:
    with console.domain.http() as client:
        before_snapshot(console, "admin", lambda: created(client, name="meanwhile/made"))
        page = console.go("/rps?prefix=/localhost/meanwhile/")
        expect(page.locator("#rps tbody tr")).to_contain_text(["/localhost/meanwhile/made/"])


def test_a_policy_that_changes_while_the_page_loads_is_shown(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client, policy=[{"issuer": "anyone", "allow": ["describe"]}])
        before_snapshot(console, f"rps/{rp}", lambda: client.patch(f"/api/v1/rps/{rp}", json={"policy": []}))
        page = console.go(f"/rps/{rp}#access")
        console.expect_pill("Live")
        expect(page.locator("#rules")).to_contain_text("Only the creator and administrators")


def test_a_watch_rule_that_is_added_while_the_page_loads_is_shown(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client)
        page = console.page
        snapshots: list[Any] = []

        def looked(route: Any) -> None:
            answer = route.fetch()
            assert client.patch(f"/api/v1/rps/{rp}", json={"watch": [{"lag": {"events": 5}}]}).status_code == 200
            route.fulfill(response=answer)  # without the rule
            eventually(page, lambda: bool(snapshots), "the state is asked for")
            snapshots[0].continue_()  # with it

        page.route(re.compile(rf"/api/v1/rps/{rp}/snapshot"), lambda route: snapshots.append(route), times=1)
        page.route(re.compile(rf"/api/v1/rps/{rp}$"), looked, times=1)
        console.go(f"/rps/{rp}#watching")
        expect(page.locator("#watch-rules")).to_contain_text("at most 5 events behind")


def test_as_many_events_are_kept_as_the_dialog_says_though_more_have_arrived_since_it_opened(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client)
        publish(client, rp, *range(20))
        page = console.go(f"/rps/{rp}")
        console.expect_pill("Live")
        expect(page.locator("#held-events")).to_have_text("20")
        page.get_by_role("button", name="Trim").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Keep the newest events").fill("5")
        publish(client, rp, "more", "and more")
        expect(page.locator("#held-events")).to_have_text("22")
        dialog.get_by_role("button", name="Trim").click()
        expect(page.locator("#held-events")).to_have_text("5")
        left = client.get(f"/api/v1/rps/{rp}/events").json()["events"]
    assert [event["data"] for event in left] == [17, 18, 19, "more", "and more"]


def test_a_button_that_is_pressed_twice_opens_one_dialog(console: Console) -> None:
    asked: list[Any] = []
    with console.domain.http() as client:
        rp = created(client)
    page = console.go(f"/rps/{rp}")
    console.expect_pill("Live")
    page.route(re.compile(rf"/api/v1/rps/{rp}$"), lambda route: asked.append(route))
    page.get_by_role("button", name="Change…").first.dblclick()
    eventually(page, lambda: bool(asked), "the dialog asks what it is to show")
    for route in asked:
        route.continue_()
    page.unroute_all()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
