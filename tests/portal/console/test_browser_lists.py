"""Subscriptions, leases, tokens and keys, quotas, audit and system, in a real browser against a real domain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from demo.harness.servers import Domain
from tests.gateway.server import PLAIN
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import (
    PHONE,
    WITHIN_MS,
    Closing,
    Console,
    created,
    eventually,
    expect_to_fit,
    press_if_there,
    publish,
    rps_held,
)
from tests.portal.console.keyboard import assert_usable_by_keyboard

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes]

PAGES = {
    "/subscriptions": "Subscriptions",
    "/leases": "Leases",
    "/keys": "Tokens and keys",
    "/quotas": "Quotas",
    "/audit": "Audit",
    "/system": "System",
}
ACTS = ("Renew", "Delete", "Rotate", "Retire", "Revoke", "Lift", "Create token")


@pytest.fixture(scope="module")
def rp(domain: Domain) -> str:
    """An RP with a durable subscription, so that there is something in the lists."""
    with domain.http() as client:
        found = created(client, name="lists/watched")
        assert client.post(f"/api/v1/rps/{found}/subscriptions", json={"lease_s": 3600}).status_code == 201
    return found


@pytest.fixture(scope="module")
def viewer(browser: Any, domain: Domain) -> list[Any]:
    """The cookies of a viewer's session."""
    link = re.search(r"http\S+", domain.manage("users", "add", "list-viewer", "--role", "viewer").stdout)
    assert link is not None
    console = Console(browser, domain)
    console.page.goto(link[0])
    console.page.get_by_role("button", name="Log in").click()
    console.page.wait_for_url(re.compile(r"^(?!.*/login)"))
    cookies: list[Any] = console.context.cookies()
    console.context.close()
    return cookies


@pytest.fixture(scope="module")
def tab(browser: Any, domain: Domain, rp: str) -> Iterator[Console]:
    with Closing(Console(browser, domain)) as tab:
        yield tab.log_in()


@pytest.fixture
def console(tab: Console) -> Iterator[Console]:
    """An administrator's tab, one for all tests; each is told what it broke."""
    yield tab
    broken, tab.errors[:] = list(tab.errors), []
    assert broken == []


def shown(console: Console, path: str) -> Any:
    """The page at `path`, once everything on it has come and it is live."""
    page = console.go(path)
    console.expect_pill("Live")
    expect(page.locator(".loading")).to_have_count(0)
    return page


def row(page: Any, text: str, box: str = "listing") -> Any:
    return page.locator(f"#{box} tbody tr").filter(has_text=text)


# -- every page, for who looks and for who acts ----------------------------------------------------------------------------


@pytest.mark.long
def test_a_viewer_sees_every_page_and_is_offered_no_act(
    browser: Any, domain: Domain, rp: str, viewer: list[Any]
) -> None:
    with Closing(Console(browser, domain, PHONE, color_scheme="dark")) as console:
        console.context.add_cookies(viewer)
        for path, title in PAGES.items():
            page = shown(console, path)
            expect(page.get_by_role("heading", level=1)).to_have_text(title)
            offered = page.locator("main").get_by_role("button").all_inner_texts()
            assert not set(offered) & set(ACTS), path
            expect_to_fit(page)
            assert_accessible(page)


@pytest.mark.long
def test_an_administrator_sees_every_page_and_what_may_be_done_there(console: Console) -> None:
    offered: set[str] = set()
    for path, title in PAGES.items():
        page = shown(console, path)
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        offered |= set(page.locator("main").get_by_role("button").all_inner_texts())
        assert_accessible(page)
        assert_usable_by_keyboard(page)
    assert {"Renew", "Delete", "Rotate", "Retire", "Revoke", "Create token", "Check again"} <= offered


# -- acts, and their effects without a reload -----------------------------------------------------------------------------


def test_a_key_is_rotated_and_the_new_one_retired(console: Console) -> None:
    page = shown(console, "/keys")
    rows = page.locator("#keys tbody tr")
    before = rows.count()
    page.get_by_role("button", name="Rotate").click()
    page.get_by_role("dialog").get_by_role("button", name="Rotate").click()
    expect(rows).to_have_count(before + 1)
    new = row(page, "signs next", "keys")
    expect(new).to_have_count(1)
    kid = new.locator(".kid").inner_text()
    new.get_by_role("button", name="Retire").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("only a test")
    dialog.get_by_role("button", name="Retire").click()
    expect(dialog).to_be_visible()  # not without the kid: it cannot be undone
    dialog.get_by_label(re.compile("Type ")).fill(kid[:12])
    dialog.get_by_role("button", name="Retire").click()
    expect(row(page, kid, "keys").locator(".badge")).to_have_text("retired")


