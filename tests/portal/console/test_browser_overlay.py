"""The Overlay page in a real browser, on real domains: a domain founds an overlay and a peer joins, each link has its reason, and a
federation of thousands is a map of zones that unfold."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from demo.harness.network import Network
from demo.harness.servers import Domain
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import SMALL_PHONE, Closing, Console

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]

SHAPE = [("a", "b")]
REASON = re.compile("Approved peer|Chosen by")
ZONES = {"eu-north": 300, "eu-west": 700, "us-east": 900, "ap-south": 90, "": 10}


@pytest.fixture
def overlay(network: Network) -> Iterator[Network]:
    """Domains that leave the overlay at the end."""
    yield network
    for name in "ab":
        network[name].ask("POST", "/api/v1/overlay/leave", expect=[200, 409])  # 409: it has left


def founded(network: Network) -> None:
    network["a"].ask("POST", "/api/v1/overlay/found")
    network["b"].ask("POST", "/api/v1/overlay/join", {"sponsor": "a.test"})


def on_map(console: Console, name: str) -> Any:
    return console.page.locator(f'#map a[href="/overlay/{name}"]')


def zone(console: Console, name: str) -> Any:
    return console.page.locator(f'#map a.overlay-zone[href="?zone={name}"]')


@contextmanager
def thousands(domain: Domain) -> Iterator[None]:
    """A directory of 2,000 more domains, as rows; no process of theirs exists."""
    rows = [
        (f"d{number:04}.{zone or 'none'}.example", "f" * 43, b"", 1, "", zone, number % 4, "a.test")
        for zone, size in ZONES.items()
        for number in range(size)
    ]
    with closing(sqlite3.connect(domain.data_dir / "herald.sqlite3", timeout=60)) as database:
        database.executemany(
            "INSERT INTO eventing_directorydomain (name, fingerprint, record, version, url, zone, capacity, sponsor,"
            " issued_at, expires_at, held, admitted_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '2026-01-01 00:00:00',"
            " '2999-01-01 00:00:00', 1, '2026-01-01 00:00:00')",
            rows,
        )
        database.commit()
        try:
            yield
        finally:
            database.execute("DELETE FROM eventing_directorydomain WHERE name LIKE '%.example'")
            database.commit()


def test_an_administrator_founds_an_overlay_and_sees_why_each_link_is_there(browser: Any, overlay: Network) -> None:
    with Closing(Console(browser, overlay["a"])) as console:
        page = console.log_in().go("/overlay")
        console.expect_pill("Live")
        expect(page.locator("#summary")).to_have_text("This domain takes part in no overlay")
        assert_accessible(page)
        page.get_by_role("button", name="Found a new overlay…").click()
        page.get_by_role("dialog").get_by_role("button", name="Found").click()
        expect(page.locator("#summary")).to_have_text("1 domain, 0 links")

        overlay["b"].ask("POST", "/api/v1/overlay/join", {"sponsor": "a.test"})
        expect(page.locator("#summary")).to_have_text("2 domains, 1 link")
        expect(on_map(console, "b.test")).to_have_class(re.compile(r"\banchor\b"))
        expect(page.locator("#links")).to_contain_text(REASON)
        health = page.locator("#health")
        expect(health.locator(".badge")).to_have_text("Well")
        expect(health).to_contain_text("of 2 live domains have reached this one with rows")
        expect(health).to_contain_text("of 1 link chosen by others")
        expect(page.locator("#figures tbody")).to_contain_text(re.compile(r"\d+\s% of 2 live domains"))
        expect(page.locator("#history")).to_be_visible()
        assert_accessible(page)

        on_map(console, "b.test").click()
        expect(page).to_have_url(f"{overlay['a'].url}/overlay/b.test")
        panel = page.locator("#panel")
        expect(panel).to_contain_text(re.compile(f"Stands: {REASON.pattern}", re.IGNORECASE))
        expect(panel.locator("ol")).to_have_text("a.test")
        assert_accessible(page)
        page.keyboard.press("Escape")
        expect(panel).to_be_hidden()

        page.get_by_role("button", name="Leave…").click()
        page.get_by_role("dialog").get_by_role("button", name="Leave").click()
        expect(page.locator("#summary")).to_have_text("This domain takes part in no overlay")


@pytest.mark.long
def test_zones_of_a_large_federation_are_folded_until_one_is_opened(browser: Any, overlay: Network) -> None:
    founded(overlay)
    with Closing(Console(browser, overlay["a"])) as console, thousands(overlay["a"]):
        page = console.log_in().go("/overlay")
        expect(page.locator("#summary")).to_have_text("2,002 domains, 1 link")
        expect(page.locator("#map a.overlay-zone")).to_have_count(len(ZONES))
        expect(page.locator("#map a.overlay-dot")).to_have_count(1)
        expect(zone(console, "us-east")).to_contain_text("900 domains")
        assert_accessible(page)

        zone(console, "ap-south").click()
        expect(page.locator("#map a.overlay-dot")).to_have_count(90)
        expect(page.locator("#listing tbody tr")).to_have_count(50)
        expect(page).to_have_url(f"{overlay['a'].url}/overlay?zone=ap-south")
        page.reload()
        expect(page.locator("#map a.overlay-dot")).to_have_count(90)
        page.get_by_role("button", name="All zones").click()
        expect(page.locator("#map a.overlay-zone")).to_have_count(len(ZONES))

        page.get_by_label("Name contains").fill("d0699")
        page.get_by_role("button", name="Filter").click()
        expect(page.locator("#listing tbody tr")).to_have_count(2)
        page.get_by_role("link", name="d0699.eu-west.example").click()
        expect(page.locator("#panel")).to_contain_text("has not had a link with d0699.eu-west.example")


@pytest.mark.long
def test_on_a_phone_a_domain_of_the_overlay_is_a_page_of_its_own(browser: Any, overlay: Network) -> None:
    founded(overlay)
    with Closing(Console(browser, overlay["b"], SMALL_PHONE, color_scheme="dark", reduced_motion="reduce")) as console:
        page = console.log_in().go("/overlay")
        expect(on_map(console, "a.test")).to_be_visible()
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= SMALL_PHONE["width"]

        page.locator("#listing").get_by_role("link", name="a.test").first.click()
        expect(page.locator("#map")).to_be_hidden()
        expect(page.locator("#panel")).to_contain_text("It is a founder: it needs no sponsor.")
        assert_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= SMALL_PHONE["width"]


def test_the_path_of_an_event_is_asked_for_and_shown_as_a_tree(browser: Any, overlay: Network) -> None:
    founded(overlay)
    rp = overlay.replicated_rp("a", "b")
    overlay.publish(rp, "a")
    overlay.converged(rp)
    with Closing(Console(browser, overlay["a"])) as console:
        page = console.log_in().go(f"/timescale?rp={rp}&event=1")
        page.get_by_role("button", name="Ask the other domains for the path").click()
        tree = page.get_by_role("list", name="Path of the event")
        expect(tree.locator(":scope > li")).to_contain_text("a.test this domain; home")
        expect(tree.locator("li li")).to_contain_text(re.compile(r"b\.test after .*\sm?s"))
        assert_accessible(page)

        page.get_by_role("link", name="Show on the map of the overlay").click()
        card = page.locator("#path-card")
        expect(card).to_contain_text("b.test")
        expect(page.locator("#map .overlay-hop")).to_have_count(1)
        assert_accessible(page)
        card.get_by_role("button", name="Close the path").click()
        expect(card).to_be_hidden()
        expect(page.locator("#map .overlay-hop")).to_have_count(0)
        page.goto(f"{overlay['a'].url}/overlay?rp={rp}&feed={'a' * 16}&sequence=x")
        expect(card.get_by_role("alert")).to_contain_text("sequence must be a number")

        page.route("**/path?*", lambda route: route.abort())
        page.goto(f"{overlay['a'].url}/timescale?rp={rp}&event=1")
        page.reload()  # while the page loads, too, the address asks for the event
        page.get_by_role("button", name="Ask the other domains for the path").click()
        expect(page.locator("#detail").get_by_role("alert")).to_be_visible()
        expect(page.get_by_role("button", name="Ask the other domains for the path")).to_be_enabled()
