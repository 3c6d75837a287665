"""Reads of report runs: pages, one run, its data in events, and whether reports can be made."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from eventing.conf import config
from eventing.core.errors import InvalidRequest, NotFound
from eventing.core.timestamps import timestamp
from eventing.reports.models import ReportRun
from eventing.reports.rules.runs import JOBS, ReportRunState
from eventing.reports.shapes import ReportEngine, ReportRunAnswer, ReportRunData
from eventing.sql.pages import LIMIT_DEFAULT, Page, page_newest
from eventing.store.presence import engine_problem_noted

RUNS_IN_STATE = 100
"""Latest runs in the snapshot of the domain (eventing/reports/events.py)."""

_ID = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
RunAnswer = TypeVar("RunAnswer", bound=ReportRunAnswer)


def report_get(reference: str) -> ReportRun:
    """Return the run with this id. Raises NotFound."""
    row = report_found(int(reference)) if _ID.fullmatch(reference) else None
    if row is None:
        raise NotFound("There is no such run of a report.")
    return row


def report_found(run: int) -> ReportRun | None:
    """Return the run with this id; None if there is none."""
    return ReportRun.objects.filter(id=run).first()


def reports_page(
    *, job: str | None = None, state: str | None = None, cursor: str | None = None, limit: int = LIMIT_DEFAULT
) -> Page[ReportRun]:
    """Return a page of runs, newest first. Raises InvalidRequest, InvalidCursor."""
    if job is not None and job not in JOBS:
        raise InvalidRequest(f"job must be one of {', '.join(JOBS)}.")
    if state is not None and state not in list(ReportRunState):
        raise InvalidRequest(f"state must be one of {', '.join(ReportRunState)}.")
    rows = ReportRun.objects.order_by("-id")
    if job is not None:
        rows = rows.filter(job=job)
    if state is not None:
        rows = rows.filter(state=state)
    return page_newest(rows, "report", cursor=cursor, limit=limit)


def reports_latest() -> dict[str, ReportRunData]:
    """Return the latest runs, by id, as in the domain's state."""
    rows = ReportRun.objects.order_by("-id")[:RUNS_IN_STATE]
    return {str(row.id): report_data(row) for row in rows}


def report_data(row: ReportRun) -> ReportRunData:
    """Return a run as events and snapshots show it."""
    return ReportRunData.of(row, **_members(row))


def report_answer(row: ReportRun, shape: type[RunAnswer], **more: Any) -> RunAnswer:
    """Return a run in answers: with its result in numbers, and what `shape` has besides."""
    result = {name: row.summary.get(name) for name in ("took_s", "headline", "input")}
    return shape.of(row, **_members(row), **result, **more)


def _members(row: ReportRun) -> dict[str, Any]:
    return {
        "id": str(row.id),
        "begin": timestamp(row.period_from),
        "end": timestamp(row.period_to),
        "next_try_at": timestamp(row.next_try_at) if row.next_try_at and row.state == ReportRunState.QUEUED else None,
    }


def report_engine() -> ReportEngine:
    """Return the worker's last statement. Raises redis.RedisError."""
    if config().reports == "off":
        return ReportEngine("off", "Reports are off in this domain: HERALD_REPORTS=off.")
    problem = engine_problem_noted()
    if problem is None:
        return ReportEngine("unknown", "No worker has reported yet whether reports can be made here.")
    return ReportEngine("off", problem) if problem else ReportEngine("ready", "Reports can be made.")
