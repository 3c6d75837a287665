"""What an operator does on the pages of rendezvous points, in a real browser: find who is slow, stop who floods, change, look."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from demo.harness.servers import Domain, wait_for
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import PHONE, WIDE, WITHIN_MS, Closing, Console, created, drawn, eventually, publish
from tests.portal.console.keyboard import assert_usable_by_keyboard

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]

TABS = ("Overview", "Events", "Readers", "Access", "Replicas", "Watching", "Intakes", "Activity")
AUDITORS = {"label": "auditors", "at_least": 1, "publishing": "flag"}


@pytest.fixture
def console(browser: Any, domain: Domain) -> Iterator[Console]:
    with Closing(Console(browser, domain)) as tab:
        yield tab.log_in()


def row(console: Console, rp: str) -> Any:
    return console.page.locator(f'tr[data-rp="{rp}"]')


def answered(console: Console, button: str, **fields: str) -> None:
    """Fill the open dialog's fields by their labels, press its button, and see it close."""
    dialog = console.page.get_by_role("dialog")
    for label, text in fields.items():
        dialog.get_by_label(label.replace("_", " "), exact=False).fill(text)
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog).to_have_count(0)


@contextmanager
def slow_reader(domain: Domain, rp: str, subject: str) -> Iterator[socket.socket]:
    """A stream whose reader takes nothing."""
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.settimeout(20)
        made.connect(("127.0.0.1", domain.port))
        head = f"GET /api/v1/rps/{rp}/stream HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {domain.token(subject=subject)}\r\n\r\n"
        made.sendall(head.encode())
        answer = b""
        while b"\r\n" not in answer:
            answer += (some := made.recv(64))
            assert some, answer
        assert b" 200 " in answer
        yield made


class Flood:
    """Somebody who publishes without end; `answers` counts the statuses."""

    def __init__(self, domain: Domain, rp: str, subject: str) -> None:
        self.answers: Counter[int] = Counter()
        self.said = ""
        self._domain, self._rp, self._subject = domain, rp, subject
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._flood, daemon=True)

    def _flood(self) -> None:
        number = 0
        with self._domain.http(subject=self._subject) as http:
            while not self._ended.wait(0.05):
                number += 1
                events = [
                    {"specversion": "1.0", "id": f"{number}-{index}", "source": "/flood", "type": "flood"}
                    for index in range(50)
                ]
                answer = http.post(
                    f"/api/v1/rps/{self._rp}/events",
                    content=json.dumps(events),
                    headers={"Content-Type": "application/cloudevents-batch+json"},
                )
                self.answers[answer.status_code] += 1
                if answer.status_code == 409:
                    self.said = answer.text

    def __enter__(self) -> Flood:
        self._thread.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._ended.set()
        self._thread.join(20)

    def expect(self, status: int) -> None:
        """The next answers are these."""
        before = self.answers[status]
        wait_for(lambda: self.answers[status] >= before + 3, about=f"it is answered {status}: {self.answers}")


# -- what operators do ------------------------------------------------------------------------------------------------


def test_a_slow_subscriber_is_found_and_disconnected(console: Console) -> None:
    domain = console.domain
    with domain.http() as client:
        rp = created(client, name="slow/read")
        with slow_reader(domain, rp, "sam-the-slow") as slow:
            console.go(f"/rps/{rp}")
            console.expect_pill("Live")
            expect(console.page.locator('[data-tile="readings"] .tile-value')).to_have_text("1")
            for number in range(30):
                publish(client, rp, f"{number} " + "x" * 200_000)
            console.page.get_by_role("tab", name="Readers").click()
            found = console.page.locator("#sessions tbody tr").filter(has_text="sam-the-slow")
            expect(found).to_contain_text("not receiving")
            expect(found).to_contain_text(re.compile(r"\d+ events?"))
            found.get_by_role("button", name="Disconnect sam-the-slow").click()
            assert_accessible(console.page)
            answered(console, "Disconnect")
            expect(console.page.locator("#sessions")).to_contain_text("No readers")
            while receives(slow):  # what the kernel still had
                pass


