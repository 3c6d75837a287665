"""Lists of a domain of 100,000 rendezvous points and as many durable subscriptions: the time that an operator waits."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from statistics import median

from bench.measure import BenchMeasurement
from bench.processes import resident_of
from bench.scenarios.console_browser import Browser, Tab
from bench.scenarios.console_domain import MANY, ConsoleDomain

ROWS = "tr[data-rp]"
LISTED = "#listing tbody tr"
TREE = "#tree .names"
PAGES = {
    "RPs, newest first": ("/rps", ROWS, TREE),
    "RPs, by name": ("/rps?sort=name", ROWS),
    "RPs, by end of lease": ("/rps?sort=ends", ROWS),
    "RPs, below a name": ("/rps?prefix=/console.test/area-07/", ROWS),
    "RPs, search: all match": ("/rps?q=sensor", ROWS),
    "RPs, search: some match": ("/rps?q=line-42", ROWS),
    "RPs, search: one matches": ("/rps?q=sensor-012345", ROWS),
    "RPs, search: none matches": ("/rps?q=nowhere", ".empty"),
    "RPs, search: some match, by name": ("/rps?q=line-42&sort=name", ROWS),
    "leases": ("/leases", LISTED),
    "leases of subscriptions": ("/leases?kind=subscription", LISTED),
    "subscriptions, furthest behind": ("/subscriptions", LISTED),
    "subscriptions, end soonest": ("/subscriptions?sort=ends", LISTED),
    "subscriptions of an owner": ("/subscriptions?owner=reader-4242", LISTED),
    "overview": ("/", '[data-tile="rps"] .tile-value[data-text]', "#gateways tbody tr"),
}
ASKED = {
    "overview": "/api/v1/admin/snapshot",
    "leases": "/api/v1/leases?limit=50",
    "leases of subscriptions": "/api/v1/leases?limit=50&kind=subscription",
    "subscriptions, furthest behind": "/api/v1/subscriptions?limit=50&sort=lag",
    "subscriptions, end soonest": "/api/v1/subscriptions?limit=50&sort=ends",
    "subscriptions of an owner": "/api/v1/subscriptions?limit=50&owner=reader-4242",
    "tree of names, first level": "/api/v1/names?limit=200&prefix=/console.test/",
    "tree of names, second level": "/api/v1/names?limit=200&prefix=/console.test/area-07/",
}
"""Requests of a page's scripts; for the other pages the server makes the list itself."""

TRIES = 3
TYPED = "line-42"


def lists(domain: ConsoleDomain, browser: Browser) -> Iterator[BenchMeasurement]:
    """Yield a row for each list; the domain was filled before."""
    with browser.tab() as tab:
        tab.load("/rps", ROWS)  # scripts and styles are in the cache from now on
        for case, (path, *wanted) in PAGES.items():
            server_ms = _server_ms(tab, ASKED.get(case, path))
            yield _row(case, {"server_ms": server_ms}, tab.load(path, *wanted).usable_ms)
        for case in ("tree of names, first level", "tree of names, second level"):
            yield BenchMeasurement("console", _case(case), "herald", {"server_ms": _server_ms(tab, ASKED[case])})
        tab.load("/rps", ROWS)
        yield _row("RPs, typing a search", {}, tab.submit("#q", TYPED, ROWS))
        tab.load("/rps?sort=name", ROWS)
        yield _row("RPs, next page", {}, tab.follow("a[rel=next]", ROWS))
    yield _names(domain)


def _case(case: str) -> str:
    return f"{MANY:,}: {case}"


def _row(case: str, values: dict[str, float], usable_ms: float | None) -> BenchMeasurement:
    if usable_ms is None:
        return BenchMeasurement("console", _case(case), "herald", values, ("never usable",))
    return BenchMeasurement("console", _case(case), "herald", {**values, "warm_ms": usable_ms})


def _server_ms(tab: Tab, path: str) -> float:
    """Return the median of some answers' server times."""
    took = []
    for _ in range(TRIES):
        began = time.monotonic()
        tab.fetch(path)
        took.append((time.monotonic() - began) * 1000)
    return median(took)


def _names(domain: ConsoleDomain) -> BenchMeasurement:
    """Measure the export of names, and the growth of the gateway's memory meanwhile."""
    pid = domain.pid_of("gateway")
    before = most = resident_of(pid)
    connection = http.client.HTTPConnection("127.0.0.1", domain.port, timeout=60)
    began = time.monotonic()
    connection.request("GET", "/api/v1/admin/names", headers={"Authorization": f"Bearer {domain.token}"})
    answer = connection.getresponse()
    lines = 0
    while piece := answer.read(256 * 1024):
        lines += piece.count(b"\n")
        most = max(most, resident_of(pid))
    elapsed_ms = (time.monotonic() - began) * 1000
    connection.close()
    complete = lines > MANY
    values = {"server_ms": elapsed_ms, "growth_mib": (most - before) / 2**20}
    flaws = () if complete else (f"{lines:,} lines only",)
    return BenchMeasurement("console", _case("export of names"), "herald", values, flaws)
