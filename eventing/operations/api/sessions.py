"""/api/v1/sessions: live connections over all gateways, and disconnecting them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.access.rules.tokens import IDENTITY_CHARS_MAX
from eventing.core.errors import InvalidRequest
from eventing.core.names import NAME_CHARS_MAX
from eventing.core.principals import Principal
from eventing.core.timestamps import timestamp_of
from eventing.operations.rules.session_listing import LIMIT_MAX, SORTS, Row
from eventing.operations.selectors.sessions import sessions_page
from eventing.operations.services.sessions import Disconnected, session_disconnect, sessions_disconnect
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import Members, Text, Truth
from eventing.rps.models import REASON_CHARS_MAX
from eventing.rps.selectors.descriptors import descriptor_get

PRINCIPAL = OpenApiParameter("principal", str, description="Only those of this identity.")
RP = OpenApiParameter("rp", str, description="Only those that read this rendezvous point, by id or name.")
SORT = OpenApiParameter(
    "sort", str, enum=list(SORTS), description="`lag`: slowest first; `since`: oldest first; else by id."
)
RETRY = OpenApiParameter(
    "retry", str, enum=["true", "false"], description="Whether its client is told to connect again. Default: false."
)
SESSION_ID = OpenApiParameter("session_id", {"type": "string", "maxLength": 64}, OpenApiParameter.PATH)


class Disconnection(Members):
    """Whom to disconnect: a principal, or who reads a rendezvous point."""

    principal = Text(required=False, min_length=1, max_length=IDENTITY_CHARS_MAX, help_text="All of this identity.")
    rp = Text(required=False, min_length=1, max_length=NAME_CHARS_MAX, help_text="All that read this one.")
    retry = Truth(required=False, default=False, help_text="Whether the clients are told to connect again.")
    reason = Text(required=False, allow_blank=True, default="", max_length=REASON_CHARS_MAX, help_text="For the audit.")


class Sessions(View):
    """The live sessions."""

    @extend_schema(
        operation_id="sessions_list",
        summary="List live sessions",
        description="Of all gateways, as they are now; for administrators, operators and viewers. Only administrators see "
        f"`address`. At most {LIMIT_MAX} a page. `gateways` says how many were asked, and answered within a second: where "
        "that is fewer, sessions are missing.",
        parameters=[PRINCIPAL, RP, SORT, docs.CURSOR, docs.LIMIT],
        responses={200: docs.ref("SessionPage")},
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
        return Response(
            {
                "items": [representation(row, self.principal) for row in page.items],
                "next": page.next,
                "matching": page.matching,
                "gateways": {"asked": page.asked, "answered": page.answered},
            }
        )


class Session(View):
    """One live session."""

    @extend_schema(
        operation_id="sessions_disconnect_one",
        summary="Disconnect a session",
        description="For administrators and operators. With `retry=true` the client is told to connect again (close code "
        "4002), else not to (4105); it is not kept from coming back.",
        parameters=[SESSION_ID, RETRY],
        responses={200: docs.ref("Disconnected")},
    )
    def delete(self, request: Request, session_id: str) -> Response:
        """Disconnect."""
        retry = self.query("retry") or "false"
        if retry not in ("true", "false"):
            raise InvalidRequest("retry is true or false.")
        done = session_disconnect(principal=self.principal, session=session_id, retry=retry == "true")
        return Response(disconnected(done))


class SessionDisconnections(View):
    """Disconnections of many."""

    @extend_schema(
        operation_id="sessions_disconnect",
        summary="Disconnect the sessions of a principal, or of a rendezvous point",
        description="For administrators and operators; a principal or an rp, one of them. Repeating it is harmless.",
        request=Disconnection,
        responses={200: docs.ref("Disconnected")},
        examples=[
            OpenApiExample("A flooding client", value={"principal": "ann", "reason": "floods"}, request_only=True),
            OpenApiExample(
                "Readers shall spread anew", value={"rp": docs.ID_EXAMPLE, "retry": True}, request_only=True
            ),
        ],
    )
    def post(self, request: Request) -> Response:
        """Disconnect."""
        body = self.body(Disconnection)
        body["subject"] = body.pop("principal", None)
        return Response(disconnected(sessions_disconnect(principal=self.principal, **body)))


def representation(row: Row, principal: Principal) -> dict[str, Any]:
    """A session in answers; where it comes from is for administrators."""
    shown = {
        "id": row.id,
        "gateway": row.gateway,
        "principal": row.principal or None,
        "issuer": row.issuer or None,
        "kind": row.kind,
        "rps": row.rps,
        "readings": row.readings,
        "since": timestamp_of(row.since),
        "state": row.state,
        "lag": row.lag,
        "waiting_bytes": row.waiting_bytes,
    }
    return {**shown, "address": row.address or None} if principal.admin and not principal.narrowed else shown


def disconnected(done: Disconnected) -> dict[str, Any]:
    """What a disconnection is answered."""
    gateways = {"asked": done.asked, "answered": done.answered}
    return {"disconnected": done.sessions, "retry": done.retry, "gateways": gateways}