def receives(connection: socket.socket) -> bool:
    """Whether there was more; False once the connection is cut. Raises TimeoutError while it is open and silent."""
    try:
        return bool(connection.recv(1 << 16))
    except ConnectionError:
        return False


def test_a_flooding_publisher_is_seen_found_stopped_and_let_in_again(console: Console) -> None:
    page = console.page
    with console.domain.http() as client:
        rp = created(client, name="flood/here", title="Water levels")
    with Flood(console.domain, rp, "fred") as flood:
        console.go("/rps?q=water+lev")
        console.expect_pill("Live")
        expect(row(console, rp).locator("[data-rate]")).to_have_text(re.compile(r"[1-9]"))
        row(console, rp).get_by_role("link").click()
        expect(page.locator('[data-tile="in"] .tile-value')).to_have_text(re.compile(r"^[1-9]"))
        page.get_by_role("button", name="Pause publishing").click()
        answered(console, "Pause", Reason="fred floods")
        expect(page.locator("#is-paused")).to_contain_text("by admin: fred floods")
        flood.expect(409)
        assert "fred floods" in flood.said
        page.get_by_role("tab", name="Activity").click()
        told = page.locator("#happened > ol > li").filter(has_text="Events are refused at the RP until it is resumed")
        expect(told).to_contain_text("reason: fred floods, by admin")
        page.get_by_role("button", name="Resume publishing").click()
        expect(page.locator("#is-paused")).to_be_hidden(timeout=WITHIN_MS)
        flood.expect(201)


def test_the_list_changes_as_the_domain_does(console: Console) -> None:
    page = console.page
    with console.domain.http() as client:
        first = created(client, name="changing/first")
        console.go("/rps?prefix=/localhost/changing/")
        console.expect_pill("Live")
        tree = page.get_by_role("navigation", name="Names")
        second = created(client, name="changing/zweites")
        expect(row(console, second)).to_contain_text("/localhost/changing/zweites/")
        page.locator("#tree").evaluate("details => { details.open = true; }")
        expect(tree.get_by_role("link", name="zweites")).to_be_visible(timeout=WITHIN_MS)

        assert client.patch(f"/api/v1/rps/{second}", json={"name": "changing/a", "title": "A"}).status_code == 200
        expect(row(console, second)).to_contain_text("/localhost/changing/a/")
        expect(page.locator("#rps tbody tr").first).to_have_attribute("data-rp", second)
        expect(tree.get_by_role("link", name="zweites")).to_have_count(0)

        assert client.post(f"/api/v1/rps/{first}/pause", json={"reason": "x"}).status_code == 200
        expect(row(console, first)).to_contain_text("paused")
        assert client.delete(f"/api/v1/rps/{first}").status_code == 204
        expect(row(console, first)).to_have_count(0)
        assert client.delete(f"/api/v1/rps/{second}").status_code == 204
        expect(page.locator("#rps")).to_contain_text("No rendezvous points below this name")


def test_no_row_moves_under_the_pointer(console: Console) -> None:
    with console.domain.http() as client:
        first = created(client, name="still/middle")
        console.go("/rps?prefix=/localhost/still/")
        console.expect_pill("Live")
        row(console, first).hover()
        answers: list[Any] = []
        console.page.on("response", lambda one: answers.append(one) if "/rps?" in one.url else None)
        above = created(client, name="still/above")
        assert client.post(f"/api/v1/rps/{first}/pause", json={}).status_code == 200
        expect(row(console, first)).to_contain_text("paused")  # it is told in its place
        eventually(console.page, lambda: any(above in one.text() for one in list(answers)), "the domain names it")
        drawn(console.page)  # the answer is taken over within a frame, if it is not held back
        expect(row(console, above)).to_have_count(0)
        console.page.mouse.move(1, 1)
        expect(row(console, above)).to_be_visible(timeout=WITHIN_MS)


