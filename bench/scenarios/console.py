"""The console: delay of changes on the screen, size of a page's load, and cost of open consoles.

A whole domain with 1,000 rendezvous points, 5,000 sessions and 300 events/s, and an operator's tabs in a headless
Chromium, all on this machine and both its cores:

- changes of all kinds, one after the other, and when each appeared on the pages that show it (console_changes.py);
- pages from an empty and from a full cache: bytes over the wire, and when each is usable (console_browser.py: _READY);
- the CPU of the gateway with ten tabs open and with none, by turns at the same traffic;
- memory of a page's scripts at each minute of an hour of samples, played in less time (console_hour.py);
- lists of 100,000 rows (console_lists.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import psutil

from bench.measure import Bench, BenchMeasurement
from bench.peers.base import BenchServer
from bench.peers.herald import LEASE_S, Herald
from bench.scenarios.console_browser import Browser, ExpectedElement, Tab, chromium, settle
from bench.scenarios.console_changes import (
    ALARMS,
    FEDERATION,
    LEASES,
    LIST,
    ONE,
    OVERVIEW,
    SUBSCRIPTIONS,
    ChangeKind,
    Changes,
    all_delays,
    quantile,
    slowest,
)
from bench.scenarios.console_domain import RATE, RPS, SESSIONS_EACH, ConsoleDomain, Traffic
from bench.scenarios.console_hour import PLAY, PLAYED_SOCKET
from bench.scenarios.console_lists import LISTED, ROWS, lists

ROUNDS = 8  # of changes, 26 in each
CPU_S = 6.0
CPU_TURNS = 2
SETTLE_S = 4.0  # after this long without readers, administrative RPs count as unwatched
MINUTES = 60
WARM_MINUTES = 19  # until bounded lists have reached their bounds
PER_FRAME = 20
BUSY_MAX = 0.2  # share of the machine used by others, beyond which the row notes it


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield all rows; none for other servers."""
    if not isinstance(server, Herald):
        return
    busy = psutil.cpu_percent(interval=1.0) / 100
    with ExitStack() as stack:
        domain = stack.enter_context(ConsoleDomain(server.folder, "console"))
        domain.prepare(RPS, 100)
        peers = domain.add_strangers()
        rp = domain.create_watched()
        browser = Browser(stack.enter_context(chromium()), domain.url, domain.login_link())
        with Traffic(bench, domain):
            yield from _changes(domain, browser, rp, peers, busy)
            yield from _pages(browser, _addresses(rp))
            yield _cpu(domain, browser, _addresses(rp))
        yield _hour(browser)
        subscription = domain.ask("POST", f"/api/v1/rps/{rp}/subscriptions", {"lease_s": LEASE_S})["id"]
        domain.fill(rp, subscription)
        yield from lists(domain, browser)


def _addresses(rp: str) -> dict[str, tuple[str, ...]]:
    """Return the path of each page, and the selectors of its loaded data."""
    live = '#connection[data-state="live"]'
    return {
        OVERVIEW: ("/", live, '[data-tile="sessions"] .tile-value[data-text]', "#gateways tbody tr", "#rates canvas"),
        LIST: ("/rps", live, ROWS, "#tree nav:not(.loading)", "#total:not(:empty)"),
        ONE: (f"/rps/{rp}", live, '[data-tile="readings"] .tile-value[data-text]', "#load canvas"),
        SUBSCRIPTIONS: ("/subscriptions", live, "#listing :is(tbody tr, .empty)"),
        LEASES: ("/leases", live, LISTED),
        ALARMS: ("/alarms", live, "#listing :is(tbody tr, .empty)"),
        FEDERATION: ("/federation", live, "#peers tbody tr", "#map svg"),
        "timescale": (f"/timescale?rp={rp}",),
        "audit": ("/audit", LISTED),
        "keys": ("/keys",),
        "quotas": ("/quotas",),
        "reports": ("/reports",),
        "system": ("/system",),
    }


# -- changes ----------------------------------------------------------------------------------------------------------


def _changes(
    domain: ConsoleDomain, browser: Browser, rp: str, peers: Sequence[str], busy: float
) -> Iterator[BenchMeasurement]:
    """Yield a row for all kinds together, then one for each."""
    addresses = _addresses(rp)
    with ExitStack() as stack:
        tabs = {}
        for page in (OVERVIEW, LIST, ONE, SUBSCRIPTIONS, LEASES, ALARMS, FEDERATION):
            tabs[page] = stack.enter_context(browser.tab())
            tabs[page].load(*addresses[page])
            tabs[page].watch()
        there = tabs[OVERVIEW].want(
            ExpectedElement(OVERVIEW, '[data-tile="sessions"] .tile-value', _sessions(), exact=False)
        )
        tabs[OVERVIEW].seen(there)
        changes = Changes(domain, tabs, rp, peers)
        changes.run(ROUNDS)
    notes = (f"{busy:.0%} of the machine was used by others",) if busy > BUSY_MAX else ()
    yield _change_row("change on the screen", list(all_delays(changes.kinds)), changes.kinds, notes)
    for name, kind in sorted(changes.kinds.items()):
        slow = (f"slowest: {slowest(kind)}",) if kind.delays else ()
        yield _change_row(f"change: {name}", [delay for delay, _ in kind.delays], {name: kind}, slow)


