"""Reads of report runs: pages, one run, what is told of a run, and whether runs can be made at all."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from eventing.conf import config
from eventing.core.errors import InvalidCursor, InvalidRequest, NotFound
from eventing.log import control
from eventing.reports.models import ReportRun
from eventing.reports.rules.runs import JOBS, State
from eventing.sql.pages import LIMIT_DEFAULT, Page, cursor_of, key_of
from eventing.store import keys

RUNS_IN_STATE = 100
"""Of the latest runs in the snapshot of the domain (eventing/reports/events.py)."""
TOLD_FOR_S = 60
"""What the worker said of Java is believed for so long; it says it every few seconds."""
_ID = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)


def report_get(reference: str) -> ReportRun:
    """The run with this id. Raises NotFound."""
    row = ReportRun.objects.filter(id=int(reference)).first() if _ID.fullmatch(reference) else None
    if row is None:
        raise NotFound("There is no such run of a report.")
    return row


def reports_page(
    *, job: str | None = None, state: str | None = None, cursor: str | None = None, limit: int = LIMIT_DEFAULT
) -> Page[ReportRun]:
    """Runs, newest first. Raises InvalidRequest, InvalidCursor."""
    if job is not None and job not in JOBS:
        raise InvalidRequest(f"job is one of {', '.join(JOBS)}.")
    if state is not None and state not in list(State):
        raise InvalidRequest(f"state is one of {', '.join(State)}.")
    rows = ReportRun.objects.order_by("-id")
    if job is not None:
        rows = rows.filter(job=job)
    if state is not None:
        rows = rows.filter(state=state)
    if cursor is not None:
        key = key_of("report", cursor)
        if not _ID.fullmatch(key):
            raise InvalidCursor("Use the `next` of the page before, with the same filters.")
        rows = rows.filter(id__lt=int(key))
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    return Page(found, cursor_of("report", str(found[-1].id)) if more else None)


def reports_latest() -> dict[str, dict[str, Any]]:
    """The latest runs as the domain's state has them, by id."""
    rows = ReportRun.objects.order_by("-id")[:RUNS_IN_STATE]
    return {str(row.id): report_data(row) for row in rows}


def report_data(row: ReportRun) -> dict[str, Any]:
    """A run as events and answers show it."""
    return {
        "id": str(row.id),
        "job": row.job,
        "from": _moment(row.period_from),
        "to": _moment(row.period_to),
        "cadence": str(row.cadence),
        "by": row.by,
        "state": str(row.state),
        "attempt": row.attempt,
        "stage": row.stage,
        "done": row.done,
        "total": row.total,
        "reason": row.reason,
        "queued_at": _moment(row.queued_at),
        "next_try_at": _moment(row.next_try_at) if row.state == State.QUEUED else None,
        "started_at": _moment(row.started_at),
        "ended_at": _moment(row.ended_at),
        "changed_at": _moment(row.changed_at),
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Engine:
    """Whether reports can be made: `ready`, `off`, or `unknown` while no worker has said so; `detail`: a sentence."""

    state: str
    detail: str


def report_engine() -> Engine:
    """As the worker said last. Raises redis.RedisError."""
    if config().reports == "off":
        return Engine("off", "Reports are off in this domain: HERALD_REPORTS=off.")
    told: Any = control.client().get(keys.REPORTS_KEY)
    if told is None:
        return Engine("unknown", "No worker has said yet whether reports can be made here.")
    problem = str(json.loads(told)["problem"])
    return Engine("off", problem) if problem else Engine("ready", "Reports can be made.")


def report_engine_tell(problem: str) -> None:
    """Say whether reports can be made: an empty text, or why not. Raises redis.RedisError."""
    control.client().set(keys.REPORTS_KEY, json.dumps({"problem": problem}), ex=TOLD_FOR_S)
