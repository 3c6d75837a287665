"""Shapes of reports and their runs."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from eventing.core.shapes import Count, Moment, PageAnswer, Shape, doc, one_of
from eventing.reports.rules.runs import JOBS, ReportRunState


class ReportRunData(Shape):
    """A run of a report."""

    id: str
    job: Annotated[str, one_of(*JOBS)]
    begin: Annotated[Moment, doc("Begin of the period.")] = field(name="from")
    end: Annotated[Moment, doc("End of the period, exclusive.")] = field(name="to")
    cadence: Annotated[str, one_of("hourly", "daily", "asked")]
    by: Annotated[str, doc("Identity that requested it; `domain`: the schedule.")]
    state: Annotated[str, one_of(*ReportRunState)]
    attempt: Annotated[Count, doc("Number of the attempt.")]
    stage: Annotated[str, doc("Present stage; empty unless it runs.")]
    done: Annotated[Count, doc("Completed units of the stage.")]
    total: Annotated[Count, doc("All units of the stage; 0 while not known.")]
    reason: Annotated[str, doc("Reason of the last or final failure; empty if none.")]
    queued_at: Annotated[Moment, doc("When it was requested.")]
    next_try_at: Annotated[Moment | None, doc("Earliest begin; null unless it is queued.")]
    started_at: Annotated[Moment | None, doc("When the last attempt began.")]
    ended_at: Moment | None
    changed_at: Annotated[Moment, doc("When one of these members last changed.")]


class ReportRunAnswer(ReportRunData):
    """A run of a report, and its result in numbers."""

    took_s: float | None
    headline: Annotated[dict[str, Any] | None, doc("name: {value, unit, about} (docs/reports.md).")]
    input: Annotated[dict[str, Any] | None, doc("Input that was read, and input that was skipped.")]


class ReportAnswer(ReportRunAnswer):
    """A run, and its report."""

    report: Annotated[dict[str, Any] | None, doc("docs/reports.md")]


class ReportEngine(Shape):
    """Availability of reports."""

    state: Annotated[str, one_of("ready", "off", "unknown")]
    detail: Annotated[str, doc("One sentence: why reports cannot be made, and what to do then.")]


class ReportRunPage(PageAnswer):
    """A page of runs."""

    items: list[ReportRunAnswer]
    engine: ReportEngine


class ReportColumn(Shape):
    """A column of a table."""

    name: str
    type: str
    unit: str
    about: str


class ReportTablePage(PageAnswer):
    """A page of a table's rows."""

    table: str
    about: str
    columns: list[ReportColumn]
    rows: Annotated[Count, doc("Rows of the whole table.")]
    items: Annotated[
        list[list[Annotated[Any, doc("Value of one column.")]]], doc("Rows; values in the columns' order.")
    ]
