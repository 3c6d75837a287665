"""The Federation page in a real browser, on three real domains: an operator finds out why a peer gets nothing, two
administrators agree on a peering, and what is shown is what a screen reader and a phone show too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from demo.harness.network import Network
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import SMALL_PHONE, Closing, Console, eventually

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]

SHAPE = [("a", "b")]


@pytest.fixture
def console(browser: Any, network: Network) -> Iterator[Console]:
    """The Federation page of a."""
    with Closing(Console(browser, network["a"])) as tab:
        tab.log_in().go("/federation")
        tab.expect_pill("Live")
        yield tab


def on_map(console: Console, name: str) -> Any:
    return console.page.locator(f'#map a[href="/federation/{name}"]')


def panel(console: Console) -> Any:
    return console.page.locator("#panel")


def expect_health(console: Console, name: str, level: str) -> None:
    expect(on_map(console, name)).to_have_class(re.compile(rf"\b{level}\b"))


def waiting(console: Console) -> Any:
    return panel(console).locator('[data-fact="backlog"]')


def test_an_operator_finds_out_why_a_peer_gets_nothing_and_has_it_tried_again(
    console: Console, network: Network
) -> None:
    page = console.page
    rp = network.replicated_rp("a", "b", name="stuck")
    network.publish(rp, "a", 2)
    network.converged(rp)
    expect_health(console, "b.test", "good")

    network.partition("a", "b")
    network.publish(rp, "a", 3)
    expect_health(console, "b.test", "bad")
    expect(page.locator("#summary")).to_contain_text("1 failing")
    expect(page.locator("#said")).to_contain_text("b.test: Failing.")
    expect(page.locator("#attention")).to_contain_text("b.test")

    on_map(console, "b.test").click()
    expect(page).to_have_url(re.compile(r"/federation/b\.test$"))
    expect(panel(console)).to_contain_text("The peer is unreachable or does not respond in time.")
    expect(panel(console)).to_contain_text(
        re.compile(r"Next try (now|in \d+ (s|min)).*, after \d+ failures?, the first")
    )
    expect(waiting(console)).to_have_text("3 events")
    expect(panel(console).locator(".links li").filter(has_text="/stuck/")).to_contain_text("3 events waiting")
    panel(console).locator(".links li").filter(has_text="/stuck/").get_by_role("button", name="Newest events").click()
    expect(panel(console).get_by_text("missing", exact=True)).to_have_count(3)
    assert_accessible(page)

    network.heal()
    with page.expect_response(re.compile(r"/api/v1/peers/b\.test/retry$")) as answer:
        panel(console).get_by_role("button", name="Retry now").click()
    assert answer.value.status == 200
    expect(page.locator("#toasts")).to_contain_text("b.test responds.")
    expect(waiting(console)).to_have_text("0 events")
    expect_health(console, "b.test", "good")
    expect(panel(console).get_by_text("missing", exact=True)).to_have_count(0)
    network.converged(rp)

    page.go_back()
    expect(panel(console)).to_be_hidden()
    network.publish(rp, "b", 5)
    expect(on_map(console, "b.test")).to_be_visible()
    network.converged(rp)


def test_what_flows_is_drawn_while_it_flows(console: Console, network: Network) -> None:
    rp = network.replicated_rp("a", "b", name="flowing")
    publisher = network.publisher(rp, "a", every_s=0.02)
    try:
        expect(console.page.locator(".map-link .flow.out")).to_be_visible()
        expect(console.page.locator("#peers tbody tr td").nth(2)).to_have_text(re.compile(r"^[1-9][\d.]*.?/s$"))
    finally:
        publisher.stop()
    expect(console.page.locator(".map-link .flow")).to_have_count(0)


@pytest.mark.long
def test_two_administrators_agree_and_one_of_them_ends_it(browser: Any, console: Console, network: Network) -> None:
    here = console.page
    with Closing(Console(browser, network["c"])) as other:
        there = other.log_in().go("/federation")
        other.expect_pill("Live")
        expect(there.get_by_role("heading", name="This domain has no peers yet")).to_be_visible()
        assert_accessible(there)
        there.get_by_role("button", name="Add the first peer").click()
        there.get_by_label("Address of the other domain").fill(network.proxy("c", "a").url)
        there.get_by_role("button", name="Continue").click()
        number = there.get_by_label("Safety number").inner_text().strip()
        assert_accessible(there)
        there.get_by_label(re.compile("Type the last 5 digits")).fill("00000" if number[-5:] != "00000" else "11111")
        there.get_by_role("button", name="Add", exact=True).click()
        expect(
            there.get_by_label(re.compile("Type the last 5 digits"))
        ).to_be_focused()  # the browser says what is wrong
        assert network.peer_state("c", "a") == "", "another number than the one compared adds nobody"
        there.get_by_label(re.compile("Type the last 5 digits")).fill(number[-5:])
        there.get_by_role("button", name="Add", exact=True).click()
        expect(there.locator("#panel .badge").first).to_have_text("Proposed")

        expect_health(console, "c.test", "wait")
        on_map(console, "c.test").press("Enter")
        panel(console).get_by_role("button", name="Approve…").click()
        assert here.get_by_label("Safety number").inner_text().strip() == number
        here.get_by_label(re.compile("Type the last 5 digits")).fill(number[-5:])
        here.get_by_role("button", name="Approve", exact=True).click()
        expect_health(console, "c.test", "good")
        expect(there.locator("#panel .badge").first).to_have_text("Healthy")

    switch = panel(console).get_by_role("switch", name=re.compile("May have replicas here"))
    switch.click()
    eventually(here, lambda: network["a"].ask("GET", "/api/v1/peers/c.test")["host"], "the switch was turned")
    panel(console).get_by_role("button", name="Suspend…").click()
    here.get_by_label("Reason").fill("floods us")
    here.get_by_role("button", name="Suspend", exact=True).click()
    expect_health(console, "c.test", "off")
    panel(console).get_by_role("button", name="Remove…").click()
    here.get_by_label("Type c.test to confirm").fill("c.test")
    here.get_by_role("button", name="Remove", exact=True).click()
    expect(panel(console)).to_contain_text("c.test is not a peer")
    expect(on_map(console, "c.test")).to_have_count(0)


@pytest.mark.long
def test_a_quarantine_is_seen_and_lifted(console: Console, network: Network) -> None:
    page = console.page
    told = network["a"].manage(
        "shell",
        "-c",
        "from eventing.peering.services.quarantines import quarantine; quarantine('b.test', 'Two stories.')",
    )
    assert told.returncode == 0, told.stderr
    expect_health(console, "b.test", "bad")
    expect(page.locator("#attention")).to_contain_text("b.test is quarantined")
    page.get_by_role("button", name="Lift the quarantine…").click()
    page.get_by_role("button", name="Lift quarantine").click()
    expect_health(console, "b.test", "good")
    assert network.quarantined("a") == set()


def test_on_a_phone_a_peer_is_a_page_of_its_own(browser: Any, network: Network) -> None:
    with Closing(Console(browser, network["a"], SMALL_PHONE, color_scheme="dark", reduced_motion="reduce")) as console:
        page = console.log_in().go("/federation")
        console.expect_pill("Live")
        expect(on_map(console, "b.test")).to_be_visible()
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= SMALL_PHONE["width"]
        page.locator("#peers").get_by_role("link", name="b.test").click()
        expect(page.locator("#map")).to_be_hidden()
        expect(panel(console).get_by_text("Safety number")).to_be_visible()
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= SMALL_PHONE["width"]
        page.keyboard.press("Escape")
        expect(page.locator("#map")).to_be_visible()
