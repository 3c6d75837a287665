"""A tab of a real browser in the console of a domain, for the tests of its pages.

    with Closing(Console(browser, domain)) as console:
        console.log_in()
        console.go("/federation")
        expect(console.page.get_by_role("heading", level=1)).to_have_text("Federation")
        assert_accessible(console.page)          # tests/portal/console/accessibility.py

`make test ARGS='--slow-pages -m browser'` delays the responses that a tab receives and throttles its scripts, by as much as the
seed of the order says: a test that acts or asserts before the page has done what it is to do fails then, and not first on
a busy machine.

`Closing` fails the test when a script of ours failed, or something broke the pages' security policy. The console must be
built (make test does it; else make .venv/.console-built).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any, ClassVar

import httpx

from demo.harness.servers import Domain
from portal.bundle import HOW_TO_BUILD, NOT_BUILT, manifest

CHROMIUM = "/usr/bin/chromium"
WITHIN_MS = 60_000
LATENCY_MS = (20.0, 1500.0)
THROTTLES = (1, 2, 4, 8)
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
SMALL_PHONE = {"width": 360, "height": 740}

_sessions: dict[str, list[Any]] = {}
"""Cookies of the administrator by domain: one login link each, which costs a process."""


class Console:
    """A browser tab in the console of a domain; `settings` are those of Playwright's new_context."""

    slowness: ClassVar[random.Random | None] = None
    """Draws how slow a tab is (--slow-pages); None: as fast as the machine."""

    def __init__(
        self,
        browser: Any,
        domain: Domain,
        viewport: dict[str, int] = WIDE,
        *,
        color_scheme: str = "light",
        **settings: Any,
    ) -> None:
        assert manifest(), f"{NOT_BUILT} {HOW_TO_BUILD}"
        _expectations().set_options(timeout=WITHIN_MS)
        self.domain = domain
        self.errors: list[str] = []
        self.context = browser.new_context(
            viewport=viewport, locale="en-GB", timezone_id="Europe/Oslo", color_scheme=color_scheme, **settings
        )
        self.context.set_default_timeout(WITHIN_MS)
        self.page = self.new_tab()

    def new_tab(self) -> Any:
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if "Content Security" in said.text else None)
        if self.slowness is not None:
            devtools = self.context.new_cdp_session(page)
            latency = {"latency": self.slowness.uniform(*LATENCY_MS), "downloadThroughput": -1, "uploadThroughput": -1}
            devtools.send("Network.enable")
            devtools.send("Network.emulateNetworkConditions", {"offline": False, **latency})
            devtools.send("Emulation.setCPUThrottlingRate", {"rate": self.slowness.choice(THROTTLES)})
        return page

    def log_in(self) -> Console:
        """As the domain's administrator; the page is left where logging in leads."""
        key = f"{self.domain.url} {self.domain.data_dir}"
        if key in _sessions:
            self.context.add_cookies(_sessions[key])
            self.page.goto(self.domain.url)
        else:
            self.page.goto(self.domain.manage("login_link").stdout.strip())
            self.page.get_by_role("button", name="Log in").click()
            self.page.wait_for_url(re.compile(re.escape(self.domain.url) + "/(start)?$"))
            _sessions[key] = self.context.cookies()
        return self

    def go(self, path: str) -> Any:
        """Open a page of the domain; returns Playwright's page."""
        self.page.goto(f"{self.domain.url}{path}")
        return self.page

    def open(self, rp: str) -> None:
        """The events of an RP, on its page, once they are live."""
        self.go(f"/rps/{rp}#events-tab")
        self.expect_live()

    def expect_live(self) -> None:
        """The connection is there, and the events on an RP's page are read."""
        self.expect_pill("Live")
        expect(self.page.locator("#events")).to_have_attribute("aria-busy", "false")

    def expect_pill(self, text: str | re.Pattern[str]) -> None:
        """The pill in the header says so."""
        expect(self.page.locator("#connection")).to_have_text(text)

    @property
    def rows(self) -> Any:
        return self.page.locator("#events > li")

    def offsets(self) -> list[int]:
        return [int(text[1:]) for text in self.page.locator(".ev-offset").all_inner_texts()]


class Closing:
    """Closes the browser context, and fails the test if a script of ours failed or broke the page's policy."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def __enter__(self) -> Console:
        return self.console

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.console.context.close()
        if kind is None:
            assert self.console.errors == [], self.console.errors


def expect(target: Any) -> Any:
    """Playwright's expect, imported when it is used: the module is importable without Playwright."""
    return _expectations()(target)


def _expectations() -> Any:
    from playwright.sync_api import expect as playwrights

    return playwrights


def created(client: httpx.Client, **stated: Any) -> str:
    """The id of a new RP."""
    answer = client.post("/api/v1/rps", json={"lease_s": 3600, **stated})
    assert answer.status_code == 201, answer.text
    rp: str = answer.json()["id"]
    return rp


def rps_held(client: httpx.Client) -> int:
    """How many RPs the domain has; its pages follow when the event of the last one has arrived. The client is an administrator's."""
    held: int = client.get("/api/v1/admin/snapshot").json()["state"]["counts"]["rps"]
    return held


def publish(client: httpx.Client, rp: str, *data: Any) -> None:
    """Publish an event for each of `data`, in batches."""
    for start in range(0, len(data), 1000):
        events = [
            {
                "specversion": "1.0",
                "id": f"{rp}-{start + index}-{value!r:.40}",
                "source": "/test",
                "type": "test",
                "data": value,
            }
            for index, value in enumerate(data[start : start + 1000])
        ]
        answer = client.post(
            f"/api/v1/rps/{rp}/events",
            content=json.dumps(events),
            headers={"Content-Type": "application/cloudevents-batch+json"},
        )
        assert answer.status_code == 201, answer.text


def resize(page: Any, width: int, height: int = 900) -> None:
    """Give the page another size, and wait until what its scripts measure is drawn anew."""
    page.set_viewport_size({"width": width, "height": height})
    eventually(page, lambda: page.evaluate("innerWidth") == width, f"{width} px")
    drawn(page)


def drawn(page: Any) -> None:
    """Let the page finish what it has begun: its tasks, and two frames."""
    page.evaluate(
        "() => new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done))))"
    )


def expect_to_fit(page: Any) -> None:
    """The page gets no wider than the screen: plots follow a new size a frame later."""
    fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    eventually(page, lambda: page.evaluate(fits), f"{page.url} fits its screen")


def press_if_there(target: Any) -> None:
    """Press a button that goes away by itself when the page recovers before it is pressed."""
    target.evaluate_all("(buttons) => buttons[0]?.click()")


def eventually(page: Any, condition: Callable[[], bool], about: str) -> None:
    """Wait for `condition` while the page runs."""
    for _ in range(WITHIN_MS // 50):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"not within {WITHIN_MS / 1000:g} s: {about}")
