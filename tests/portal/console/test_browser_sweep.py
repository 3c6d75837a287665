"""Every page of the console, empty and full, light and dark, from a phone's width to a wide screen's: axe finds nothing, no cell is
too narrow, nothing is wider than the screen. A page is loaded once, and its look and size exchanged.
"""

from __future__ import annotations

from typing import Any

import pytest

from demo.harness.servers import Domain, wait_for
from tests.conftest import DomainFactory
from tests.portal.console.accessibility import begin, told, violations
from tests.portal.console.browsing import Closing, Console, created, publish, resize
from tests.portal.console.cells import NARROW
from tests.subscriptions.push.receiver import Receiver

pytest.importorskip("playwright.sync_api")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.processes,
    pytest.mark.long,
    pytest.mark.soak,
    pytest.mark.timeout(1800),
]

WIDTHS_PX = (390, 768, 1280, 1440, 1920)
EMPTY_WIDTHS_PX = (390, 1440)
SCHEMES = ("light", "dark")
TABS = ("overview", "events-tab", "readers", "access", "replicas", "watching", "intakes", "administration")
PAGES = (
    "/",
    "/start",
    "/alarms",
    "/rps",
    "/rps/new",
    "/timescale",
    "/federation",
    "/overlay",
    "/self-administration",
    "/subscriptions",
    "/deliveries",
    "/sessions",
    "/leases",
    "/keys",
    "/quotas",
    "/audit",
    "/system",
    "/reports",
    "/users",
    "/users/new",
    "/account",
    "/password",
    "/nowhere",
)
PUBLIC = ("/login", "/login/device", "/api/docs", "/api/docs/events", "/docs/", "/docs/alarms", "/docs/search?q=cursor")


@pytest.mark.parametrize("filled", [False, True], ids=["empty", "full"])
def test_axe_finds_nothing_and_no_cell_is_too_narrow(browser: Any, new_domain: DomainFactory, filled: bool) -> None:
    domain = new_domain(push=1, push_private=1, push_ports="1-65535")
    with Receiver() as receiver, Closing(Console(browser, domain)) as console:
        pages = [*PAGES, *_fill(domain, receiver)] if filled else [*PAGES, *PUBLIC]
        console.log_in()
        wrong = [fault for path in pages for fault in _faults(console, path, WIDTHS_PX if filled else EMPTY_WIDTHS_PX)]
    assert not wrong, "\n".join(wrong)


def _faults(console: Console, path: str, widths: tuple[int, ...]) -> list[str]:
    page = console.go(path)
    begin(page)
    found = []
    for width in widths:
        resize(page, width)
        found += [f"{path} at {width} px: {one}" for one in page.evaluate(NARROW)]
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            if here := violations(page):
                found.append(f"{path} at {width} px, {scheme}: {told(here)}")
    return found


def _fill(domain: Domain, receiver: Receiver) -> list[str]:
    """Something on every page; returns the addresses of what was made."""
    with domain.http(admin=True) as client:
        watch = [{"lag": {"events": 1}, "severity": "critical", "for_s": 0}]
        policy = [{"issuer": "anyone", "claims": {"sub": {"in": ["ann", "ben"]}}, "allow": ["describe", "subscribe"]}]
        stated = {"watch": watch, "policy": policy, "history": {"max_events": 20}, "reliability": 0.9}
        rp = created(client, name="sweep/harbour-master/positions-of-ships", title="Positions of ships", **stated)
        paused = created(client, name="sweep/paused", lease_s=400)
        client.post(f"/api/v1/rps/{paused}/pause", json={"reason": "to be seen"}).raise_for_status()
        client.post(f"/api/v1/rps/{rp}/subscriptions", json={"lease_s": 3600}).raise_for_status()
        deliver = {"mode": "webhook", "url": receiver.url("/ok/sweep"), "secret": "whsec_" + "A" * 40}
        hook = client.post(f"/api/v1/rps/{rp}/subscriptions", json={"deliver": deliver}).json()["id"]
        client.post(f"/api/v1/rps/{rp}/intakes", json={"format": "plain", "title": "build server"}).raise_for_status()
        scopes = [{"rps": ["sweep/*"], "ops": ["describe", "publish"]}]
        client.post("/api/v1/tokens", json={"subject": "west-gauge", "scopes": scopes}).raise_for_status()
        gone = {"kind": "subject", "value": "east-gauge", "reason": "Stolen."}
        client.post("/api/v1/revocations", json=gone).raise_for_status()
        point = {"name": "on call", "kind": "webhook", "url": receiver.url("/ok/point")}
        client.post("/api/v1/contact-points", json=point).raise_for_status()
        client.put("/api/v1/watches", json={"watch": [{"history_quota": {"percent": 90}}]}).raise_for_status()
        publish(client, rp, *[{"n": number, "word": "needle " * 20} for number in range(60)])
    _alarmed(domain, rp)
    return [
        *(f"/rps/{rp}#{tab}" for tab in TABS),
        f"/rps/{rp}?event=50#events-tab",
        f"/rps/{paused}",
        f"/rps/{rp}/delete",
        "/alarms?state=all",
        "/rps?q=sweep",
        f"/start?rp={rp}",
        f"/timescale?rp={rp}",
        f"/deliveries/{hook}",
    ]


def _alarmed(domain: Domain, rp: str) -> None:
    """Wait for an alarm of the RP."""
    with domain.http(admin=True) as client:
        wait_for(lambda: client.get("/api/v1/alarms", params={"rp": rp}).json()["items"], about="an alarm is raised")
