"""/api/v1/reports: runs of reports: list, request, show, cancel, read tables."""

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
from eventing.reports.rules.runs import JOBS, ReportRunState
from eventing.reports.selectors.report_output import ReportTable, report_document
from eventing.reports.selectors.reports import report_answer, report_engine, report_get, reports_page
from eventing.reports.services.reports import report_cancel, report_request
from eventing.reports.shapes import ReportAnswer, ReportRunAnswer, ReportRunPage, ReportTablePage
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import StrictObject, StrictString
from eventing.rest.idempotency import created_once
from eventing.rest.moments import moment
from eventing.rest.paths import BASE

TIME_CHARS_MAX = 40
FORMATS = ("json", "csv", "parquet")
JOB = OpenApiParameter("job", str, enum=list(JOBS), description="Only runs of this job.")
STATE = OpenApiParameter("state", str, enum=list(ReportRunState), description="Only runs in this state.")
RUN_ID = OpenApiParameter("run_id", {"type": "string", "pattern": "^[1-9][0-9]{0,17}$"}, OpenApiParameter.PATH)
TABLE = OpenApiParameter("table", {"type": "string", "maxLength": 64}, OpenApiParameter.PATH)
FORMAT = OpenApiParameter(
    "format", str, enum=list(FORMATS), description="json: a page of rows (the default); csv, parquet: all rows."
)


@extend_schema_field({"type": "string", "format": "date-time"})
class Moment(StrictString):
    """An instant; the view parses it."""


@extend_schema_field({"type": "string", "enum": list(JOBS)})
class Job(StrictString):
    """A job; the service validates it."""


class AskedSerializer(StrictObject):
    """A requested report: job and period."""

    job = Job(min_length=1, max_length=16, help_text="Kind of report.")
    to = Moment(
        required=False, min_length=1, max_length=TIME_CHARS_MAX, help_text="End of the period, exclusive. Absent: now."
    )

    def get_fields(self) -> dict[str, Any]:
        """Return the fields with `from`, a keyword of Python."""
        begin = Moment(
            required=False,
            min_length=1,
            max_length=TIME_CHARS_MAX,
            help_text="Begin of the period. Absent: a day before the end.",
        )
        return {**super().get_fields(), "from": begin}


class ReportsView(View):
    """List of runs."""

    @extend_schema(
        operation_id="reports_list",
        summary="List runs of reports",
        description="Newest first; for administrators, operators and viewers. `engine` states whether reports can be "
        "made here.",
        parameters=[JOB, STATE, docs.CURSOR, docs.LIMIT],
        responses={200: ReportRunPage},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        page = reports_page(
            job=self.query("job"), state=self.query("state"), cursor=self.query("cursor"), limit=self.limit()
        )
        items = [report_answer(row, ReportRunAnswer) for row in page.items]
        return Response(ReportRunPage(items=items, next=page.next, engine=report_engine()))

    @extend_schema(
        operation_id="reports_run",
        summary="Request a report",
        description="For administrators and operators. The run is queued; its progress is reported on `domain.admin` "
        "and at its URL. Reports are made one at a time, requested ones before scheduled ones.",
        parameters=[docs.IDEMPOTENCY_KEY],
        request=AskedSerializer,
        responses={201: ReportRunAnswer},
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
        """Queue a run."""
        require_operator(self.principal)  # before the body is parsed: a refusal must reveal nothing else
        body = self.body(AskedSerializer)
        begin, end = moment("from", body.get("from")), moment("to", body.get("to"))
        return created_once(
            self,
            lambda claim: str(
                report_request(principal=self.principal, job=body["job"], begin=begin, end=end, claim=claim).id
            ),
            lambda made: Response(
                report_answer(report_get(made), ReportRunAnswer),
                status=201,
                headers={"Location": f"{BASE}/reports/{made}"},
            ),
        )


class ReportView(View):
    """One run."""

    @extend_schema(
        operation_id="reports_show",
        summary="Show a run and its report",
        description="For administrators, operators and viewers. `report` is the summary described in docs/reports.md: "
        "numbers, short lists, series, and the names of the tables; null until the run is done, and once it is "
        "superseded.",
        parameters=[RUN_ID],
        responses={200: ReportAnswer},
    )
    def get(self, request: Request, run_id: str) -> Response:
        """Show."""
        require_overseer(self.principal)
        row = report_get(run_id)
        return Response(report_answer(row, ReportAnswer, report=report_document(row)))

    @extend_schema(
        operation_id="reports_cancel",
        summary="Cancel a run",
        description="For administrators and operators. A queued or running run ends as failed; 409 for others. The "
        "earlier report stays.",
        parameters=[RUN_ID],
        responses={200: ReportRunAnswer},
    )
    def delete(self, request: Request, run_id: str) -> Response:
        """Cancel."""
        return Response(report_answer(report_cancel(principal=self.principal, reference=run_id), ReportRunAnswer))


class ReportTablesView(View):
    """Tables of a report."""

    @extend_schema(
        operation_id="reports_table",
        summary="Read a table of a report",
        description="For administrators, operators and viewers. As JSON in pages, each row a list in the order of "
        "`columns`; as CSV or Parquet the whole table, which is recorded in the audit. In CSV, a text that a "
        "spreadsheet would compute begins with a `'`; Parquet is exact.",
        parameters=[RUN_ID, TABLE, FORMAT, docs.CURSOR, docs.LIMIT],
        responses={
            (200, "application/json"): ReportTablePage,
            (200, "text/csv"): {"type": "string"},
            (200, "application/vnd.apache.parquet"): {"type": "string", "format": "binary"},
        },
    )
    def get(self, request: Request, run_id: str, table: str) -> Response | StreamingHttpResponse:
        """Read."""
        require_overseer(self.principal)
        form = self.query("format") or "json"
        if form not in FORMATS:
            raise InvalidRequest(f"format must be one of {', '.join(FORMATS)}.")
        row = report_get(run_id)
        found = ReportTable(row, table)
        if form == "json":
            page = found.page(self.query("cursor"), self.limit())
            return Response(ReportTablePage.of(found, table=found.name, items=page.items, next=page.next))
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


async def _streamed(chunks: Callable[[], Iterator[bytes]]) -> AsyncIterator[bytes]:
    """Yield chunks made in a thread, as fast as the client reads them."""
    iterator = chunks()
    following = sync_to_async(lambda: next(iterator, None))
    while (chunk := await following()) is not None:
        yield chunk