def test_rows_that_were_asked_for_before_a_change_do_not_undo_it(console: Console) -> None:
    page = console.page
    asked: list[Any] = []
    with console.domain.http() as client:
        first = created(client, name="late/first")
        console.go("/rps?prefix=/localhost/late/")
        console.expect_pill("Live")
        page.route(re.compile(r"/rps\?prefix="), lambda route: asked.append(route))  # none is answered now
        second = created(client, name="late/second")
        eventually(page, lambda: bool(asked), "the rows are asked for")
        before = asked[0].fetch()
        assert client.post(f"/api/v1/rps/{first}/pause", json={}).status_code == 200
        expect(row(console, first)).to_contain_text("paused")
        asked[0].fulfill(response=before)
        expect(row(console, second)).to_be_visible(timeout=WITHIN_MS)
        assert "paused" in row(console, first).inner_text()
        page.unroute_all(behavior="ignoreErrors")


def test_a_rendezvous_point_is_changed_trimmed_and_renewed_and_the_page_follows(console: Console) -> None:
    page = console.page
    with console.domain.http() as client:
        rp = created(client, name="change/me", lease_s=600)
        publish(client, rp, *range(20))
        console.go(f"/rps/{rp}")
        console.expect_pill("Live")
        page.get_by_role("button", name="Change…").first.click()
        answered(console, "Save", Title="Changed", Events_kept="15")
        expect(page.locator("#title")).to_have_text("Changed")
        expect(page.locator('[data-fact="max_events"]')).to_have_text("15")

        page.get_by_role("button", name="Trim").click()
        answered(console, "Trim", Keep_the_newest_events="5", Reason="wrong readings")
        expect(page.locator("#held-events")).to_have_text("5")
        told = client.get(f"/api/v1/rps/{rp}/events").json()["events"]
        assert [event["data"] for event in told] == list(range(15, 20))

        page.get_by_label("New lease, from now").fill("5")
        page.get_by_label("Unit").select_option("hours")
        page.get_by_role("button", name="Renew").click()
        expect(page.locator("#lease-end")).to_have_text(re.compile(r"in 4 h 5\d min"))

        page.get_by_role("button", name="Change…").first.click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("Title")).to_have_value("Changed")  # the dialog holds the version from before
        assert client.patch(f"/api/v1/rps/{rp}", json={"title": "Somebody else's"}).status_code == 200
        dialog.get_by_label("Title").fill("Mine")
        dialog.get_by_role("button", name="Save").click()
        expect(dialog.get_by_role("alert")).to_contain_text("was changed by somebody else")
        dialog.get_by_role("button", name="Cancel").click()
        expect(page.locator("#title")).to_have_text("Somebody else's")


@pytest.mark.long
def test_why_somebody_may_or_may_not_is_explained(console: Console) -> None:
    policy = [
        {"issuer": "domain", "claims": {"sub": {"in": ["ann", "ben"]}}, "allow": ["publish"]},
        {"issuer": "anyone", "allow": ["describe"]},
    ]
    page = console.page
    with console.domain.http() as client:
        rp = created(client, policy=policy)
        page = console.go(f"/rps/{rp}#access")
        expect(page.locator("#rules li").first).to_contain_text(
            "Bearers of tokens of localhost whose sub is one of ann, ben may publish"
        )
        page.get_by_role("button", name="Explain").click()
        said = page.locator("#explanation")
        expect(said).to_contain_text("refused subscribe decided by rule 1")
        page.get_by_label("Operation").select_option("describe")
        page.get_by_role("radio", name="No token").check()
        page.get_by_role("button", name="Explain").click()
        expect(said).to_contain_text("allowed describe decided by rule 2")
        expect(said).to_contain_text("The bearer has no token.")
        page.get_by_role("radio", name="A token").check()
        page.get_by_label("Token", exact=True).fill(console.domain.token(subject="ben"))
        page.get_by_label("Operation").select_option("publish")
        page.get_by_role("button", name="Explain").click()
        expect(said).to_contain_text("allowed publish decided by rule 1")
        console.expect_pill("Live")
        assert client.patch(f"/api/v1/rps/{rp}", json={"policy": []}).status_code == 200
        expect(page.locator("#rules")).to_contain_text("Only the creator and administrators")


