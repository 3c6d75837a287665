"""/api/v1/audit: reading, following and exporting the audit, for administrators, operators and viewers of the domain."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.audit.models import ACTION_CHARS, TEXT_CHARS, WHO_CHARS, AuditEntry
from eventing.audit.selectors import AuditFilter, audit_newest_id, audit_page, audit_run
from eventing.audit.services import audit_record
from eventing.audit.shapes import AuditEntryAnswer, AuditEntryPage, AuditObject
from eventing.core.errors import Forbidden, InvalidRequest
from eventing.core.roles import oversees
from eventing.core.timestamps import timestamp
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer
from eventing.rest.moments import moment

OUTCOMES = ("ok", "refused", "failed")
AFTER_DIGITS_MAX = 18
_TIME = {"type": "string", "format": "date-time"}
FILTERS = [
    OpenApiParameter("since", _TIME, description="Recorded at or after this time, RFC 3339."),
    OpenApiParameter("until", _TIME, description="Recorded before this time, RFC 3339."),
    OpenApiParameter("who", {"type": "string", "maxLength": WHO_CHARS}, description="The complete identity."),
    OpenApiParameter(
        "action",
        {"type": "string", "maxLength": ACTION_CHARS},
        description="The complete action, or a prefix with `.*`: `rp.*`.",
    ),
    OpenApiParameter("outcome", {"type": "string", "enum": list(OUTCOMES)}),
    OpenApiParameter("on", {"type": "string", "maxLength": TEXT_CHARS}, description="Id of the object of the action."),
    OpenApiParameter(
        "after",
        {"type": "integer", "minimum": 0, "maximum": 10**AFTER_DIGITS_MAX - 1},
        description="Only entries with a greater id. Ids are assigned in the order in which entries become visible, so reading on after the greatest id seen misses nothing.",
    ),
]
ORDER = OpenApiParameter(
    "order", {"type": "string", "enum": ["newest", "oldest"], "default": "newest"}, description="Order of the entries."
)


def document(entry: AuditEntry) -> AuditEntryAnswer:
    """Make the document of an entry for answers and exports."""
    return AuditEntryAnswer.of(
        entry,
        at=timestamp(entry.recorded_at),
        issuer=entry.issuer or None,
        token_id=entry.token_id or None,
        address=entry.address or None,
        request_id=entry.request_id or None,
        on=AuditObject(kind=entry.on_kind, id=entry.on_id) if entry.on_kind or entry.on_id else None,
        problem=f"urn:herald:problem:{entry.problem}" if entry.problem else None,
        reason=entry.reason or None,
    )


class AuditView(View):
    """Base of both views: access check, and the filters of the query."""

    def require_overseer(self) -> None:
        """Raise Forbidden unless the principal may see all of the domain: administrators, operators, viewers."""
        if not oversees(self.principal):
            raise Forbidden(
                "Reading the audit requires a token of an administrator, operator or viewer of this domain that is not narrowed."
            )

    def wanted(self) -> AuditFilter:
        """Parse the filters of the query. Raises InvalidRequest."""
        outcome = self.query("outcome")
        if outcome is not None and outcome not in OUTCOMES:
            raise InvalidRequest(f"outcome is one of {', '.join(OUTCOMES)}.")
        after = self.query("after")
        if after is not None and not (after.isascii() and after.isdigit() and len(after) <= AFTER_DIGITS_MAX):
            raise InvalidRequest("after is the id of an entry, a number of at most 18 digits.")
        return AuditFilter(
            since=moment("since", self.query("since")),
            until=moment("until", self.query("until")),
            who=self._text("who", WHO_CHARS),
            action=self._text("action", ACTION_CHARS),
            outcome=outcome,
            on=self._text("on", TEXT_CHARS),
            after=None if after is None else int(after),
        )

    def _text(self, name: str, chars_max: int) -> str | None:
        text = self.query(name)
        if text is not None and (len(text) > chars_max or "\0" in text):
            raise InvalidRequest(f"{name} has at most {chars_max} characters, none of them NUL.")
        return text


class AuditListView(AuditView):
    """List of entries, in pages."""

    @extend_schema(
        operation_id="audit_list",
        summary="Read the audit",
        description="Requires the role administrator, operator or viewer. Newest first, unless `order` is `oldest`.",
        parameters=[docs.CURSOR, docs.LIMIT, ORDER, *FILTERS],
        responses={200: AuditEntryPage},
    )
    def get(self, request: Request) -> Response:
        """List entries."""
        self.require_overseer()
        order = self.query("order") or "newest"
        if order not in ("newest", "oldest"):
            raise InvalidRequest("order is newest or oldest.")
        page = audit_page(
            wanted=self.wanted(), oldest_first=order == "oldest", cursor=self.query("cursor"), limit=self.limit()
        )
        return page_answer(page, [document(entry) for entry in page.items])


class AuditExportView(AuditView):
    """All entries as JSON Lines, oldest first, with one run of them in memory at a time."""

    @extend_schema(
        operation_id="audit_export",
        summary="Export the audit",
        description="JSON Lines, oldest first: all entries that existed when the export began, one per line. Requires the role administrator, operator or viewer; an export is itself an entry.",
        parameters=FILTERS,
        responses={(200, "application/x-ndjson"): AuditEntryAnswer},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """Export entries."""
        self.require_overseer()
        wanted = self.wanted()
        through = audit_newest_id()
        audit_record(action="audit.export", principal=self.principal, details={"through": through})
        answer = StreamingHttpResponse(_lines(wanted, through), content_type="application/x-ndjson")
        answer["Cache-Control"] = "no-store"
        answer["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
        return answer


async def _lines(wanted: AuditFilter, through: int) -> AsyncIterator[bytes]:
    """Format the entries up to `through`, a run of them per chunk."""
    after, run_of = 0, sync_to_async(audit_run)
    while run := await run_of(wanted=wanted, after=after, through=through):
        yield b"".join(msgspec.json.encode(document(entry)) + b"\n" for entry in run)
        after = run[-1].id