def _sessions() -> str:
    return f"{RPS * SESSIONS_EACH:,}"[:2]


def _change_row(
    case: str, delays: Sequence[float], kinds: Mapping[str, ChangeKind], notes: tuple[str, ...]
) -> BenchMeasurement:
    missing = sum(len(kind.missing) for kind in kinds.values())
    pages = sorted({page for kind in kinds.values() for page in kind.missing})
    flaws = (f"{missing} not seen on {', '.join(pages)}",) if missing else ()
    values = {"changes": float(sum(kind.changes for kind in kinds.values()))}
    if delays:
        values |= {f"p{part:g}_ms": quantile(delays, part / 100) * 1000 for part in (50, 99)}
        values["max_ms"] = max(delays) * 1000
    return BenchMeasurement("console", case, "herald", values, flaws, notes)


# -- pages ------------------------------------------------------------------------------------------------------------


def _pages(browser: Browser, addresses: Mapping[str, Sequence[str]]) -> Iterator[BenchMeasurement]:
    """Yield for each page its first load, and the next one."""
    for page, (path, *wanted) in addresses.items():
        with browser.tab() as tab:
            cold = tab.load(path, *wanted)
            tab.leave()
            warm = tab.load(path, *wanted)
        usable = {"cold_ms": cold.usable_ms, "warm_ms": warm.usable_ms}
        values = {name: value for name, value in usable.items() if value is not None}
        sizes = {"kib": cold.wire_bytes / 1024, "warm_kib": warm.wire_bytes / 1024}
        flaws = tuple(f"never usable, {name.removesuffix('_ms')}" for name in usable if name not in values)
        yield BenchMeasurement("console", f"page: {page}", "herald", {**sizes, **values}, flaws)


# -- cost of consoles -------------------------------------------------------------------------------------------------


def _cpu(domain: ConsoleDomain, browser: Browser, addresses: Mapping[str, Sequence[str]]) -> BenchMeasurement:
    """Measure the gateway's CPU without consoles and with ten, in turn."""
    pages = [OVERVIEW, LIST, ONE, OVERVIEW, LIST, ONE, SUBSCRIPTIONS, LEASES, ALARMS, FEDERATION]
    shares: dict[bool, list[float]] = {False: [], True: []}
    with ExitStack() as stack:
        tabs = [stack.enter_context(browser.tab()) for _ in pages]
        for _ in range(CPU_TURNS):
            for consoles in (False, True):
                for tab, page in zip(tabs, pages, strict=True):
                    if consoles:
                        tab.load(*addresses[page])
                    else:
                        tab.leave()
                settle(tabs, SETTLE_S)
                shares[consoles].append(_share(domain, tabs))
    without, with_ten = (sum(shares[consoles]) / CPU_TURNS for consoles in (False, True))
    values = {
        "without_percent": without * 100,
        "consoles_percent": with_ten * 100,
        "cost_percent": (with_ten - without) * 100,
        "relative_percent": (with_ten / without - 1) * 100,
    }
    return BenchMeasurement("console", f"{len(pages)} consoles, {RATE:g} events/s", "herald", values)


def _share(domain: ConsoleDomain, tabs: list[Tab]) -> float:
    """Return the CPU-seconds of the gateway per second, over CPU_S."""
    began, used = time.monotonic(), domain.gateway_cpu_s
    settle(tabs, CPU_S)
    return (domain.gateway_cpu_s - used) / (time.monotonic() - began)


# -- an hour ----------------------------------------------------------------------------------------------------------


def _hour(browser: Browser) -> BenchMeasurement:
    """Measure the memory of the overview's scripts at each minute of an hour of samples, after a warm-up."""
    with browser.tab() as tab:
        tab.page.add_init_script(PLAYED_SOCKET)
        tab.load("/", '#connection[data-state="live"]')
        second, heaps = 1, []
        for minute in range(-WARM_MINUTES, MINUTES + 1):
            tab.page.evaluate(PLAY, [second, second + 60, PER_FRAME])
            second += 60
            if minute >= 0:
                heaps.append(tab.heap_bytes() / 2**20)
    values = {"heap_mib": heaps[0], "heap_most_mib": max(heaps), "heap_growth_mib": heaps[-1] - heaps[0]}
    minutes = {f"minute_{minute:02}_mib": heap for minute, heap in enumerate(heaps)}
    return BenchMeasurement("console", "an hour of live updates", "herald", {**values, **minutes})