def test_a_subject_is_revoked_and_the_revocation_lifted(console: Console) -> None:
    page = shown(console, "/keys")
    with console.domain.http(subject="list-mallory") as theirs:
        assert theirs.get("/api/v1/rps").status_code == 200
        page.get_by_label("Which", exact=True).fill("list-mallory")
        page.get_by_label("Reason", exact=True).fill("laptop lost")
        page.get_by_role("form", name="Revoke").get_by_role("button", name="Revoke").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        mine = row(page, "list-mallory", "revocations")
        expect(mine).to_contain_text("laptop lost")
        eventually(page, lambda: theirs.get("/api/v1/rps").status_code == 401, "the token is rejected")
        mine.get_by_role("button", name="Lift").click()
        page.get_by_role("dialog").get_by_role("button", name="Lift").click()
        expect(mine).to_have_count(0)
        eventually(page, lambda: theirs.get("/api/v1/rps").status_code == 200, "the token is good again")


def test_a_token_is_shown_once_works_and_is_revoked_in_the_list(console: Console, rp: str) -> None:
    page = shown(console, "/keys")
    form = page.locator("#token-form")
    form.get_by_label("Subject").fill("list-roof")
    form.get_by_role("button", name="Create token").click()
    expect(form.get_by_role("alert")).to_have_text("Choose a rendezvous point, or all of them.")
    page.keyboard.type("lists/watched")  # where the focus was led
    expect(page.locator("#rps-found li").first).to_contain_text("/lists/watched/")
    page.keyboard.press("Enter")
    expect(page.locator("#rps-chosen")).to_contain_text("/lists/watched/")
    form.get_by_label("publish").check()
    form.get_by_role("button", name="Create token").click()
    expect(page.locator("#token-export")).to_contain_text(f"export HERALD_URL={console.domain.url} HERALD_TOKEN=ey")
    token = page.locator("#token-export").inner_text().rpartition("=")[2]
    assert_accessible(page)
    listed = row(page, "list-roof", "tokens")
    expect(listed).to_contain_text("/lists/watched/")
    expect(listed).to_contain_text("describe, publish, subscribe")
    answer = httpx.get(f"{console.domain.url}/api/v1/rps", headers={"Authorization": f"Bearer {token}"}, **PLAIN)
    assert answer.status_code == 200, answer.text
    page.reload()
    listed.get_by_role("button", name="Revoke").click()
    assert token not in page.content()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("only a test")
    dialog.get_by_role("button", name="Revoke").click()
    expect(listed).to_be_hidden()  # valid ones are shown
    eventually(
        page,
        lambda: httpx.get(answer.url, headers={"Authorization": f"Bearer {token}"}, **PLAIN).status_code == 401,
        "the token is rejected",
    )


def test_a_lease_is_renewed_and_counts_from_now(console: Console) -> None:
    with console.domain.http() as client:
        renewed = created(client, name="lists/renewed", lease_s=300)
        page = shown(console, "/leases?kind=rp&within_s=600")
        mine = row(page, "/lists/renewed/")
        ends = mine.locator("time").get_attribute("datetime")
        mine.get_by_role("button", name="Renew").click()
        eventually(page, lambda: mine.locator("time").get_attribute("datetime") > ends, "the lease ends later")
        later = created(client, name="lists/later", lease_s=500)  # by somebody else
        expect(row(page, "/lists/later/")).to_be_visible(timeout=WITHIN_MS)
        for done in (renewed, later):  # none expires while another test counts them
            client.delete(f"/api/v1/rps/{done}").raise_for_status()
    page.get_by_label("Ends", exact=True).select_option("")  # names of rows are in labels, too
    expect(page).to_have_url(re.compile(r"/leases\?kind=rp$"))
    page.go_back()
    expect(page.get_by_label("Ends", exact=True)).to_have_value("600")


