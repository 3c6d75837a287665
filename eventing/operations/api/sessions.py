"""/api/v1/sessions: live sessions of all gateways, and their disconnection."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from msgspec import UNSET
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.core.errors import InvalidRequest
from eventing.core.names import NAME_CHARS_MAX
from eventing.operations.rules.session_listing import LIMIT_MAX, SORTS
from eventing.operations.selectors.sessions import sessions_page
from eventing.operations.services.sessions import session_disconnect, sessions_disconnect
from eventing.operations.shapes import DisconnectedAnswer, SessionPage
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import StrictBoolean, StrictObject, StrictString
from eventing.rps.models import REASON_CHARS_MAX
from eventing.rps.selectors.descriptors import descriptor_get

PRINCIPAL = OpenApiParameter("principal", str, description="Only sessions of this identity.")
RP = OpenApiParameter("rp", str, description="Only sessions that read this rendezvous point, by id or name.")
SORT = OpenApiParameter(
    "sort", str, enum=list(SORTS), description="`lag`: slowest first; `since`: oldest first; else by id."
)
RETRY = OpenApiParameter(
    "retry", str, enum=["true", "false"], description="Whether the client is asked to connect again. Default: false."
)
REASON = OpenApiParameter(
    "reason", {"type": "string", "maxLength": REASON_CHARS_MAX}, description="Reason, for the audit."
)
SESSION_ID = OpenApiParameter("session_id", {"type": "string", "maxLength": 64}, OpenApiParameter.PATH)


class DisconnectionSerializer(StrictObject):
    """The sessions to disconnect: of a principal, or of the readers of a rendezvous point."""

    principal = StrictString(
        required=False, min_length=1, max_length=IDENTITY_CHARS_MAX, help_text="All sessions of this identity."
    )
    rp = StrictString(
        required=False,
        min_length=1,
        max_length=NAME_CHARS_MAX,
        help_text="All sessions that read this rendezvous point.",
    )
    retry = StrictBoolean(required=False, default=False, help_text="Whether the clients are asked to connect again.")
    reason = StrictString(
        required=False, allow_blank=True, default="", max_length=REASON_CHARS_MAX, help_text="Reason, for the audit."
    )


class SessionsView(View):
    """List of live sessions."""

    @extend_schema(
        operation_id="sessions_list",
        summary="List live sessions",
        description="The present sessions of all gateways; for administrators, operators and viewers. Only "
        f"administrators see `address`. At most {LIMIT_MAX} a page. `gateways` states how many gateways were "
        "asked, and how many answered within a second: if that is fewer, sessions are missing.",
        parameters=[PRINCIPAL, RP, SORT, docs.CURSOR, docs.LIMIT],
        responses={200: SessionPage},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        rp = self.query("rp")
        page = sessions_page(
            principal=self.query("principal") or "",
            rp=descriptor_get(rp).id if rp else "",
            sort=self.query("sort") or "id",
            cursor=self.query("cursor"),
            limit=self.limit(),
        )
        if not self.principal.admin or self.principal.narrowed:
            for item in page.items:
                item.address = UNSET  # addresses are for administrators
        return Response(page)


class SessionView(View):
    """One live session."""

    @extend_schema(
        operation_id="sessions_disconnect_one",
        summary="Disconnect a session",
        description="For administrators and operators. With `retry=true` the client is asked to connect again (close "
        "code 4002), else not to (4105); a new connection is not prevented.",
        parameters=[SESSION_ID, RETRY, REASON],
        responses={200: DisconnectedAnswer},
    )
    def delete(self, request: Request, session_id: str) -> Response:
        """Disconnect."""
        retry = self.query("retry") or "false"
        if retry not in ("true", "false"):
            raise InvalidRequest("retry must be true or false.")
        reason = self.query("reason") or ""
        if "\0" in reason:
            raise InvalidRequest("reason has no NUL.")
        done = session_disconnect(principal=self.principal, session=session_id, retry=retry == "true", reason=reason)
        return Response(done)


class SessionDisconnectionsView(View):
    """Disconnection of many sessions."""

    @extend_schema(
        operation_id="sessions_disconnect",
        summary="Disconnect the sessions of a principal, or of a rendezvous point",
        description="For administrators and operators. Give either a principal or an rp. The request can be repeated "
        "safely.",
        request=DisconnectionSerializer,
        responses={200: DisconnectedAnswer},
        examples=[
            OpenApiExample("A flooding client", value={"principal": "ann", "reason": "floods"}, request_only=True),
            OpenApiExample("Redistribute readers", value={"rp": docs.ID_EXAMPLE, "retry": True}, request_only=True),
        ],
    )
    def post(self, request: Request) -> Response:
        """Disconnect."""
        body = self.body(DisconnectionSerializer)
        body["subject"] = body.pop("principal", None)
        return Response(sessions_disconnect(principal=self.principal, **body))
