"""Many rendezvous points and leases at once, in a real browser: what is shown of each, and what is done with all of them."""

from __future__ import annotations

import os
import re
import subprocess
from typing import Any

import pytest

from demo.harness.servers import Domain
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import Closing, Console, created, eventually, publish

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.long]


def test_selected_rendezvous_points_are_renewed_paused_and_deleted_together(browser: Any, domain: Domain) -> None:
    with domain.http(admin=True) as client, Closing(Console(browser, domain)) as console:
        watch = [{"lag": {"events": 1}, "severity": "critical", "for_s": 0}]
        a, b, c = (created(client, name=f"bulk/{name}", lease_s=300, watch=watch) for name in "abc")
        client.post(f"/api/v1/rps/{a}/subscriptions", json={"lease_s": 300}).raise_for_status()
        publish(client, a, 1, 2, 3)
        page = console.log_in().go("/rps?q=bulk%2F&sort=name")
        console.expect_pill("Live")
        row = page.locator(f'tr[data-rp="{a}"]')
        expect(row.locator("[data-behind]")).to_have_text("3")
        expect(row.locator("[data-size]")).to_contain_text("held")
        expect(row.locator("[data-readers]")).to_have_text("no readers")
        expect(row.get_by_role("link", name="1 alarm")).to_be_visible()  # raised by then, or with the next look

        page.get_by_label("Select all on this page").check()
        page.get_by_label(f"Select /{domain.name}/bulk/c/").uncheck()
        expect(page.locator("#picked")).to_have_text("2 selected")
        assert_accessible(page)
        dialog = page.get_by_role("dialog")
        page.get_by_role("button", name="Renew…").click()
        dialog.get_by_label("New lease, from now", exact=True).fill("2")
        dialog.get_by_role("button", name="Renew").click()
        expect(dialog).to_have_count(0)
        for rp in (a, b, c):
            lease = client.get(f"/api/v1/rps/{rp}").json()["lease"]
            assert lease["granted_s"] == (300 if rp == c else 2 * 86_400)

        page.locator("[data-pick]").nth(0).check()
        page.locator("[data-pick]").nth(1).check()
        page.get_by_role("button", name="Pause…").click()
        dialog.get_by_label("Reason").fill("they flood")
        dialog.get_by_role("button", name="Pause").click()
        expect(dialog).to_have_count(0)  # until then the two are still selected
        expect(page.get_by_text("paused", exact=True)).to_have_count(2)

        page.locator("[data-pick]").nth(0).check()
        page.locator("[data-pick]").nth(1).check()
        page.get_by_role("button", name="Delete…").click()
        expect(dialog).to_contain_text(re.compile(r"3 events held at present"))
        expect(dialog).to_contain_text("1 durable subscription")
        assert_accessible(page)
        dialog.get_by_label("Reason").fill("made for a test")
        dialog.get_by_label(re.compile("Type 2")).fill("3")
        dialog.get_by_role("button", name="Delete").click()
        expect(dialog).to_be_visible()  # not without the number: it cannot be undone
        dialog.get_by_label(re.compile("Type 2")).fill("2")
        dialog.get_by_role("button", name="Delete").click()
        expect(dialog).to_have_count(0)
        page.mouse.move(1, 1)
        expect(page.locator("tr[data-rp]")).to_have_count(1)
        acts = client.get("/api/v1/audit", params={"action": "rp.delete", "limit": 2}).json()["items"]
        assert {one["on"]["id"] for one in acts} == {a, b}
        assert {one["details"]["reason"] for one in acts} == {"made for a test"}

        page = console.go("/leases?kind=rp&within_s=600")
        page.get_by_label(re.compile("^Select rendezvous point .*bulk/c")).check()
        page.get_by_role("button", name="Renew all selected").click()
        eventually(
            page,
            lambda: client.get("/api/v1/audit", params={"action": "rp.renew", "on": c}).json()["items"] != [],
            "the lease is renewed",
        )
        expect(page.get_by_label(re.compile("^Select rendezvous point .*bulk/c"))).not_to_be_checked()
        client.delete(f"/api/v1/rps/{c}").raise_for_status()  # none expires while another test counts


def test_what_matches_on_all_pages_is_selected_at_once(browser: Any, domain: Domain) -> None:
    many = 53  # rows of a page, and some
    with domain.http(admin=True) as client, Closing(Console(browser, domain)) as console:
        rps = {created(client, name=f"many/{number:02}") for number in range(many)}
        page = console.log_in().go("/rps?prefix=/localhost/many/")
        console.expect_pill("Live")
        expect(page.locator("tr[data-rp]")).to_have_count(50)
        others = page.get_by_role("button", name="Select all that match")
        expect(others).to_be_hidden()
        page.get_by_label("Select all on this page").check()
        others.click()
        expect(page.locator("#picked")).to_have_text(f"{many} selected, on all pages")
        expect(others).to_be_hidden()
        assert_accessible(page)
        page.locator("[data-pick]").first.uncheck()
        expect(page.locator("#picked")).to_have_text("49 selected")  # of this page again
        page.locator("[data-pick]").first.check()
        others.click()
        expect(page.locator("#picked")).to_have_text(f"{many} selected, on all pages")
        dialog = page.get_by_role("dialog")
        page.get_by_role("button", name="Delete…").click()
        dialog.get_by_label(re.compile(f"Type {many}")).fill(str(many))
        dialog.get_by_role("button", name="Delete").click()
        expect(page.locator("#toasts")).to_contain_text(f"{many} rendezvous points deleted.")
        expect(dialog).to_have_count(0)
        acts = client.get("/api/v1/audit", params={"action": "rp.delete", "limit": many}).json()["items"]
        assert {one["on"]["id"] for one in acts} == rps


def test_the_commands_of_a_rendezvous_points_page_work_as_they_are_copied(browser: Any, domain: Domain) -> None:
    with domain.http() as client, Closing(Console(browser, domain)) as console:
        rp = created(client, name="copied/commands")
        page = console.log_in().go(f"/rps/{rp}")
        commands = page.locator("#by-curl pre").all_inner_texts()
        assert len(commands) == 3
        environment = {**os.environ, "HERALD_TOKEN": domain.token()}

        def run(command: str) -> str:
            done = subprocess.run(
                ["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=60, check=False
            )
            assert done.returncode in (0, 28), done.stderr  # 28: a stream, for as long as it was to be read
            return done.stdout

        published, streamed, pulled = commands
        assert '"offset":1' in run(published).replace(" ", "")
        assert '{"hello": "world"}' in run(streamed.replace("curl -N", "curl -N --max-time 2"))
        assert '"hello"' in run(pulled)
        expect(page.locator("#by-herald pre").first).to_have_text(re.compile(r"^herald pub copied/commands "))
