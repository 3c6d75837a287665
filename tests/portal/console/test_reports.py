"""Reports as an operator has them: a gateway writes records, real runs report them, the page shows them. Real Spark, one core."""

from __future__ import annotations

import csv
import io
import re
import signal
from collections.abc import Iterator
from typing import Any

import psutil
import pyarrow.dataset as ds
import pytest

from demo.harness.servers import wait_for
from tests.gateway.server import Prepared
from tests.portal.console.accessibility import assert_accessible
from tests.portal.console.browsing import PHONE, Closing, Console
from tests.portal.console.reporting import WITHIN_S, Reporting, hours_around
from tests.processes import alive
from tests.spark.conftest import need_java

pytestmark = [pytest.mark.long, pytest.mark.processes, pytest.mark.timeout(900)]
PUBLISHED = 1500
READY_STAGES = {"start", "start Spark"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[Reporting]:
    """A gateway whose records tell of one RP with PUBLISHED events and three refusals."""
    need_java()
    with Reporting(tmp_path_factory.mktemp("reporting") / "var", prepared) as running:
        rp = running.create_rp(name="reports/busy")
        running.publish(rp, PUBLISHED)
        with running.http("nobody") as stranger:
            for _ in range(3):
                assert stranger.delete(f"/api/v1/rps/{rp}").status_code == 403
        wait_for(lambda: _operations(running).get("publish") == PUBLISHED, about="the records are written")
        yield running


@pytest.fixture(scope="module")
def access(made: Reporting) -> dict[str, Any]:
    """A done run of the access report, started by two schedulers at once."""
    run = made.ask("access", **hours_around())
    assert sorted(made.turn(at_once=2)) == [0, 1], "two schedulers start it once"
    done = made.wait(run, "done", "failed")
    assert done["state"] == "done", (done["reason"], made.said)
    return done


def _operations(made: Reporting) -> dict[str, int]:
    """Events by operation, as the segments have them now."""
    sums: dict[str, int] = {}
    if not made.records():
        return sums
    for row in ds.dataset([str(path) for path in made.records()], format="parquet").to_table().to_pylist():
        sums[row["operation"]] = sums.get(row["operation"], 0) + row["events"]
    return sums


def test_a_report_says_what_was_published(made: Reporting, access: dict[str, Any]) -> None:
    assert access["attempt"] == 1
    rows = _table(made, access["id"], "operations")
    published = [row for row in rows if row["operation"] == "publish"]
    assert sum(int(row["events"]) for row in published) == PUBLISHED
    assert sum(int(row["operations"]) for row in published) == PUBLISHED // 500
    assert access["headline"]["operations"]["value"] == sum(int(row["operations"]) for row in rows)
    assert access["headline"]["events"]["value"] == sum(int(row["events"]) for row in rows)
    refused = [row for row in _table(made, access["id"], "refusals") if row["principal"] == "nobody"]
    assert sum(int(row["operations"]) for row in refused) == 3
    assert access["report"]["headline"] == access["headline"]


def _table(made: Reporting, run: str, name: str) -> list[dict[str, str]]:
    answer = made.admin.get(f"/api/v1/reports/{run}/table/{name}", params={"format": "csv"})
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(io.StringIO(answer.text)))


@pytest.mark.browser
def test_the_page_shows_it_and_a_new_one_as_it_goes(made: Reporting, access: dict[str, Any], browser: Any) -> None:
    """The same run in pictures and tables; one more is asked for in the page, and takes too long (HERALD_REPORT_MAX_S)."""
    expect = pytest.importorskip("playwright.sync_api").expect
    with Closing(Console(browser, made.domain)) as console:
        page = console.log_in().page
        console.go("/reports")
        console.expect_pill("Live")
        headline = f"{access['headline']['operations']['value']:,}"
        expect(page.locator('[data-number="operations"] .tile-value')).to_have_text(headline)
        busiest = page.locator(".report-bars a").filter(has_text="/localhost/reports/busy/").first
        expect(busiest).to_be_visible()
        assert_accessible(page)
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV").click()
        assert re.fullmatch(r"access-principals-\S+\.csv", download.value.suggested_filename)

        page.get_by_role("button", name="Create a report").click()
        page.get_by_role("button", name="Create", exact=True).click()
        row = page.locator(".report-under-way > li")
        expect(row).to_contain_text("waits its turn")
        with made.turning(report_max_s=6):
            expect(row.locator("progress")).to_be_visible(timeout=WITHIN_S * 1000)
        expect(page.locator("#runs .badge.bad")).to_have_text("failed", timeout=60_000)
        expect(page.locator("#runs")).to_contain_text("HERALD_REPORT_MAX_S")
        expect(page.locator('[data-number="operations"] .tile-value')).to_have_text(headline)
        busiest.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("/localhost/reports/busy/")
    with Closing(Console(browser, made.domain, PHONE, color_scheme="dark")) as phone:
        page = phone.log_in().page
        phone.go("/reports")
        expect(page.locator('[data-number="operations"] .tile-value')).to_have_text(headline)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert_accessible(page)


def test_what_ends_a_runner_leaves_the_report_of_before_and_the_run_to_be_made(
    made: Reporting, access: dict[str, Any]
) -> None:
    again = {"from": access["from"], "to": access["to"]}
    run = made.ask("access", **again)
    assert made.turn() == [1]
    made.runner().send_signal(signal.SIGTERM)  # the domain stops
    given_back = made.wait(run, "queued")
    assert (given_back["reason"], given_back["attempt"]) == ("", 1)

    wait_for(lambda: not made.data_dir.joinpath("reporter.json").exists(), about="the runner has gone")
    assert made.turn() == [1]
    wait_for(
        lambda: (found := made.run(run))["state"] == "running" and found["stage"] not in READY_STAGES,
        WITHIN_S,
        about="Spark works",
    )
    runner = made.runner()
    below = runner.children(recursive=True)
    assert any("java" in process.name() for process in below)
    runner.kill()
    _, left = psutil.wait_procs([runner, *below], timeout=60)
    assert alive(left) == [], "Spark goes with it"
    assert made.run(run)["state"] == "running"
    assert made.recover() == 1
    lost = made.run(run)
    assert lost["state"] == "queued"
    assert "ended without a result" in lost["reason"]
    assert made.run(access["id"])["report"] == access["report"], "the earlier report is still in place"
    assert _table(made, access["id"], "operations")
    assert made.admin.delete(f"/api/v1/reports/{run}").json()["state"] == "failed"
