"""Reports and their runs."""

from __future__ import annotations

from typing import Any

from eventing.reports.rules.runs import JOBS as REPORT_JOBS
from eventing.reports.rules.runs import State as ReportState
from eventing.rest.documents.forms import COUNT, TEXT, TEXT_OR_NULL, TIME, object_of, ref

_REPORT_RUN: dict[str, Any] = {
    "id": TEXT,
    "job": {"type": "string", "enum": list(REPORT_JOBS)},
    "from": {**TIME, "description": "What it is about begins."},
    "to": {**TIME, "description": "And ends; not part of it."},
    "cadence": {"type": "string", "enum": ["hourly", "daily", "asked"]},
    "by": {"type": "string", "description": "Who asked for it; `domain`: the schedule."},
    "state": {"type": "string", "enum": list(ReportState)},
    "attempt": COUNT,
    "stage": {"type": "string", "description": "What is done now; empty unless it runs."},
    "done": {**COUNT, "description": "How much of that is done."},
    "total": {**COUNT, "description": "Of so much; 0: not known."},
    "reason": {"type": "string", "description": "Why it failed, or is tried again; empty if it did not fail."},
    "queued_at": TIME,
    "next_try_at": {**TIME, "type": ["string", "null"]},
    "started_at": {**TIME, "type": ["string", "null"]},
    "ended_at": {**TIME, "type": ["string", "null"]},
    "changed_at": TIME,
    "took_s": {"type": ["number", "null"]},
    "headline": {"type": ["object", "null"], "description": "name: {value, unit, about} (docs/reports.md)."},
    "input": {"type": ["object", "null"], "description": "What was read, and what was skipped."},
}


SCHEMAS: dict[str, Any] = {
    "ReportRun": object_of(**_REPORT_RUN),
    "ReportRunPage": object_of(
        items={"type": "array", "items": ref("ReportRun")},
        next=TEXT_OR_NULL,
        engine=object_of(
            state={"type": "string", "enum": ["ready", "off", "unknown"]},
            detail={"type": "string", "description": "One sentence: why reports cannot be made, and what to do."},
        ),
    ),
    "Report": object_of(**_REPORT_RUN, report={"type": ["object", "null"], "description": "docs/reports.md"}),
    "ReportTablePage": object_of(
        table=TEXT,
        about=TEXT,
        columns={
            "type": "array",
            "items": object_of(name=TEXT, type=TEXT, unit=TEXT, about=TEXT),
        },
        rows={**COUNT, "description": "Of the whole table."},
        items={
            "type": "array",
            "items": {"type": "array", "items": {"description": "The value of one column."}},
            "description": "Rows; values in the columns' order.",
        },
        next=TEXT_OR_NULL,
    ),
}
