"""The pages of rendezvous points in a real browser, against a real domain: watch, publish, lose the gateway, delete."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from demo.harness.servers import Domain
from tests.portal.console.browsing import PHONE, WIDE, WITHIN_MS, Closing, Console, created, eventually, publish

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]

IDLE = re.compile(r"^0\s/s$")


@pytest.fixture
def console(browser: Any, domain: Domain) -> Iterator[Console]:
    with Closing(Console(browser, domain)) as tab:
        yield tab.log_in()


def test_an_event_shows_where_it_stands_and_opens_to_its_whole_json(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client)
        console.open(rp)
        publish(client, rp, {"deep": {"er": [1, 2]}})
    row = console.rows.first
    expect(row.locator(".ev-offset")).to_have_text("#1")
    row.locator("summary").click()
    expect(row.locator("pre")).to_contain_text('"specversion"')
    raw = json.loads(row.locator("pre").inner_text())
    assert raw["data"] == {"deep": {"er": [1, 2]}}
    assert (raw["source"], raw["specversion"]) == ("/test", "1.0")


def test_a_test_event_is_published_from_the_form_and_its_answer_shown(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client)
        console.open(rp)
        page, answer = console.page, console.page.locator("#answer")
        page.get_by_label("Data", exact=True).fill('{"from": "the form"}')
        page.get_by_role("button", name="Publish", exact=True).click()
        expect(answer).to_have_text(re.compile(r"Stored as #1 in \d+ ms\."))
        expect(console.rows.first).to_contain_text('{"from":"the form"}')
        page.get_by_label("Data", exact=True).fill("not json")
        page.get_by_role("button", name="Publish", exact=True).click()
        expect(answer).to_contain_text("Not valid JSON")
        page.get_by_role("radio", name="Text").check()
        page.get_by_role("button", name="Publish", exact=True).click()
        expect(answer).to_have_text(re.compile(r"Stored as #2 in \d+ ms\."))
        events = client.get(f"/api/v1/rps/{rp}/events").json()["events"]
    assert [event["data"] for event in events] == [{"from": "the form"}, "not json"]
    assert [event["datacontenttype"] for event in events] == ["application/json", "text/plain"]


def test_after_the_gateway_was_killed_the_page_goes_on_by_itself_and_misses_nothing(
    browser: Any, domain: Domain
) -> None:
    with Closing(Console(browser, domain)) as console, domain.http() as client:
        console.log_in()
        rp = created(client)
        console.open(rp)
        publish(client, rp, *range(3))
        expect(console.rows).to_have_count(3)
        with domain.away("gateway") as pid:
            console.expect_pill(re.compile("Reconnecting"))
            console.page.get_by_role("button", name="Publish", exact=True).click()
            expect(console.page.locator("#answer")).to_contain_text("Not connected.")
        domain.wait_replaced("gateway", pid)
        eventually(console.page, domain.is_ready, "the gateway is back")
        publish(client, rp, *range(10, 15))
        console.expect_live()
        expect(console.page.locator("#answer")).to_contain_text("Stored as #")
        expect(console.rows).to_have_count(9)
        assert console.offsets() == list(range(1, 10)), "each once, in order"
        expect(console.page.locator(".mark-row")).to_have_count(0)


def test_what_left_the_history_is_shown_as_a_gap(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client, history={"max_events": 5})
        console.open(rp)
        console.page.get_by_role("radio", name="now").check()
        console.expect_live()
        publish(client, rp, *range(20))
        expect(console.rows).to_have_count(20)
    console.page.get_by_role("radio", name="recent").check()
    expect(console.rows.first).to_have_text("Events #1 to #15 are no longer in the history.")
    expect(console.rows).to_have_count(6)
    assert console.offsets() == [16, 17, 18, 19, 20]


def test_earliest_last_and_now_begin_where_they_say(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client)
        publish(client, rp, *range(150))
        console.open(rp)
        expect(console.rows).to_have_count(100)
        for choice, count, first in (("earliest", 150, 1), ("last", 1, 150), ("now", 0, None)):
            console.page.get_by_role("radio", name=choice).check()
            expect(console.rows).to_have_count(count)
            assert console.offsets()[:1] == ([first] if first else [])
        console.expect_live()
        publish(client, rp, "new")
        expect(console.rows).to_have_count(1)
        assert console.offsets() == [151]


def test_while_paused_the_list_stands_still_and_then_shows_what_came(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client)
        console.open(rp)
        publish(client, rp, 1)
        expect(console.rows).to_have_count(1)
        console.page.get_by_role("button", name="Hold").click()
        publish(client, rp, 2, 3)
        expect(console.page.get_by_role("button", name="Continue (2 new)")).to_be_visible(timeout=WITHIN_MS)
        expect(console.rows).to_have_count(1)
    console.page.get_by_role("button", name="Continue (2 new)").click()
    expect(console.rows).to_have_count(3)
    console.page.get_by_role("button", name="Clear").click()
    expect(console.rows).to_have_count(0)
    expect(console.page.locator("#empty")).to_contain_text("Cleared")


@pytest.mark.long
def test_the_list_keeps_the_newest_500_however_many_come(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client, history={"max_events": 10_000})
        console.open(rp)
        publish(client, rp, *range(3000))
    expect(console.rows.last.locator(".ev-offset")).to_have_text("#3000")
    offsets = console.offsets()
    assert len(offsets) <= 500
    assert offsets == list(range(offsets[0], 3001))


def test_an_open_row_stays_where_it_is_while_events_arrive(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client)
        console.open(rp)
        publish(client, rp, *range(60))
        expect(console.rows).to_have_count(60)
        row = console.rows.nth(50)
        row.scroll_into_view_if_needed()
        row.locator("summary").click()
        expect(row.locator("pre")).to_be_visible()
        before = row.bounding_box()
        publish(client, rp, *range(100, 160))
        expect(console.rows).to_have_count(120)
        assert row.bounding_box() == before
    console.page.get_by_role("button", name="Jump to newest").click()
    expect(console.rows.last).to_be_in_viewport()


def test_what_publishers_write_is_shown_as_text_and_never_run(console: Console) -> None:
    hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    console.page.on("dialog", lambda dialog: console.errors.append(dialog.message))
    with console.domain.http() as client:
        rp = created(client, title=hostile)
        console.open(rp)
        publish(client, rp, hostile)
    expect(console.rows.first).to_contain_text(hostile)
    console.rows.first.locator("summary").click()
    expect(console.rows.first.locator("pre")).to_contain_text("onerror=alert(1)")
    assert console.page.locator("#events img, #events script, main img").count() == 0


def test_the_list_shows_rates_that_follow_the_events(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client, name="rates/watched")
        console.page.goto(f"{console.domain.url}/rps?prefix=rates")
        row = console.page.locator(f'tr[data-rp="{rp}"]')
        expect(row.locator("[data-rate]")).to_have_text(IDLE)

        begins = itertools.count(0, 50)

        def shown() -> bool:
            begin = next(begins)
            publish(client, rp, *range(begin, begin + 50))  # a rate is that of the last second
            return not IDLE.match(row.locator("[data-rate]").inner_text())

        eventually(console.page, shown, "a rate in the list")
        expect(row.locator("polyline")).to_have_attribute("points", re.compile("."))


def test_deleting_asks_first_and_readers_are_told(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client, name="short/lived")
    console.open(rp)
    other = console.new_tab()
    other.goto(f"{console.domain.url}/rps/{rp}")
    other.get_by_role("link", name="Delete this rendezvous point").click()
    dialog = other.get_by_role("dialog")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog).to_be_visible()  # its name is to be typed first
    dialog.get_by_role("textbox", name="Type /localhost/short/lived/").fill("/localhost/short/lived/")
    dialog.get_by_role("button", name="Delete").click()
    for page in (other, console.page):
        expect(page.locator("#is-gone")).to_contain_text("This rendezvous point no longer exists.")
        expect(page.get_by_role("button", name="Pause publishing")).to_have_count(0)
    expect(console.page.locator("#ended")).to_contain_text("This rendezvous point no longer exists.")
    other.get_by_role("link", name="To the rendezvous points").click()
    expect(other.get_by_role("link", name="/localhost/short/lived/")).to_have_count(0)


def test_when_the_session_has_ended_the_page_says_so_and_leads_back(console: Console) -> None:
    with console.domain.http() as client:
        created(client, name="session/ends")
        console.go("/rps?prefix=session")
        console.expect_pill("Live")
        console.context.clear_cookies()
        created(client, name="session/ends/more")
    expect(console.page.locator("#connection-ended")).to_contain_text("Your session has ended")
    console.page.get_by_role("link", name="Log in again").click()
    expect(console.page.get_by_role("heading", name="Log in")).to_be_visible()


@pytest.mark.long
def test_pages_connect_without_a_token_and_logging_out_ends_those_of_every_tab(browser: Any, domain: Domain) -> None:
    with domain.http() as client:
        created(client)  # a list without one leads elsewhere
    with Closing(Console(browser, domain)) as console:
        console.page.goto(domain.manage("login_link").stdout.strip())  # a session that no other test uses
        console.page.get_by_role("button", name="Log in").click()
        console.expect_pill("Live")
        sockets: list[str] = []
        other = console.new_tab()
        other.on("websocket", lambda socket: sockets.append(socket.url))
        other.goto(f"{domain.url}/rps")
        expect(other.locator("#connection")).to_have_text("Live")
        assert set(sockets) == {f"ws{domain.url.removeprefix('http')}/console/ws"}
        console.page.get_by_role("button", name="Your account").click()
        console.page.get_by_role("button", name="Log out", exact=True).click()
        expect(console.page.get_by_role("heading", name="Log in")).to_be_visible()
        expect(other.locator("#connection-ended")).to_contain_text("Your session has ended")


@pytest.mark.long
@pytest.mark.parametrize("viewport", [PHONE, WIDE], ids=["phone", "wide"])
def test_no_page_is_wider_than_its_screen(browser: Any, domain: Domain, viewport: dict[str, int]) -> None:
    with Closing(Console(browser, domain, viewport)) as console, domain.http() as client:
        rp = created(client, name=f"{'long-name' * 6}/{'part' * 12}/x{viewport['width']}", title="A title " * 30)
        publish(client, rp, "word" * 200, {"key" * 50: "value" * 50})
        console.page.goto(f"{domain.url}/login")
        pages = [console.page.evaluate("document.documentElement.scrollWidth")]
        console.log_in()
        for path in (
            "/",
            "/rps",
            "/start",
            f"/start?rp={rp}",
            "/rps/new",
            f"/rps/{rp}",
            f"/rps/{rp}/delete",
            "/password",
            "/nowhere",
        ):
            console.page.goto(domain.url + path)
            pages.append(console.page.evaluate("document.documentElement.scrollWidth"))
        assert max(pages) <= viewport["width"]


def test_the_javascript_client_reads_a_durable_subscription_and_its_acknowledgement_holds(console: Console) -> None:
    """The module against the real wire: publishAll, attach, ack, renew, and the loop form."""
    with console.domain.http() as client:
        rp = created(client)
        wanted = {"lease_s": 600, "history": {"max_events": 100}, "deliver": {"mode": "pull"}}
        made = client.post(f"/api/v1/rps/{rp}/subscriptions", json=wanted)
        assert made.status_code == 201, made.text
    console.open(rp)
    script = """
        async ([rp, subscription, token]) => {
          const { Client, Gap } = await import("/static/js/herald.js");
          const read = async (client, count) => {
            const seen = [];
            const reader = client.attach(subscription);
            for await (const item of reader) {
              seen.push(item instanceof Gap ? "gap" : item.event.data);
              if (seen.length === count) { await reader.ack(); return seen; }
            }
          };
          const client = new Client({ token });
          const stored = await client.publishAll(rp, [1, 2, 3]);
          const first = await read(client, 3);
          await client.publishAll(rp, [4, "five"]);
          const lease = await client.renew({ subscription }, 1200);
          client.close();
          const second = await read(new Client({ token }), 2);
          return { results: stored.results.length, last: stored.offset, first, second, lease };
        }
    """
    token = console.domain.token()
    done = console.page.evaluate(script, [rp, made.json()["id"], token])
    assert (done["results"], done["last"]) == (3, 3)
    assert done["first"] == [1, 2, 3]
    assert done["second"] == [4, "five"], "the second client begins behind what the first acknowledged"
    assert done["lease"]["lease"]["granted_s"] == 1200


def test_a_javascript_client_with_a_bad_token_ends_and_says_so(console: Console) -> None:
    with console.domain.http() as client:
        rp = created(client)
    script = """
        async (rp) => {
          const { Client, Closed } = await import("/static/js/herald.js");
          try { await new Client({ token: "nonsense" }).publish(rp, 1); }
          catch (error) { return [error instanceof Closed, error.message]; }
        }
    """
    closed, message = console.page.evaluate(script, rp)
    assert closed
    assert "not valid here" in message


def test_a_viewer_watches_live_and_has_nothing_to_publish_with(browser: Any, domain: Domain) -> None:
    made = domain.manage("users", "add", "browser-viewer", "--role", "viewer")
    assert made.returncode == 0, made.stderr
    with domain.http() as http:
        rp = http.post("/api/v1/rps", json={"policy": []}).json()["id"]
        with Closing(Console(browser, domain, PHONE)) as console:
            console.page.goto(made.stdout.strip())
            console.page.get_by_role("button", name="Log in").click()
            console.page.wait_for_url(f"{domain.url}/")
            console.open(rp)
            expect(console.page.get_by_role("button", name="Publish", exact=True)).to_have_count(0)
            for acts in ("Pause publishing", "Trim", "Change", "Invite", "Renew", "Explain", "Disconnect"):
                expect(console.page.get_by_role("button", name=acts, include_hidden=True)).to_have_count(0)
            assert http.post(f"/api/v1/rps/{rp}/events", json={"seen": 1}).status_code == 201
            expect(console.rows).to_have_count(1)
