"""The overview, Start here, and the frame of every page, in a real browser against a real domain."""

from __future__ import annotations

import itertools
import re
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bench.scenarios.console_hour import PLAY, PLAYED_SOCKET
from demo.harness.servers import Domain, wait_for
from tests.conftest import DomainFactory
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import (
    PHONE,
    SMALL_PHONE,
    WIDE,
    WITHIN_MS,
    Closing,
    Console,
    created,
    eventually,
    publish,
    rps_held,
)
from tests.portal.console.keyboard import assert_usable_by_keyboard
from tests.portal.web.test_javascript import NODE

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]

SEEN_WITHIN_S = 1.0
TRIED_FOR_S = 120.0
FIRST_LOAD_BYTES = 300 * 1024
HEAP_GROWTH_BYTES = 1024**2


@pytest.fixture(scope="module")
def rp(domain: Domain) -> str:
    with domain.http() as client:
        return created(client, name="overview/watched")


@pytest.fixture
def console(browser: Any, domain: Domain, rp: str) -> Iterator[Console]:
    with Closing(Console(browser, domain)) as tab:
        yield tab.log_in()


def tile(console: Console, name: str) -> Any:
    return console.page.locator(f'[data-tile="{name}"] .tile-value')


# -- the overview -----------------------------------------------------------------------------------------------------


def test_what_happens_in_the_domain_is_on_the_screen_within_a_second(console: Console) -> None:
    console.go("/")
    console.expect_pill("Live")
    took: list[float] = []
    with console.domain.http(admin=True) as client:
        ends = time.monotonic() + TRIED_FOR_S  # others use this machine too
        while not took or (min(took) > SEEN_WITHIN_S and time.monotonic() < ends):
            before = rps_held(client)
            expect(tile(console, "rps")).to_have_text(f"{before:,}")  # what other tests made has arrived
            created(client)
            begun = time.monotonic()
            expect(tile(console, "rps")).to_have_text(f"{before + 1:,}")
            took.append(time.monotonic() - begun)
    assert min(took) <= SEEN_WITHIN_S or Console.slowness, took


def test_what_ends_within_a_day_is_counted_and_leads_to_the_leases(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client, name="overview/ending", lease_s=3600)
    with closing(sqlite3.connect(console.domain.data_dir / "herald.sqlite3", timeout=60)) as database, database:
        until = datetime.now(UTC) + timedelta(minutes=20)
        texts = [(until - timedelta(seconds=s)).strftime("%Y-%m-%d %H:%M:%S.%f") for s in (0, 1)]
        database.execute("UPDATE eventing_rendezvouspoint SET expires_at = ?, warn_at = ? WHERE id = ?", [*texts, rp])
    console.go("/")
    line = console.page.locator("#ending")
    expect(line).to_contain_text(re.compile(r"[0-9,]+ leases? ends? within 24 hours"))
    line.locator("a").click()
    expect(console.page.locator("tbody tr").filter(has_text="/localhost/overview/ending/")).to_have_count(1)
    with console.domain.http() as client:
        client.delete(f"/api/v1/rps/{rp}").raise_for_status()  # none expires while another test counts


def test_rates_sessions_and_the_busiest_follow_the_load(console: Console, rp: str) -> None:
    console.go("/")
    console.expect_pill("Live")
    row = console.page.locator("#hot tbody tr").filter(has_text="/localhost/overview/watched/")
    begins = itertools.count(10_000, 500)
    with console.domain.http() as client:

        def shown() -> bool:
            begin = next(begins)
            publish(client, rp, *range(begin, begin + 500))  # it is shown for some seconds
            return any("/s" in text for text in row.locator("td").all_inner_texts())

        eventually(console.page, shown, "the busiest with its rate")
    expect(tile(console, "sessions")).to_have_text(re.compile(r"^[1-9]"))
    expect(console.page.locator("#gateways tbody tr")).to_have_count(1)
    expect(console.page.locator('[data-tile="in"] polyline')).to_have_attribute(
        "points", re.compile("."), timeout=WITHIN_MS
    )
    expect(console.page.locator("#rates canvas")).to_be_visible()


def test_the_last_hour_is_there_for_who_comes_later(console: Console, rp: str) -> None:
    with console.domain.http() as client:
        publish(client, rp, *range(5000, 6000))
        console.go("/")
        console.expect_pill("Live")
        told = wait_for(lambda: _loaded(console), about="a sample has the events")
    assert told is not None
    assert max(rate for rate in told["series"]["events_in"] if rate is not None) > 10
    console.page.get_by_text("As a table").click()
    expect(console.page.locator("#rates tbody tr").first).to_be_visible()


