"""/api/v1/reports: runs of reports, asking for one, and what they say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_field
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_operator, require_overseer
from eventing.audit.services import audit_record
from eventing.core.errors import InvalidRequest
from eventing.reports.models import ReportRun
from eventing.reports.rules.runs import JOBS, State
from eventing.reports.selectors.report_output import ReportTable, report_document
from eventing.reports.selectors.reports import report_data, report_engine, report_get, reports_page
from eventing.reports.services.reports import report_cancel, report_request
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import Members, Text
from eventing.rest.idempotency import created_once
from eventing.rest.moments import moment
from eventing.rest.paths import BASE

TIME_CHARS_MAX = 40
FORMATS = ("json", "csv", "parquet")
JOB = OpenApiParameter("job", str, enum=list(JOBS), description="Only runs of this job.")
STATE = OpenApiParameter("state", str, enum=list(State), description="Only runs in this state.")
RUN_ID = OpenApiParameter("run_id", {"type": "string", "pattern": "^[1-9][0-9]{0,17}$"}, OpenApiParameter.PATH)
TABLE = OpenApiParameter("table", {"type": "string", "maxLength": 64}, OpenApiParameter.PATH)
FORMAT = OpenApiParameter(
    "format", str, enum=list(FORMATS), description="json: a page of rows (the default); csv, parquet: all of them."
)


@extend_schema_field({"type": "string", "format": "date-time"})
class Moment(Text):
    """An instant; the view reads it."""


@extend_schema_field({"type": "string", "enum": list(JOBS)})
class Job(Text):
    """A job; the service knows which there are."""


class Asked(Members):
    """Which report, of which time."""

    job = Job(min_length=1, max_length=16, help_text="What to make.")
    to = Moment(required=False, min_length=1, max_length=TIME_CHARS_MAX, help_text="Not part of it. Absent: now.")

    def get_fields(self) -> dict[str, Any]:
        """With `from`, which no member of a class may be called."""
        begin = Moment(
            required=False, min_length=1, max_length=TIME_CHARS_MAX, help_text="Absent: a day before the end."
        )
        return {**super().get_fields(), "from": begin}


class Reports(View):
    """The runs."""

    @extend_schema(
        operation_id="reports_list",
        summary="List runs of reports",
        description="Newest first; for administrators, operators and viewers. `engine` says whether reports can be made here.",
        parameters=[JOB, STATE, docs.CURSOR, docs.LIMIT],
        responses={200: docs.ref("ReportRunPage")},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        page = reports_page(
            job=self.query("job"), state=self.query("state"), cursor=self.query("cursor"), limit=self.limit()
        )
        engine = report_engine()
        items = [representation(row) for row in page.items]
        return Response({"items": items, "next": page.next, "engine": {"state": engine.state, "detail": engine.detail}})

    @extend_schema(
        operation_id="reports_run",
        summary="Make a report",
        description="For administrators and operators. The run is queued; how it goes is told on `domain.admin`, and at its "
        "address. Reports are made one at a time, those that were asked for before those of the schedule.",
        parameters=[docs.IDEMPOTENCY_KEY],
        request=Asked,
        responses={201: docs.ref("ReportRun")},
        examples=[
            OpenApiExample("The last day", value={"job": "load"}, request_only=True),
            OpenApiExample(
                "A day",
                value={"job": "access", "from": "2026-11-20T00:00:00Z", "to": "2026-11-21T00:00:00Z"},
                request_only=True,
            ),
        ],
    )
    def post(self, request: Request) -> Response:
        """Ask."""
        require_operator(self.principal)  # before the body is looked at: who may not is told that, and nothing else
        body = self.body(Asked)
        begin, end = moment("from", body.get("from")), moment("to", body.get("to"))
        return created_once(
            self,
            lambda claim: str(
                report_request(principal=self.principal, job=body["job"], begin=begin, end=end, claim=claim).id
            ),
            lambda made: Response(
                representation(report_get(made)), status=201, headers={"Location": f"{BASE}/reports/{made}"}
            ),
        )


class Report(View):
    """One run."""

    @extend_schema(
        operation_id="reports_show",
        summary="Show a run and its report",
        description="For administrators, operators and viewers. `report` is the report in small, as docs/reports.md says: "
        "numbers, short lists, series, and which tables there are; null until it is done, and once it is superseded.",
        parameters=[RUN_ID],
        responses={200: docs.ref("Report")},
    )
    def get(self, request: Request, run_id: str) -> Response:
        """Show."""
        require_overseer(self.principal)
        row = report_get(run_id)
        return Response({**representation(row), "report": report_document(row)})

    @extend_schema(
        operation_id="reports_cancel",
        summary="Cancel a run",
        description="For administrators and operators: one that is queued or running ends as failed; 409 for others. The report "
        "of before stays.",
        parameters=[RUN_ID],
        responses={200: docs.ref("ReportRun")},
    )
    def delete(self, request: Request, run_id: str) -> Response:
        """Cancel."""
        return Response(representation(report_cancel(principal=self.principal, reference=run_id)))


class ReportTables(View):
    """The tables of a report."""

    @extend_schema(
        operation_id="reports_table",
        summary="Read a table of a report",
        description="For administrators, operators and viewers. As JSON in pages, each row a list in the order of `columns`; as "
        "CSV or Parquet all of it, which is an entry of the audit. In CSV a text that a spreadsheet would compute begins "
        "with a `'`; Parquet is exact.",
        parameters=[RUN_ID, TABLE, FORMAT, docs.CURSOR, docs.LIMIT],
        responses={
            (200, "application/json"): docs.ref("ReportTablePage"),
            (200, "text/csv"): {"type": "string"},
            (200, "application/vnd.apache.parquet"): {"type": "string", "format": "binary"},
        },
    )
    def get(self, request: Request, run_id: str, table: str) -> Response | StreamingHttpResponse:
        """Read."""
        require_overseer(self.principal)
        form = self.query("format") or "json"
        if form not in FORMATS:
            raise InvalidRequest(f"format is one of {', '.join(FORMATS)}.")
        row = report_get(run_id)
        found = ReportTable(row, table)
        if form == "json":
            page = found.page(self.query("cursor"), self.limit())
            return Response(
                {
                    "table": found.name,
                    "about": found.about,
                    "columns": found.columns,
                    "rows": found.rows,
                    "items": page.items,
                    "next": page.next,
                }
            )
        details = {"job": row.job, "table": found.name, "format": form}
        audit_record(action="report.download", principal=self.principal, on=("report", run_id), details=details)
        kind, chunks = {
            "csv": ("text/csv; charset=utf-8", found.csv),
            "parquet": ("application/vnd.apache.parquet", found.parquet),
        }[form]
        answer = StreamingHttpResponse(_streamed(chunks), content_type=kind)
        answer["Cache-Control"] = "no-store"
        name = f"{row.job}-{found.name}-{row.period_from:%Y%m%dT%H%MZ}-{row.period_to:%Y%m%dT%H%MZ}.{form}"
        answer["Content-Disposition"] = f'attachment; filename="{name}"'
        return answer


def representation(row: ReportRun) -> dict[str, Any]:
    """A run in answers: as events show it, and what came of it in numbers."""
    said = row.summary
    return {
        **report_data(row),
        "took_s": said.get("took_s"),
        "headline": said.get("headline"),
        "input": said.get("input"),
    }


async def _streamed(chunks: Callable[[], Iterator[bytes]]) -> AsyncIterator[bytes]:
    """Made in a thread, a chunk at a time, as fast as the client takes them."""
    iterator = chunks()
    following = sync_to_async(lambda: next(iterator, None))
    while (chunk := await following()) is not None:
        yield chunk
