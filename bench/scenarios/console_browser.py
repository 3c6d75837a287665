"""The browser of the console scenario: tabs of an operator, their loaded bytes, and when an element appeared on the
page.

Conditions on a page are data (selectors and texts), because the pages' security policy allows no script made from text.
Times are the wall clock's, which the browser and this process share.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.processes import CannotStart

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
WIDE = {"width": 1280, "height": 900}
USABLE_WITHIN_S = 20.0
SEEN_WITHIN_S = 5.0

_READY = """
(wanted) => {
  const seen = (element) => element.checkVisibility();
  const there = () =>
    wanted.every((selector) => document.querySelector(selector)) &&
    ![...document.querySelectorAll("#main .skeleton, #main [aria-busy=true]")].some(seen) &&
    document.querySelector("#look:not([hidden])");
  return new Promise((done) => {
    let last = performance.now();
    const frame = () => {
      const now = performance.now();
      const answers = now - last < 100; // a busy main thread draws no frames, and takes no input
      last = now;
      if (answers && there()) done(now);
      else if (now < LIMIT_MS) requestAnimationFrame(frame);
      else done(null);
    };
    requestAnimationFrame(frame);
  });
}
""".replace("LIMIT_MS", str(USABLE_WITHIN_S * 1000))
"""Time until a page is usable, milliseconds since its request: its data is shown, no placeholder is left, its scripts
have run (the look can be chosen), and frames are drawn as fast as requested.
"""

_WATCH = """
() => {
  const wanted = new Map();
  const holds = ({ selector, text, exact, absent }) => {
    const found = [...document.querySelectorAll(selector)].some(
      (element) => element.checkVisibility() &&
        (text === null || (exact ? element.textContent.trim() === text : element.textContent.includes(text))));
    return found !== absent;
  };
  const look = () => {
    for (const one of wanted.values()) {
      if (one.at !== null || !holds(one)) continue;
      one.at = Date.now();
      one.tell?.(one.at);
    }
  };
  new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
  window.bench = {
    want: ([key, what]) => {
      wanted.set(key, { ...what, at: null, tell: null });
      look();
    },
    seen: ([key, withinMs]) => new Promise((done) => {
      const one = wanted.get(key);
      const end = (at) => {
        wanted.delete(key);
        done(at);
      };
      if (one.at !== null) return end(one.at);
      one.tell = end;
      setTimeout(() => end(null), withinMs);
    }),
  };
}
"""


@dataclass(frozen=True, slots=True)
class ExpectedElement:
    """A condition on the page: an element of `selector`, with `text` in it (`exact`: and nothing else), or `absent`."""

    page: str
    selector: str
    text: str | None = None
    exact: bool = False
    absent: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """A page's load: bytes received over the wire, and milliseconds until it was usable; None: it was not."""

    wire_bytes: int
    usable_ms: float | None


class Browser:
    """Chromium, logged in at one domain. Tabs have contexts of their own: only the session is shared."""

    def __init__(self, chromium: Any, url: str, link: str) -> None:
        self._chromium = chromium
        self._url = url
        context = chromium.new_context()
        page = context.new_page()
        page.goto(link)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(lambda address: "/login" not in address)
        self._cookies = context.cookies()
        context.close()

    @contextmanager
    def tab(self) -> Iterator[Tab]:
        """Yield a tab with an empty cache."""
        context = self._chromium.new_context(viewport=WIDE, locale="en-GB")
        context.add_cookies(self._cookies)
        try:
            yield Tab(context, self._url)
        finally:
            context.close()


class Tab:
    """One tab."""

    def __init__(self, context: Any, url: str) -> None:
        self.page = context.new_page()
        self._url = url
        self._wire_bytes = 0
        self._keys = 0
        self.devtools = context.new_cdp_session(self.page)
        self.devtools.send("Network.enable")
        self.devtools.on("Network.loadingFinished", self._count)

    def _count(self, told: dict[str, Any]) -> None:
        self._wire_bytes += int(told["encodedDataLength"])

    def load(self, path: str, *wanted: str) -> Loaded:
        """Open a page; it is usable when `wanted` is on it, all by selectors (see _READY)."""
        self._wire_bytes = 0
        self.page.goto(f"{self._url}{path}", wait_until="commit")
        usable_ms = self._usable_ms(wanted)
        self.page.wait_for_timeout(50)  # for the browser's last reports about the answer
        return Loaded(self._wire_bytes, usable_ms)

    def submit(self, field: str, text: str, *wanted: str) -> float | None:
        """Type into a search and send it; return the milliseconds until the results are usable."""
        self.page.locator(field).press_sequentially(text)
        with self.page.expect_navigation(wait_until="commit"):
            self.page.locator(field).press("Enter")
        return self._usable_ms(wanted)

    def follow(self, link: str, *wanted: str) -> float | None:
        """Click on a link to another page; return the milliseconds until that is usable."""
        with self.page.expect_navigation(wait_until="commit"):
            self.page.locator(link).click()
        return self._usable_ms(wanted)

    def fetch(self, path: str) -> None:
        """Send a request as the page's scripts do; the answer is read and dropped."""
        answer = self.page.request.get(f"{self._url}{path}")
        if not answer.ok:
            raise CannotStart(f"{path} was answered {answer.status}: {answer.text()[:500]}")

    def _usable_ms(self, wanted: Sequence[str]) -> float | None:
        usable_ms = self.page.evaluate(_READY, list(wanted))
        return None if usable_ms is None else float(usable_ms)

    def leave(self) -> None:
        """Open an empty page: connections end."""
        self.page.goto("about:blank")

    def watch(self) -> None:
        """Observe changes of the page, from now on."""
        self.page.evaluate(_WATCH)

    def want(self, wanted: ExpectedElement) -> str:
        """Register a condition; return the key to wait for it by."""
        self._keys += 1
        key = str(self._keys)
        what = {"selector": wanted.selector, "text": wanted.text, "exact": wanted.exact, "absent": wanted.absent}
        self.page.evaluate("given => window.bench.want(given)", [key, what])
        return key

    def seen(self, key: str) -> float | None:
        """Return when the condition was first met, seconds since 1970; None if not within SEEN_WITHIN_S from now."""
        at = self.page.evaluate("given => window.bench.seen(given)", [key, SEEN_WITHIN_S * 1000])
        return None if at is None else float(at) / 1000

    def number(self, selector: str) -> int:
        """Return the number that an element shows."""
        return int(self.page.locator(selector).inner_text().replace(",", "") or 0)

    def heap_bytes(self) -> int:
        """Return the memory of the page's scripts after a collection."""
        self.devtools.send("HeapProfiler.collectGarbage")
        return int(self.devtools.send("Runtime.getHeapUsage")["usedSize"])


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a headless Chromium. Raises CannotStart where there is none."""
    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        raise CannotStart("there is no Chromium here (Debian: apt install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-background-networking"]
        )
        try:
            yield started
        finally:
            started.close()


def settle(tabs: list[Tab], seconds: float) -> None:
    """Let some time pass while the tabs continue."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        tabs[0].page.wait_for_timeout(min(left, 0.5) * 1000) if tabs else time.sleep(min(left, 0.5))