def _loaded(console: Console) -> dict[str, Any] | None:
    told: dict[str, Any] = console.page.request.get(f"{console.domain.url}/console/load").json()
    return told if any(rate and rate > 10 for rate in told["series"].get("events_in", ())) else None


def test_a_page_loads_in_little_and_from_this_domain_alone(browser: Any, domain: Domain, rp: str) -> None:
    with Closing(Console(browser, domain)) as console:
        console.log_in()
        fresh = Console(browser, domain)
        fresh.context.add_cookies(console.context.cookies())
        answers: list[Any] = []
        fresh.page.on("response", lambda answer: answers.append(answer))
        fresh.go("/")
        fresh.expect_pill("Live")
        fresh.page.wait_for_load_state("networkidle")
        sizes = {answer.url: answer.request.sizes() for answer in answers}
        assert all(url.startswith(domain.url) for url in sizes)
        loaded = sum(size["responseBodySize"] + size["responseHeadersSize"] for size in sizes.values())
        assert loaded <= FIRST_LOAD_BYTES, {url: size["responseBodySize"] for url, size in sizes.items()}
        built = [answer for answer in answers if "/portal/dist/" in answer.url]
        assert len(built) >= 4
        for answer in built:
            assert "immutable" in answer.headers["cache-control"], answer.url
            small = answer.request.sizes()["responseBodySize"] < 512
            assert small or answer.headers.get("content-encoding") in ("br", "gzip"), answer.url
        fresh.context.close()
        assert fresh.errors == []


@pytest.mark.long
def test_a_lost_domain_is_said_and_the_page_goes_on_by_itself(console: Console) -> None:
    console.go("/")
    console.expect_pill("Live")
    with console.domain.away("gateway") as pid:
        console.expect_pill(re.compile("Reconnecting"))
        expect(console.page.locator("#overview")).to_have_class(re.compile(r"\bstale\b"))
    console.domain.wait_replaced("gateway", pid)
    console.expect_pill("Live")
    expect(console.page.locator("#overview")).not_to_have_class(re.compile(r"\bstale\b"))


def test_an_ended_session_is_said_and_leads_to_the_login(console: Console) -> None:
    console.go("/")
    console.expect_pill("Live")
    console.context.clear_cookies()
    console.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    console.expect_pill("Ended")
    expect(console.page.locator("#connection-ended")).to_contain_text("Your session has ended")
    console.page.get_by_role("link", name="Log in again").click()
    expect(console.page.get_by_role("heading", name="Log in")).to_be_visible()


@pytest.mark.long
def test_an_hour_of_live_updates_leaves_the_heap_flat(console: Console) -> None:
    """The samples of an hour, one for each second, after a warm-up; gateways come and go, the busiest change."""
    page = console.page
    page.add_init_script(PLAYED_SOCKET)
    console.go("/")
    console.expect_pill("Live")
    devtools = console.context.new_cdp_session(page)

    def heap() -> int:
        devtools.send("HeapProfiler.collectGarbage")
        return int(devtools.send("Runtime.getHeapUsage")["usedSize"])

    def sessions() -> int:
        return int(tile(console, "sessions").inner_text().replace(",", "") or 0)

    def play(first: int, last: int) -> None:
        page.evaluate(PLAY, [first, last, 20])
        eventually(
            page, lambda: sessions() >= last - 1, "the last sample is shown"
        )  # the domain's own gateway may have some

    play(1, 1100)
    before = heap()
    play(1100, 1100 + 3600)
    assert heap() - before <= HEAP_GROWTH_BYTES, (before, heap())