def test_lag_follows_what_is_published_and_a_subscription_is_deleted(console: Console, rp: str) -> None:
    page = shown(console, f"/subscriptions?rp={rp}")
    mine = row(page, "/lists/watched/")
    behind = mine.locator('[data-name="Behind"]')
    expect(behind).to_have_text(re.compile(r"\d"))
    before = int(re.findall(r"\d+", behind.inner_text())[0])
    with console.domain.http() as client:
        publish(client, rp, 1, 2, 3)
    expect(behind).to_have_text(re.compile(rf"\b{before + 3}\b"))
    mine.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No results")).to_be_visible(timeout=WITHIN_MS)


def test_the_audit_is_filtered_and_an_entry_opened(console: Console) -> None:
    with console.domain.http(subject="list-auditor", admin=True) as client:
        mine = created(client, name="lists/audited")
        page = shown(console, "/audit")
        expect(row(page, "list-auditor").first).to_be_visible()
        page.get_by_label("Who", exact=True).fill("list-auditor")
        page.get_by_label("Action", exact=True).fill("rp.*")
        page.get_by_role("button", name="Filter").click()
        expect(page.locator("#listing tbody tr")).to_have_count(1)
        client.delete(f"/api/v1/rps/{mine}")
        expect(row(page, "rp.delete")).to_be_visible(timeout=WITHIN_MS)
    expect(page).to_have_url(re.compile(r"/audit\?who=list-auditor&action=rp\.\*$"))
    page.get_by_label("Outcome", exact=True).select_option("refused")
    expect(page.get_by_text("No results")).to_be_visible(timeout=WITHIN_MS)
    page.get_by_role("button", name="Show all").first.click()
    expect(page).to_have_url(re.compile(r"/audit$"))
    row(page, "rp.create").first.get_by_role("button").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Seal")
    expect(dialog).to_contain_text("lists/audited")
    assert_accessible(page)


def test_a_quota_follows_what_is_reserved(console: Console) -> None:
    page = shown(console, "/quotas")
    used = page.locator('[data-limit="domain-rps"] [data-used]')
    with console.domain.http(admin=True) as client:
        eventually(page, lambda: used.inner_text() == f"{rps_held(client):,}", "the use is shown")
        before = used.inner_text()
        created(client)
        expect(used).not_to_have_text(before)
        eventually(page, lambda: used.inner_text() == f"{rps_held(client):,}", "the use is followed")
    expect(page.get_by_text("HERALD_HISTORY_QUOTA_BYTES")).to_be_visible()


def test_the_system_page_shows_what_runs_and_hides_what_is_secret(console: Console) -> None:
    page = shown(console, "/system")
    for process in console.domain.pids:
        expect(row(page, process, "processes").first).to_be_visible(timeout=WITHIN_MS)
    expect(page.locator("#ready-said")).to_have_text("ready")
    expect(page.locator("#gateways tbody tr")).to_have_count(1)
    expect(page.locator(".doctor-list > li").first).to_be_visible()
    port = page.locator("#settings tr").filter(has_text="HERALD_PORT")
    expect(port).to_contain_text(str(console.domain.port))
    expect(port).to_contain_text("environment")
    page.get_by_label("Part of a setting's name or meaning").fill("allow_private_issuers")
    expect(page.locator("#settings tbody tr:visible")).to_have_count(1)
    assert console.domain.signing_key["d"] not in page.content()
    page.route("**/readyz", lambda route: route.abort())
    expect(page.locator("#ready-said")).to_have_text("unknown")  # not what was so before
    page.unroute("**/readyz")
    expect(page.locator("#ready-said")).to_have_text("ready")


def test_a_list_that_cannot_be_shown_says_why_and_comes_back(console: Console) -> None:
    page = console.page
    page.route("**/api/v1/leases*", lambda route: route.abort())
    console.go("/leases")
    expect(page.locator("#listing .broken")).to_contain_text("does not respond")
    page.unroute("**/api/v1/leases*")
    # An event may bring the list back before the button can be pressed: pressed only while it is there.
    press_if_there(page.locator("#listing .broken button"))
    expect(page.locator("#listing tbody tr").first).to_be_visible(timeout=WITHIN_MS)
    console.go("/subscriptions?rp=/nowhere/at/all/")
    expect(page.locator("#listing .broken")).to_be_visible(timeout=WITHIN_MS)
