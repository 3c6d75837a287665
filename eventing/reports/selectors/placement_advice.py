"""The recommendations of the newest placement report, for the planner of placement."""

from __future__ import annotations

from collections.abc import Mapping

from eventing.core.container import per_process
from eventing.core.errors import ApplicationError
from eventing.reports.models import ReportRun
from eventing.reports.rules.runs import ReportRunState
from eventing.reports.selectors.report_output import ReportTable
from eventing.sql.remembered import remembered

ROWS_MAX = 500  # bound: recommendations that are read, those with the greatest saving first; the others are left out
JOB = "placement"


@per_process
def _read() -> dict[int, dict[str, list[str]]]:
    """Recommendations of the run that was read last, by its id."""
    return {}


def placement_advice() -> Mapping[str, list[str]]:
    """Return the recommended domains by RP; empty without a report (operations/placement/ports.py)."""
    run = _last_run()
    if run is None:
        return {}
    read = _read()
    if run.id not in read:
        read.clear()
        read[run.id] = _advice(run)
    return read[run.id]


@remembered
def _last_run() -> ReportRun | None:
    return ReportRun.objects.filter(job=JOB, state=ReportRunState.DONE).order_by("-period_to", "-id").first()


def _advice(run: ReportRun) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    try:
        table = ReportTable(run, "advice")
        columns = [column["name"] for column in table.columns]
        for values in table.page(None, ROWS_MAX).items:
            row = dict(zip(columns, values, strict=True))
            if row["recommended"]:
                found.setdefault(str(row["rp"]), []).append(str(row["domain"]))
    except (ApplicationError, OSError):
        return {}  # its files were deleted
    return found
