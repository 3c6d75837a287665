"""Every table of the console at every width from a phone's to a wide screen's: what stands in a cell can be read there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from demo.harness.servers import Domain
from tests.portal.console.browsing import Closing, Console, created, eventually, publish, resize
from tests.portal.console.cells import NARROW

pytest.importorskip("playwright.sync_api")

pytestmark = [pytest.mark.browser, pytest.mark.processes]

WIDTHS_PX = (390, 768, 961, 1024, 1100, 1152, 1280, 1440, 1920)
NAME = "tables/harbour-master/positions-of-ships-in-the-fairway"
PAGES = {
    "/": "#gateways tbody tr, #hot tbody tr",
    "/subscriptions": "#listing tbody tr",
    "/leases": "#listing tbody tr",
    "/audit": "#listing tbody tr",
    "/keys": "#tokens tbody tr",
    "/alarms?state=all": "#listing tbody tr",
    "/rps": "tbody tr",
    "/rps/{rp}#readers": "#subscriptions tbody tr",
    "/rps/{rp}#replicas": "",
    "/quotas": "",
    "/system": "#processes tbody tr",
    "/users": "tbody tr",
    "/account": "",
    "/federation": "",
    "/reports?job=load": "",
}
"""Address, and the rows that it has to have before it is measured."""


@pytest.fixture(scope="module")
def rp(domain: Domain) -> str:
    """An RP with a long name, a reader that lost events, alarms, and acts in the audit."""
    with domain.http() as client:
        watch = [{"lag": {"events": 1}, "severity": "critical", "for_s": 0}]
        found = created(client, name=NAME, title="Positions of ships", history={"max_events": 20}, watch=watch)
        made = client.post(f"/api/v1/rps/{found}/subscriptions", json={"lease_s": 3600})
        assert made.status_code == 201, made.text
        publish(client, found, *[{"n": number} for number in range(60)])
    with domain.http(admin=True) as client:
        scopes = [{"rps": ["tables/*"], "ops": ["describe", "publish", "subscribe"]}]
        client.post("/api/v1/tokens", json={"subject": "west-gauge", "scopes": scopes}).raise_for_status()
        revoked = {"kind": "subject", "value": "east-gauge", "reason": "Stolen."}
        client.post("/api/v1/revocations", json=revoked).raise_for_status()
    return found


@pytest.fixture(scope="module")
def tab(browser: Any, domain: Domain, rp: str) -> Iterator[Console]:
    with Closing(Console(browser, domain)) as tab:
        yield tab.log_in()


@pytest.mark.long
@pytest.mark.parametrize("path", PAGES)
def test_no_cell_is_narrower_than_eight_characters(tab: Console, domain: Domain, rp: str, path: str) -> None:
    page = tab.go(path.replace("{rp}", rp))
    if "alarms" in path:
        with domain.http() as client:
            eventually(page, lambda: len(_alarms(client, rp)) >= 2, "lag and loss are told")
        page.reload()
    if PAGES[path]:
        page.locator(PAGES[path]).first.wait_for(state="visible")
    loading = "[...document.querySelectorAll('.skeleton, .loading')].some((one) => one.checkVisibility())"
    eventually(page, lambda: not page.evaluate(loading), f"{path} shows its content")
    found = {}
    for width in WIDTHS_PX:
        resize(page, width)
        if narrow := page.evaluate(NARROW):
            found[width] = narrow
    assert not found, json.dumps(found, indent=1, ensure_ascii=False)


def _alarms(client: Any, rp: str) -> list[Any]:
    items: list[Any] = client.get("/api/v1/alarms", params={"rp": rp}).json()["items"]
    return items
