"""Report runs on a real database and Redis, without Spark: asked for, claimed by one, ended, made anew; REST."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rest_framework.test import APIClient

from eventing.audit.models import AuditEntry
from eventing.conf import config
from eventing.core.errors import Conflict, Forbidden, QuotaExceeded
from eventing.core.principals import Principal
from eventing.reports.models import ReportRun
from eventing.reports.rules import runs
from eventing.reports.rules.runs import ATTEMPTS_MAX, DAILY, LEASE, START_LEASE, Extent, ReportPeriod
from eventing.reports.selectors.report_output import ReportTable, _cell
from eventing.reports.selectors.reports import report_engine
from eventing.reports.services import reports
from eventing.store.presence import engine_problem_note
from portal.supervisor.reporting.runner import make_room
from tests.admin_rp.proving import Proof
from tests.planes import problem_code

pytestmark = pytest.mark.usefixtures("stores")

NOW = datetime(2027, 1, 15, 8, 30, tzinfo=UTC)
DAY = {"begin": NOW - timedelta(days=1), "end": NOW}


def ask(root: Principal, job: str = "access", **stated: Any) -> ReportRun:
    return reports.report_request(principal=root, job=job, **{**DAY, "now": NOW, **stated})


def claimed(root: Principal, **stated: Any) -> ReportRun:
    ask(root, **stated)
    row = reports.report_claim(now=NOW)
    assert row is not None
    return row


def test_a_run_is_told_from_its_asking_to_its_end(root: Principal) -> None:
    with Proof() as proof:
        row = claimed(root)
        mine = {"run": row.id, "attempt": row.attempt}
        assert reports.report_progress(**mine, stage="usage", done=1, total=4, now=NOW)
        assert reports.report_progress(**mine, stage="usage", done=1, total=4, now=NOW)  # nothing new: not told again
        assert reports.report_finish(**mine, output="x", summary={"took_s": 1}, there=Extent(3, 5.0), now=NOW)
    assert proof.types == ["report.run.queued", "report.run.running", "report.run.running", "report.run.done"]
    assert AuditEntry.objects.filter(action="report.run", who="root").count() == 1


def test_of_several_who_start_one_does_and_the_same_report_is_open_once(root: Principal) -> None:
    ask(root)
    with pytest.raises(Conflict, match="queued already"):
        ask(root)
    ask(root, "load")
    first = reports.report_claim(now=NOW)
    assert first is not None
    assert first.job == "access"
    assert reports.report_claim(now=NOW) is None  # one at a time
    assert ReportRun.objects.get(job="access").attempt == 1


def test_two_schedulers_queue_each_report_once(monkeypatch: pytest.MonkeyPatch) -> None:
    extent = lambda period: Extent(2, 1.0) if period.begin.hour == 7 else Extent()  # noqa: E731
    assert reports.reports_due(extent=extent, now=NOW) == 2  # access and load of 7 to 8
    assert reports.reports_due(extent=extent, now=NOW) == 0
    monkeypatch.setattr(reports, "_latest", lambda wanted: {})  # as if both had looked before either wrote
    assert reports.reports_due(extent=extent, now=NOW) == 0
    assert ReportRun.objects.count() == 2
    assert set(ReportRun.objects.values_list("by", "cadence")) == {("domain", "hourly")}


def test_what_is_kept_for_a_day_is_not_made_again_for_a_week(root: Principal, configure: Callable[..., None]) -> None:
    configure(reports_retention_days=1)
    there = Extent(2, 1.0)
    extent = lambda period: there if period.end - period.begin == timedelta(days=1) else Extent()  # noqa: E731
    assert reports.reports_due(extent=extent, now=NOW) == len(DAILY), "those of yesterday"
    assert reports.reports_due(extent=extent, now=NOW) == 0
    at = NOW
    while (row := reports.report_claim(now=at)) is not None:
        reports.report_finish(run=row.id, attempt=row.attempt, output="o", summary={}, there=there, now=at)
    at = NOW + timedelta(days=1, minutes=1)
    assert reports.reports_purge(now=at) == len(DAILY)
    assert reports.reports_due(extent=extent, now=at) == len(DAILY), "those of the next day, not again what was removed"


def test_a_late_segment_makes_the_hour_anew_and_the_earlier_run_is_superseded(root: Principal) -> None:
    there = Extent(2, 100.0)
    extent = lambda period: there if period.begin.hour == 7 else Extent()  # noqa: E731
    reports.reports_due(extent=extent, now=NOW)
    for _ in range(2):
        row = reports.report_claim(now=NOW)
        assert row is not None
        reports.report_finish(run=row.id, attempt=row.attempt, output="o", summary={}, there=there, now=NOW)
    assert reports.reports_due(extent=extent, now=NOW) == 0
    there = Extent(0, 0.0)  # compaction took them
    assert reports.reports_due(extent=extent, now=NOW) == 0
    there = Extent(1, 101.0)
    with Proof() as proof:
        assert reports.reports_due(extent=extent, now=NOW) == 2
        row = reports.report_claim(now=NOW)
        assert row is not None
        reports.report_finish(run=row.id, attempt=row.attempt, output="p", summary={}, there=there, now=NOW)
    assert proof.types[-2:] == ["report.run.superseded", "report.run.done"]
    assert list(ReportRun.objects.filter(job=row.job).order_by("id").values_list("state", "output")) == [
        ("superseded", ""),
        ("done", "p"),
    ]


def test_a_silent_runner_loses_its_run_and_its_words_mean_nothing(root: Principal) -> None:
    row = claimed(root)
    late = NOW + START_LEASE + timedelta(seconds=1)
    assert reports.reports_recover(now=NOW + START_LEASE / 2) == 0
    assert reports.reports_recover(now=late) == 1
    row = ReportRun.objects.get()
    assert (row.state, row.failures, row.reason) == ("queued", 1, reports.NO_ANSWER)
    assert not reports.report_progress(run=row.id, attempt=1, stage="x", now=late)
    assert reports.report_claim(now=late) is None  # it waits
    again = reports.report_claim(now=late + timedelta(minutes=2))
    assert again is not None
    assert again.attempt == 2
    assert not reports.report_finish(run=row.id, attempt=1, output="o", summary={}, there=Extent(), now=late)
    assert reports.report_progress(run=row.id, attempt=2, now=late)
    assert ReportRun.objects.get().lease_until == late + LEASE


def test_a_run_that_fails_again_and_again_stays_failed_with_its_reason(root: Principal) -> None:
    ask(root)
    for number in range(ATTEMPTS_MAX):
        at = NOW + timedelta(hours=number)
        row = reports.report_claim(now=at)
        assert row is not None
        reports.report_fail(run=row.id, attempt=row.attempt, reason="The disk is full." * 99, now=at)
    row = ReportRun.objects.get()
    assert (row.state, row.failures) == ("failed", ATTEMPTS_MAX)
    assert row.reason.startswith("The disk is full.")
    assert reports.report_claim(now=NOW + timedelta(days=1)) is None


def test_the_domains_stop_costs_a_run_nothing(root: Principal) -> None:
    row = claimed(root)
    assert reports.report_release(run=row.id, attempt=row.attempt, now=NOW)
    row = ReportRun.objects.get()
    assert (row.state, row.failures, row.attempt) == ("queued", 0, 1)
    assert reports.report_claim(now=NOW) is not None


def test_cancelling_ends_what_is_open_and_nothing_else(root: Principal, ann: Principal) -> None:
    row = claimed(root)
    with pytest.raises(Forbidden):
        reports.report_cancel(principal=ann, reference=str(row.id))
    with Proof() as proof:
        assert reports.report_cancel(principal=root, reference=str(row.id), now=NOW).reason == "Cancelled by root."
    assert proof.types == ["report.run.failed"]
    assert not reports.report_progress(run=row.id, attempt=row.attempt)
    with pytest.raises(Conflict, match="is failed"):
        reports.report_cancel(principal=root, reference=str(row.id))


def test_nobody_queues_without_end(root: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "OPEN_MAX", 1)
    ask(root)
    with pytest.raises(QuotaExceeded):
        ask(root, "load")


def test_old_runs_go_with_what_they_wrote(root: Principal, configure: Callable[..., None], tmp_path: Path) -> None:
    configure(reports_dir=str(tmp_path / "reports"), reports_retention_days=10)
    row = claimed(root)
    folder = written(row)
    reports.report_finish(run=row.id, attempt=1, output=row.output, summary={}, there=Extent(), now=NOW)
    assert reports.reports_purge(now=NOW + timedelta(days=9)) == 0
    assert folder.exists()
    assert reports.reports_purge(now=NOW + timedelta(days=11)) == 1
    assert not list((tmp_path / "reports").iterdir())
    assert not ReportRun.objects.exists()


# -- REST --------------------------------------------------------------------------------------------------------------


def written(row: ReportRun, rows: int = 7) -> Path:
    """Files of a run as Spark leaves them: two tables, one of them in two files."""
    row.output = f"{ReportPeriod(row.period_from, row.period_to).name}/{row.job}/run=r"
    folder = Path(config().reports_place) / row.output
    names = [f"=name{number}" for number in range(rows)]
    for number, part in enumerate((slice(0, 3), slice(3, rows))):
        (folder / "principals").mkdir(parents=True, exist_ok=True)
        table = pa.table({"principal": names[part], "operations": list(range(rows))[part]})
        pq.write_table(table, folder / "principals" / f"part-{number}.parquet", row_group_size=2)
    columns = [
        {"name": "principal", "type": "string", "unit": "", "about": "Who."},
        {"name": "operations", "type": "bigint", "unit": "operations", "about": "All."},
    ]
    document = {"run": "r", "tables": {"principals": {"about": "One each.", "rows": rows, "columns": columns}}}
    (folder / "report.json").write_text(json.dumps(document))
    return folder


@pytest.fixture
def api(client_of: Callable[..., APIClient]) -> APIClient:
    return client_of("root", admin=True)


def test_a_report_is_asked_for_once_with_a_key_and_read(api: APIClient, client_of: Callable[..., APIClient]) -> None:
    body = {"job": "load", "from": "2026-11-20T00:00:00+01:00", "to": "2026-11-21T00:00:00Z"}
    made = api.post("/api/v1/reports", body, format="json", HTTP_IDEMPOTENCY_KEY="k")
    assert made.status_code == 201, made.content
    assert made.json()["from"] == "2026-11-19T23:00:00.000000Z"
    assert made["Location"] == f"/api/v1/reports/{made.json()['id']}"
    again = api.post("/api/v1/reports", body, format="json", HTTP_IDEMPOTENCY_KEY="k")
    assert again.json()["id"] == made.json()["id"]
    assert problem_code(api.post("/api/v1/reports", body, format="json")) == "conflict"
    shown = api.get(made["Location"]).json()
    assert (shown["state"], shown["report"]) == ("queued", None)
    assert problem_code(api.get(f"{made['Location']}/table/rps")) == "not-found"
    assert api.delete(made["Location"]).json()["state"] == "failed"
    assert problem_code(api.delete(made["Location"])) == "conflict"
    assert problem_code(client_of("ann").post("/api/v1/reports", body, format="json")) == "forbidden"


@pytest.mark.parametrize(
    "body",
    [
        {"job": "everything"},
        {"job": "load", "from": "yesterday"},
        {"job": "load", "from": "2026-11-20T00:00:00"},
        {"job": "load", "to": "0001-01-01T00:00:00Z"},
        {"job": "load", "from": "2026-11-21T00:00:00Z", "to": "2026-11-20T00:00:00Z"},
        {"job": "load", "until": "2026-11-21T00:00:00Z"},
        {"job": 7},
        {},
    ],
    ids=lambda body: json.dumps(body),
)
def test_a_wrong_order_is_refused_in_a_sentence(api: APIClient, body: dict[str, Any]) -> None:
    answer = api.post("/api/v1/reports", body, format="json")
    assert problem_code(answer) == "invalid-request"
    assert not ReportRun.objects.exists()


def test_runs_are_listed_in_pages_with_what_the_machine_can_do(api: APIClient, root: Principal) -> None:
    for job in ("access", "load", "overlap"):
        ask(root, job)
    assert api.get("/api/v1/reports").json()["engine"]["state"] == "unknown"
    engine_problem_note("Reports need Java 17 or newer, but there is no `java` on PATH.")
    first = api.get("/api/v1/reports?limit=2").json()
    assert first["engine"] == {"state": "off", "detail": report_engine().detail}
    engine_problem_note("")
    second = api.get(f"/api/v1/reports?limit=2&cursor={first['next']}").json()
    assert second["engine"]["state"] == "ready"
    assert [run["job"] for run in first["items"] + second["items"]] == ["overlap", "load", "access"]
    assert second["next"] is None
    assert [run["job"] for run in api.get("/api/v1/reports?job=load").json()["items"]] == ["load"]
    assert api.get("/api/v1/reports?state=done").json()["items"] == []
    for query in ("job=x", "state=x", "cursor=x", "limit=0"):
        assert api.get(f"/api/v1/reports?{query}").status_code == 400


def test_a_domain_with_reports_off_says_so(api: APIClient, configure: Callable[..., None]) -> None:
    configure(reports="off")
    assert "HERALD_REPORTS" in api.get("/api/v1/reports").json()["engine"]["detail"]
    assert problem_code(api.post("/api/v1/reports", {"job": "load"}, format="json")) == "conflict"


@pytest.mark.parametrize("limit", [1, 3, 4, 7])
def test_a_tables_pages_hold_every_row_once(
    root: Principal, configure: Callable[..., None], tmp_path: Path, limit: int
) -> None:
    configure(reports_dir=str(tmp_path))
    row = claimed(root)
    written(row)
    reports.report_finish(run=row.id, attempt=1, output=row.output, summary={}, there=Extent(), now=NOW)
    row.refresh_from_db()
    table, found, cursor = ReportTable(row, "principals"), [], None
    while True:
        page = table.page(cursor, limit)
        assert len(page.items) <= limit
        found += page.items
        cursor = page.next
        if cursor is None:
            break
    assert found == [[f"=name{number}", number] for number in range(7)]


@pytest.mark.parametrize(
    "begin", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"], ids=ascii
)
def test_no_text_in_a_csv_is_a_formula(begin: str) -> None:
    assert _cell(f"{begin}cmd") == f"'{begin}cmd"
    assert _cell(f"a{begin}cmd") == f"a{begin}cmd"
    assert _cell(-5) == -5


def test_what_killed_runs_have_spilled_goes_with_the_next(tmp_path: Path) -> None:
    for run in ("3", "4"):
        (tmp_path / "work" / run).mkdir(parents=True)
        (tmp_path / "work" / run / "spill").write_text("much")
    make_room(tmp_path / "work" / "4")
    assert [path.relative_to(tmp_path) for path in tmp_path.rglob("*")] == [Path("work"), Path("work/4")]


def test_tables_are_taken_away_as_csv_and_parquet(
    api: APIClient, root: Principal, configure: Callable[..., None], tmp_path: Path
) -> None:
    configure(reports_dir=str(tmp_path))
    row = claimed(root)
    folder = written(row)
    reports.report_finish(run=row.id, attempt=1, output=row.output, summary={}, there=Extent(), now=NOW)
    row.refresh_from_db()
    table = ReportTable(row, "principals")
    lines = b"".join(table.csv()).decode().splitlines()
    assert lines[:2] == ["principal,operations", "'=name0,0"], "no spreadsheet computes a stranger's name"
    assert len(lines) == 8
    assert pq.read_table(pa.BufferReader(b"".join(table.parquet())))["operations"].to_pylist() == list(range(7))
    path = f"/api/v1/reports/{row.id}/table"
    answer = api.get(f"{path}/principals?format=csv")
    assert answer["Content-Disposition"] == (
        'attachment; filename="access-principals-20270114T0830Z-20270115T0830Z.csv"'
    )
    assert AuditEntry.objects.filter(action="report.download", on_id=str(row.id)).count() == 1
    assert problem_code(api.get(f"{path}/principals?format=xml")) == "invalid-request"
    assert problem_code(api.get(f"{path}/..%2F..%2Fx")) == "not-found"
    (folder / "report.json").unlink()
    assert problem_code(api.get(f"{path}/principals")) == "gone"
    assert api.get(f"/api/v1/reports/{row.id}").json()["report"] is None