# -- start here -------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_an_empty_domain_is_brought_up_with_the_examples_of_the_page(browser: Any, new_domain: DomainFactory) -> None:
    domain = new_domain()
    link = re.search(r"http://\S+/login/once/\S+", domain.output)
    assert link is not None, "the first start prints a login link"
    with Closing(Console(browser, domain)) as console:
        page = console.page
        page.goto(link[0])
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="Start here")).to_be_visible()
        assert_accessible(page)
        page.get_by_label("Name").fill("weather/bergen")
        page.get_by_label("Title").fill("Rain in Bergen")
        page.get_by_role("button", name="Create").click()
        expect(page.get_by_text("Waiting for the first event")).to_be_visible()
        console.expect_pill("Live")
        expect(page.locator("#token-note")).to_contain_text(re.compile(r"The token expires in [89] min"))
        arrived = page.locator("#arrived > li")
        for count, (tab, run) in enumerate(
            (
                ("curl", lambda text: ["bash", "-c", text]),
                ("Python", lambda text: [sys.executable, "-c", text]),
                *((("JavaScript", lambda text: [NODE, "--input-type=module", "-e", text]),) if NODE else ()),
            ),
            1,
        ):
            page.get_by_role("tab", name=tab).click()
            done = subprocess.run(
                run(page.get_by_role("tabpanel").locator("pre").inner_text()),
                capture_output=True,
                text=True,
                timeout=30,
                env=domain.env | {"no_proxy": "*", "NO_PROXY": "*"},
                check=False,
            )
            assert done.returncode == 0, shlex.join(done.args) + done.stderr
            expect(arrived).to_have_count(count)
            expect(arrived.first).to_contain_text(f"#{count} arrived")
            expect(arrived.first).to_contain_text(f"from {tab}")
        assert_accessible(page)
        page.get_by_role("link", name="Open the rendezvous point").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("/localhost/weather/bergen/")
        console.go("/")
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_the_tabs_are_used_by_keyboard(console: Console, rp: str) -> None:
    page = console.go(f"/start?rp={rp}")
    page.get_by_role("tab", name="curl").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Python")).to_be_focused()
    expect(page.get_by_role("tabpanel").locator("pre")).to_contain_text("urllib.request")
    page.keyboard.press("End")
    expect(page.get_by_role("tab", name="herald")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="curl")).to_be_focused()


# -- the frame of every page ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=[pytest.mark.long, pytest.mark.soak]), "dark"])
def test_the_pages_are_accessible_in_both_looks(browser: Any, domain: Domain, rp: str, scheme: str) -> None:
    with Closing(Console(browser, domain, WIDE if scheme == "light" else PHONE, color_scheme=scheme)) as console:
        page = console.log_in().page
        for path in ("/", "/rps", f"/start?rp={rp}", "/rps/new", f"/rps/{rp}", "/users", "/account"):
            console.go(path)
            if path == "/":
                console.expect_pill("Live")
                expect(page.locator("#gateways tbody tr")).to_have_count(1)
            assert_accessible(page)
        page.get_by_role("button", name="Your account").click()
        assert_accessible(page)


def test_the_look_is_chosen_and_kept(console: Console) -> None:
    ground = "background-color"
    page = console.go("/rps")
    body = page.locator("body")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Your account").click()
    page.get_by_role("radio", name="Dark").check()
    expect(body).not_to_have_css(ground, light)
    page.reload()
    expect(body).not_to_have_css(ground, light)
    page.get_by_role("button", name="Your account").click()
    page.get_by_role("radio", name="System").check()
    expect(body).to_have_css(ground, light)


@pytest.mark.long
def test_on_a_phone_the_pages_are_behind_a_button_and_nothing_is_wider_than_the_screen(
    browser: Any, domain: Domain, rp: str
) -> None:
    with Closing(Console(browser, domain, SMALL_PHONE)) as console:
        page = console.log_in().page
        widths = {}
        for path in ("/", "/rps", "/start", f"/start?rp={rp}"):
            console.go(path)
            widths[path] = page.evaluate("document.documentElement.scrollWidth")
        assert max(widths.values()) <= SMALL_PHONE["width"], widths
        console.go("/")
        expect(page.get_by_role("navigation", name="Pages")).to_be_hidden()
        page.get_by_role("button", name="Pages").click()
        expect(page.get_by_role("link", name="Overview", exact=True)).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("navigation", name="Pages")).to_be_hidden()
        page.get_by_role("button", name="Pages").click()
        page.get_by_role("link", name="Rendezvous points", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Rendezvous points")


@pytest.mark.long
def test_pages_are_used_by_keyboard_alone(console: Console, rp: str) -> None:
    """Tab reaches what is on them, what it reaches has a name and is seen, nothing is under the header. Lists: their tests."""
    shown = (
        "/",
        "/rps",
        "/rps/new",
        f"/rps/{rp}",
        f"/start?rp={rp}",
        "/alarms",
        "/timescale",
        "/federation",
        "/reports",
    )
    for path in (*shown, "/users", "/account"):
        page = console.go(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(".loading, .skeleton").locator("visible=true")).to_have_count(0)
        reached = " ".join(stop["what"] for stop in assert_usable_by_keyboard(page))
        assert "Skip to content" in reached, (path, reached)
        assert reached.count("Overview") >= 1, (path, reached)


def test_who_comes_by_keyboard_skips_to_the_content(console: Console) -> None:
    page = console.go("/rps")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