def test_a_durable_subscription_that_lags_is_seen_renewed_and_ended(console: Console) -> None:
    page = console.page
    with console.domain.http() as client:
        rp = created(client)
        wanted = {"lease_s": 7200, "history": {"max_events": 100}, "from": "earliest"}
        made = client.post(f"/api/v1/rps/{rp}/subscriptions", json=wanted).json()["id"]
        page = console.go(f"/rps/{rp}#readers")
        console.expect_pill("Live")
        publish(client, rp, *range(7))
        found = page.locator("#subscriptions tbody tr").filter(has_text=made)
        expect(found).to_contain_text("7 behind")
        found.get_by_role("button", name="Delete").click()
        answered(console, "Delete")
        expect(page.locator("#subscriptions")).to_contain_text("No durable subscriptions")
        assert client.get(f"/api/v1/subscriptions/{made}").status_code == 404


@pytest.mark.long
def test_a_watch_rule_is_added_changed_and_removed_and_the_page_follows(console: Console) -> None:
    page = console.page
    with console.domain.http() as client:
        rp = created(client, name="watched/here")
        console.go(f"/rps/{rp}#watching")
        console.expect_pill("Live")
        rules = page.locator("#watch-rules")
        expect(rules).to_contain_text("built in")
        assert_usable_by_keyboard(page)
        add = page.get_by_role("button", name="Add a rule…")
        add.press("Enter")
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_label("Condition")).to_be_visible()
        assert all(stop["inside"] for stop in assert_usable_by_keyboard(page)), "Tab stays in the dialog"
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(add).to_be_focused()
        add.click()
        dialog.get_by_label("Condition").select_option("Silence")
        limit = dialog.get_by_label("Longest without an event", exact=True)
        limit.fill("-5")
        dialog.get_by_label("Severity").select_option("critical")
        dialog.get_by_role("button", name="Add").click()
        expect(dialog.get_by_role("alert")).to_contain_text("silence s is an integer from 1 to")
        expect(limit).to_be_focused()
        expect(limit).to_have_attribute("aria-invalid", "true")
        assert_accessible(page)
        limit.fill("1")
        dialog.get_by_label("Raised after a violation of", exact=True).fill("0")
        dialog.get_by_role("button", name="Add").click()
        expect(rules).to_contain_text("An event arrives at least every 1 second")
        publish(client, rp, 1)
        expect(rules.locator("li").first.locator(".badge")).to_have_text(
            "critical", timeout=WITHIN_MS
        )  # nothing comes: told without a reload
        assert_accessible(page)

        page.get_by_role("button", name="Change: silence").click()
        limit.fill("2")
        dialog.get_by_label("Unit of: Longest without").select_option("hours")
        dialog.get_by_role("button", name="Save").click()
        expect(rules).to_contain_text("at least every 2 hours")
        expect(rules.locator("li").first.locator(".badge")).to_have_text("holds")
        assert client.get(f"/api/v1/rps/{rp}").json()["watch"] == [
            {"silence": {"s": 7200}, "severity": "critical", "for_s": 0}
        ]
        whose = {"claims": {"role": {"equals": "auditor"}}}
        assert client.patch(f"/api/v1/rps/{rp}", json={"audience": [AUDITORS | whose]}).status_code == 200
        said = "auditors: at least 1 reader whose role is auditor."
        expect(page.locator("#audience")).to_contain_text(said)
        page.get_by_role("button", name="Remove: auditors").click()
        answered(console, "Remove")

        def late(route: Any) -> None:  # another operator's change arrives between the console's reading and writing
            if route.request.method == "PATCH":
                client.patch(f"/api/v1/rps/{rp}", json={"audience": [AUDITORS]}).raise_for_status()
            route.continue_()

        page.route(f"**/api/v1/rps/{rp}", late)
        page.get_by_role("button", name="Remove: silence").click()
        dialog.get_by_role("button", name="Remove").click()
        expect(dialog.get_by_role("alert")).to_contain_text("was changed by somebody else")
        page.unroute(f"**/api/v1/rps/{rp}")
        dialog.get_by_role("button", name="Cancel").click()
        assert client.patch(f"/api/v1/rps/{rp}", json={"audience": None}).json()["watch"], "the rule is still there"
        page.get_by_role("button", name="Remove: silence").click()
        answered(console, "Remove")
        expect(rules).to_contain_text("built in")
        assert {"watch": [], "audience": []}.items() <= client.get(f"/api/v1/rps/{rp}").json().items()


