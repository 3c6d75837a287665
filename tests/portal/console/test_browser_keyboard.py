"""The ten commonest tasks by keyboard alone, each within the number of presses that docs/how-to/console-by-keyboard.md states."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from demo.harness.servers import ROOT, Domain
from tests.portal.console.browsing import Closing, Console, created, eventually, publish

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.long]

GUIDE = ROOT / "docs" / "how-to" / "console-by-keyboard.md"
STOPS_MAX = 90


class Hands:
    """A keyboard: counts what is pressed, without the letters of texts."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.presses = 0

    def press(self, key: str, times: int = 1) -> None:
        for _ in range(times):
            self.page.keyboard.press(key)
        self.presses += times

    def reach(self, target: Any) -> None:
        """Press Tab until `target`, which must be there, has the focus."""
        expect(target).to_be_visible()
        for _ in range(STOPS_MAX):
            if target.evaluate("(one) => one === document.activeElement"):
                return
            self.press("Tab")
        raise AssertionError(f"not reached with {STOPS_MAX} times Tab: {target}")

    def skip(self) -> None:
        """To the content of the page, by its first stop; a form that was sent from there leads there again."""
        if self.page.evaluate("document.activeElement?.id !== 'main'"):
            self.press("Tab")
            self.press("Enter")

    def choose(self, target: Any) -> None:
        self.reach(target)
        self.press("Enter")

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)


def documented(guide: Path) -> dict[str, int]:
    """The rows of the guide's table: task and presses."""
    rows = re.findall(r"^\| ([a-z][^|]*?) \| (\d+) \|", guide.read_text(), re.MULTILINE)
    return {task: int(presses) for task, presses in rows}


@pytest.mark.timeout(900)
def test_ten_tasks_are_done_by_keyboard_within_the_documented_presses(browser: Any, domain: Domain) -> None:
    needed: dict[str, int] = {}
    with domain.http(admin=True) as client, Closing(Console(browser, domain)) as console:
        watch = [{"lag": {"events": 1}, "severity": "critical", "for_s": 0}]
        busy = created(client, name="keys/busy", watch=watch)
        client.post(f"/api/v1/rps/{busy}/subscriptions", json={"lease_s": 3600}).raise_for_status()
        publish(client, busy, 1, 2)
        page = console.page
        main, dialog = page.locator("main"), page.get_by_role("dialog")

        def begin(address: str = "/") -> Hands:
            console.go(address)
            return Hands(page)

        def menu(hands: Hands, name: str) -> None:
            hands.choose(
                page.get_by_role("navigation", name="Pages").get_by_role("link", name=re.compile(rf"^{name}( \d+)?$"))
            )
            expect(page.get_by_role("heading", level=1)).to_have_text(name)
            page.wait_for_load_state()  # the heading is there before the scripts are

        page.goto(domain.manage("login_link").stdout.strip())
        hands = Hands(page)
        hands.choose(page.get_by_role("button", name="Log in"))
        page.wait_for_url(re.compile(re.escape(domain.url) + "/(start)?$"))
        needed["log in with a link"] = hands.presses

        hands = begin()
        menu(hands, "Rendezvous points")
        hands.skip()
        hands.choose(page.get_by_role("link", name="New rendezvous point"))
        page.wait_for_url(re.compile("/rps/new$"))
        hands.skip()
        hands.reach(page.get_by_label("Name", exact=True))
        hands.type("keys/made")
        hands.press("Enter")
        expect(page.locator("#label")).to_have_text(f"/{domain.name}/keys/made/")
        needed["create a rendezvous point"] = hands.presses
        made = page.locator("main").get_attribute("data-rp")

        hands = begin(f"/rps/{made}")
        hands.skip()
        hands.reach(page.get_by_role("tab", name="Overview"))
        hands.press("ArrowRight")
        hands.choose(main.get_by_role("button", name="Publish", exact=True))
        expect(page.locator("#answer")).to_have_attribute("data-kind", "good")
        needed["publish a test event"] = hands.presses

        hands = begin(f"/rps/{made}")
        hands.skip()
        hands.choose(page.get_by_role("button", name="Pause publishing…"))
        expect(dialog.get_by_label("Reason")).to_be_focused()
        hands.type("only a test")
        hands.press("Enter")
        expect(page.locator("#is-paused")).to_contain_text("only a test")
        needed["pause a rendezvous point"] = hands.presses

        hands = begin(f"/rps/{made}")
        hands.skip()
        hands.reach(page.get_by_role("tab", name="Overview"))
        hands.press("ArrowRight", 3)
        hands.choose(page.locator("#change-policy"))
        hands.choose(page.get_by_role("button", name="Everybody: read only"))
        hands.choose(page.get_by_role("button", name="Save policy"))
        expect(page.locator("#rules li")).to_have_count(2)
        needed["add a rule to a policy"] = hands.presses

        hands = begin()
        menu(hands, "Rendezvous points")
        hands.skip()
        hands.reach(page.get_by_role("searchbox", name=re.compile("^Part of a name")))
        hands.type("keys/busy")
        hands.press("Enter")
        page.wait_for_url(re.compile("q=keys"))
        hands.skip()
        hands.reach(page.locator("#q"))
        hands.press("ArrowDown")
        hands.press("Enter")
        expect(page.locator("#label")).to_have_text(f"/{domain.name}/keys/busy/")
        needed["find a rendezvous point"] = hands.presses

        hands = begin()
        menu(hands, "Tokens and keys")
        hands.skip()
        hands.reach(page.get_by_label("Subject", exact=True))
        hands.type("keys-roof")
        hands.reach(page.get_by_role("combobox", name="Add a rendezvous point"))
        hands.type("keys/busy")
        expect(page.locator("#rps-found li").first).to_contain_text("/keys/busy/")
        hands.press("Enter")
        hands.choose(page.get_by_role("button", name="Create token"))
        expect(page.locator("#token-export")).to_contain_text("export HERALD_URL")
        needed["issue a token for a rendezvous point"] = hands.presses

        eventually(page, lambda: client.get("/api/v1/alarms", params={"rp": busy}).json()["items"] != [], "an alarm")
        hands = begin()
        menu(hands, "Alarms")
        hands.skip()
        hands.choose(page.locator("#listing tbody tr").first.get_by_role("button", name="Acknowledge"))
        expect(dialog.get_by_label("Note")).to_be_focused()
        hands.type("looked at")
        hands.press("Enter")
        expect(dialog).to_have_count(0)
        expect(page.locator("#listing tbody")).to_contain_text("looked at")
        needed["acknowledge an alarm"] = hands.presses

        hands = begin()
        menu(hands, "Leases")
        hands.skip()
        hands.choose(page.locator("#listing tbody tr").first.get_by_role("button", name="Renew"))
        expect(page.locator("#toasts")).to_contain_text("renewed")
        needed["renew the lease that ends first"] = hands.presses

        hands = begin()
        menu(hands, "Subscriptions")
        expect(page.locator('#listing tbody [data-name="Behind"]').first).to_have_text(re.compile(r"\d"))
        needed["see how far subscriptions are behind"] = hands.presses
    stated = documented(GUIDE)
    assert set(stated) == set(needed)
    assert {task: presses for task, presses in needed.items() if presses > stated[task]} == {}, needed
