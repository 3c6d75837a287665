"""The timescale debugger in a real browser against a real domain: what an operator looks for there, and finds."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest

from demo.harness.servers import Domain
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import SMALL_PHONE, WIDE, WITHIN_MS, Closing, Console, created, eventually, publish

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]

HELD_MAX = 5000  # portal/web/timescale/lane.js


@pytest.fixture(scope="module")
def rp(domain: Domain) -> str:
    with domain.http() as client:
        rp = created(client, name="timescale/roof", title="Roof")
        publish(client, rp, *({"celsius": number} for number in range(12)))
        return rp


@pytest.fixture
def console(browser: Any, domain: Domain, rp: str) -> Iterator[Console]:
    with Closing(Console(browser, domain)) as tab:
        yield tab.log_in()


def rows(console: Console) -> Any:
    return console.page.locator(".ts-row")


def chosen(console: Console) -> Any:
    return console.page.locator("#detail-title")


@pytest.mark.long
def test_an_operator_proves_where_an_event_came_from(console: Console, rp: str) -> None:
    page = console.go(f"/timescale?rp={rp}&event=5")
    expect(chosen(console)).to_have_text("Event #5")
    expect(page.locator("#follow")).to_have_text("Live")  # a link to an event shows the past
    detail = page.locator("#detail")
    expect(detail.get_by_role("region", name="The event's data")).to_contain_text('"celsius": 4')
    page.get_by_text("Exact bytes").click()
    expect(detail.locator(".ts-raw")).to_contain_text("7b 22 73 70 65 63")
    expect(detail).to_contain_text("Published here, number 5 of its feed")
    expect(detail).to_contain_text("This domain only")
    page.get_by_role("button", name=re.compile("prove", re.IGNORECASE)).click()
    expect(page.locator("#proof")).to_contain_text("Verified")
    page.get_by_text("Verification steps").click()
    expect(page.locator("#proof li .badge.good")).to_have_text(["Bytes", "Seal", "Hash", "Signature", "Domain"])
    assert_accessible(page)

    # Sealed now: the next one is proved without asking. Whoever answers lies about its bytes, then about its path.
    def lies(member: str) -> Any:
        def answer(route: Any) -> None:
            with console.domain.http() as client:
                document = client.get(route.request.url).json()
            if member == "event":
                document["event"] = base64.b64encode(b'{"celsius": 99}').decode()
            else:
                document["path"][0] = base64.b64encode(bytes(32)).decode()
            route.fulfill(json=document)

        return answer

    for member, finding in (("event", "other bytes than those shown"), ("path", "does not lead to the sealed root")):
        page.route("**/proof?*", lies(member))
        page.get_by_role("button", name="Next", exact=True).click()
        expect(page.locator("#proof")).to_contain_text("Not verified")
        expect(page.locator("#proof")).to_contain_text(finding)
        expect(page.locator("#proof")).not_to_contain_text("This browser verified that")
        page.unroute("**/proof?*")
    page.get_by_role("button", name="Check again").click()
    expect(page.locator("#proof")).to_contain_text("This browser verified that")


def test_an_operator_watches_live_and_pauses(console: Console, rp: str) -> None:
    page = console.go(f"/timescale?rp={rp}")
    console.expect_pill("Live")
    before = rows(console).first.get_attribute("data-offset") or "0"
    with console.domain.http() as client:
        publish(client, rp, "seen")
        expect(rows(console).first).to_have_attribute("data-offset", str(int(before) + 1))
        expect(rows(console).first).to_contain_text('"seen"')
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#following")).to_have_text("Paused")
        publish(client, rp, "counted", "as well")
        expect(page.locator("#following")).to_have_text("Paused: 2 new events")
        expect(rows(console).first).to_contain_text('"seen"')
        page.get_by_role("button", name="Live, 2 new").click()
        expect(rows(console).first).to_contain_text('"as well"')
        expect(rows(console).first.locator("time")).to_have_attribute("title", re.compile("^stored"))


def test_an_operator_publishes_a_test_event_and_sees_where_it_goes(console: Console, rp: str) -> None:
    page = console.go("/timescale")
    expect(page.get_by_text("Choose a rendezvous point")).to_be_visible()
    assert_accessible(page)
    page.get_by_role("combobox", name="Add a rendezvous point").fill("roof")
    expect(page.get_by_role("option").first).to_contain_text("/localhost/timescale/roof/")
    page.keyboard.press("Enter")
    console.expect_pill("Live")
    expect(page).to_have_url(re.compile(rf"/timescale\?rp={rp}$"))
    page.get_by_text("Publish a test event and trace it").click()
    page.get_by_label("Type", exact=True).fill("org.example.tested")
    page.get_by_label("Data", exact=True).fill("{no json")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("The data is not JSON")
    page.get_by_label("Data", exact=True).fill('{"tested": true}')
    page.get_by_role("button", name="Publish", exact=True).click()
    steps = page.get_by_role("list", name="Route of the event")
    expect(steps).to_contain_text("Stored here as #")
    expect(steps).to_contain_text("This page received live after")
    expect(steps).to_contain_text(re.compile(r"Readers written to \d+ session"))
    expect(rows(console).first).to_contain_text('{"tested":true}')
    expect(page.locator("#detail")).to_contain_text("org.example.tested")
    expect(page.locator("#key")).to_contain_text("org.example.tested")


def test_the_axis_is_used_by_keyboard(console: Console, rp: str) -> None:
    page = console.go(f"/timescale?rp={rp}")
    console.expect_pill("Live")
    expect(rows(console).first).to_be_visible()
    axis, said = page.get_by_role("application"), page.locator("#said")
    axis.focus()
    page.keyboard.press("Home")
    expect(said).to_contain_text("Event 1, test")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("Event 2, test")
    page.keyboard.press("ArrowLeft")
    expect(said).to_contain_text("Event 1, test")
    expect(chosen(console)).to_have_text("Event #1")
    expect(page.locator(".ts-ring")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(chosen(console)).to_be_focused()
    axis.focus()
    seen = page.locator("#span").inner_text()
    page.keyboard.press("+")
    expect(page.locator("#span")).not_to_have_text(seen)
    page.keyboard.press("-")
    expect(page.locator("#span")).to_have_text(seen)
    page.keyboard.press("Space")
    expect(said).to_contain_text("Paused")
    page.keyboard.press("Space")
    expect(said).to_contain_text("Following new events")
    page.keyboard.press("Escape")
    expect(page.locator("#detail")).to_contain_text("No event selected")


@pytest.mark.long
def test_what_is_long_past_is_found_by_moving_and_by_time_and_the_page_holds_a_bounded_part(
    console: Console, domain: Domain
) -> None:
    with domain.http() as client:
        long = created(client, history={"max_events": 6000})
        publish(client, long, *range(6500))
    page = console.go(f"/timescale?rp={long}&rp=no-such-thing")
    console.expect_pill("Live")
    lanes = page.locator(".ts-lane-head")
    expect(lanes.nth(1)).to_contain_text("There is no rendezvous point no-such-thing")
    for _ in range(4):
        page.get_by_role("button", name="Zoom out").click()
    expect(lanes.first).to_contain_text("showing 5,000 of 6,000")
    expect(page.locator(".ts-before title")).to_have_text(re.compile(r"^#501 to #1500 (not loaded|let go)"))
    page.goto(f"{domain.url}/timescale?rp={long}&event=600")
    expect(chosen(console)).to_have_text("Event #600")
    page.get_by_role("application").focus()
    page.keyboard.press("0")
    eventually(page, lambda: page.locator(".ts-before title").count() == 1, "the past is reached")
    expect(page.locator(".ts-before title")).to_have_text("#1 to #500 no longer in the history")


@pytest.mark.long
def test_times_of_events_are_whole_to_the_millisecond_where_there_is_room(console: Console, domain: Domain) -> None:
    """In the timescale's list and among an RP's events, today's and those of another day."""
    page = console.page
    with domain.http() as client:
        rp = created(client)
        dated = {"specversion": "1.0", "id": "1", "source": "/test", "type": "test", "time": "2026-01-02T03:04:05.678Z"}
        structured = {"Content-Type": "application/cloudevents+json"}
        assert client.post(f"/api/v1/rps/{rp}/events", json=dated, headers=structured).status_code == 201
    try:
        page.set_viewport_size({"width": 1440, "height": 900})
        for path, times in ((f"/timescale?rp={rp}", ".ts-row time"), (f"/rps/{rp}#events-tab", "#events time")):
            console.go(path)
            first = page.locator(times).first
            expect(first).to_have_text(re.compile(r"^(\d+ \w+, )?\d\d:\d\d:\d\d\.\d{3}$"))
            for text in (first.inner_text(), "23 Nov, 14:03:07.125"):
                cut = first.evaluate(
                    "(one, text) => { one.textContent = text; return one.scrollWidth > one.clientWidth; }", text
                )
                assert not cut, f"{text} at {path}"
            assert first.evaluate("(one) => getComputedStyle(one).fontVariantNumeric") == "tabular-nums"
    finally:
        page.set_viewport_size(WIDE)


@pytest.mark.long
def test_it_is_accessible_and_fits_on_a_small_phone_in_the_dark(browser: Any, domain: Domain, rp: str) -> None:
    with Closing(Console(browser, domain, SMALL_PHONE, color_scheme="dark", reduced_motion="reduce")) as console:
        page = console.log_in().go(f"/timescale?rp={rp}&rp=domain.admin")
        console.expect_pill("Live")
        rows(console).first.click()
        expect(chosen(console)).to_be_visible(timeout=WITHIN_MS)
        assert page.evaluate("document.documentElement.scrollWidth") <= SMALL_PHONE["width"]
        assert_accessible(page)


def test_a_history_that_cannot_be_read_is_said_and_read_as_soon_as_it_can_be(console: Console, rp: str) -> None:
    page = console.page
    page.route("**/console/timescale/past*", lambda route: route.abort())
    console.go(f"/timescale?rp={rp}")
    said = page.locator("#rows .broken")
    expect(said).to_contain_text("The history could not be read")
    expect(said).to_contain_text("Retrying automatically.")
    page.unroute("**/console/timescale/past*")
    expect(said).to_have_count(0)
    expect(page.locator(".ts-chart")).to_contain_text("showing ")