@pytest.mark.long
def test_who_may_only_look_sees_what_is_watched_and_changes_nothing(browser: Any, domain: Domain) -> None:
    rule = {"lag": {"events": 5}}
    with domain.http(admin=True) as client, Closing(Console(browser, domain)) as console:
        rp = created(client, name="watched/by-others", watch=[rule], audience=[AUDITORS])
        link = domain.manage("users", "add", "rule-viewer", "--role", "viewer").stdout.strip()
        console.page.goto(link)
        console.page.get_by_role("button", name="Log in").click()
        page = console.go(f"/rps/{rp}#watching")
        expect(page.locator("#watch-rules")).to_contain_text("at most 5 events behind")
        expect(page.locator("#audience")).to_contain_text("auditors")
        expect(page.locator("#watching").get_by_role("button")).to_have_count(0)
        refused = page.evaluate(
            """(url) => fetch(url, {method: "PATCH", body: '{"watch": null}', headers: {
            "Content-Type": "application/json", "X-CSRFToken": document.querySelector("meta[name=csrf]").content,
            }}).then(({ status }) => status)""",
            f"/api/v1/rps/{rp}",
        )
        assert refused == 403
        assert len(client.get(f"/api/v1/rps/{rp}").json()["watch"]) == 1


# -- for everybody ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=[pytest.mark.long, pytest.mark.soak]), "dark"])
def test_list_and_tabs_are_accessible_and_fit_in_both_looks(browser: Any, domain: Domain, scheme: str) -> None:
    view = WIDE if scheme == "light" else PHONE
    with Closing(Console(browser, domain, view, color_scheme=scheme)) as console, domain.http() as client:
        rp = created(
            client, name=f"accessible/{scheme}", title="Accessible", policy=[{"issuer": "anyone", "allow": []}]
        )
        client.post(f"/api/v1/rps/{rp}/subscriptions", json={"lease_s": 600})
        client.post(f"/api/v1/rps/{rp}/pause", json={"reason": "to be seen"})
        page = console.log_in().page
        console.go("/rps?prefix=/localhost/accessible/")
        console.expect_pill("Live")
        page.locator("#tree").evaluate("details => { details.open = true; }")
        expect(page.locator("#tree-levels .names").first).to_be_visible()
        assert_accessible(page)
        console.go(f"/rps/{rp}")
        console.expect_pill("Live")
        page.get_by_role("tab", name="Overview").focus()
        for tab in TABS:
            expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
            expect(page.get_by_role("tabpanel").locator(".loading")).to_have_count(0)
            assert_accessible(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= view["width"], tab
            page.keyboard.press("ArrowRight")


def test_a_lost_domain_is_said_and_the_page_goes_on_by_itself(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client)
    unanswered = f"**/api/v1/rps/{rp}/snapshot*"
    console.page.route(unanswered, lambda route: route.abort())
    console.go(f"/rps/{rp}")
    expect(console.page.locator("#is-away")).to_contain_text("Retrying automatically.")
    expect(console.page.locator("#is-away")).to_contain_text("manage.py doctor")
    console.page.unroute(unanswered)
    console.expect_pill("Live")
    expect(console.page.locator("#is-away")).to_be_hidden()
    with console.domain.away("gateway") as pid:
        console.expect_pill(re.compile("Reconnecting"))
        expect(console.page.locator("#overview")).to_have_class(re.compile(r"\bstale\b"))
    console.domain.wait_replaced("gateway", pid)
    eventually(console.page, console.domain.is_ready, "the gateway is back")
    console.expect_pill("Live")
    expect(console.page.locator("#overview")).not_to_have_class(re.compile(r"\bstale\b"))
