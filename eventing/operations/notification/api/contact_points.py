"""/api/v1/contact-points: who is notified of alarms, by webhook or mail."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.operations.notification.rules.contact_points import (
    ADDRESSES_MAX,
    GROUP_S_DEFAULT,
    GROUP_S_MAX,
    GROUP_S_MIN,
    KINDS,
    NAME_CHARS_MAX,
    TARGET_CHARS_MAX,
)
from eventing.operations.notification.selectors import contact_point_answer, contact_points
from eventing.operations.notification.services.contact_points import (
    contact_point_change,
    contact_point_create,
    contact_point_delete,
)
from eventing.operations.notification.services.sending import contact_point_test
from eventing.operations.notification.shapes import (
    ContactPointAnswer,
    ContactPointCreatedAnswer,
    ContactPointPage,
    ContactPointTestedAnswer,
)
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import NothingSerializer, StrictBoolean, StrictInteger, StrictObject, StrictString
from eventing.rps.rules.watches import SEVERITIES

CONTACT_POINT = OpenApiParameter(
    "contact_point", {"type": "string", "maxLength": NAME_CHARS_MAX}, OpenApiParameter.PATH, description="Id or name."
)
SECRET_CHARS_MAX = 128


class _Stated(StrictObject):
    url = StrictString(
        required=False,
        max_length=TARGET_CHARS_MAX,
        help_text="Of a webhook: an https URL. Its query is not shown again.",
    )
    secret = StrictString(
        required=False,
        max_length=SECRET_CHARS_MAX,
        help_text="Of a webhook: the secret that signs, `whsec_` and Base64; without one it is made. Not shown again.",
    )
    to = serializers.ListField(
        child=StrictString(max_length=254),
        required=False,
        min_length=1,
        max_length=ADDRESSES_MAX,
        help_text="Of mail: addresses.",
    )
    severity = StrictString(
        required=False,
        max_length=16,
        help_text=f"Least severity that is notified, of {', '.join(SEVERITIES)}. Default: warning.",
    )
    resolved = StrictBoolean(
        required=False, help_text="Whether the end of notified alarms is notified, too. Default: true."
    )
    group_s = StrictInteger(
        required=False,
        min_value=GROUP_S_MIN,
        max_value=GROUP_S_MAX,
        help_text=f"Least seconds between two messages. Default: {GROUP_S_DEFAULT}.",
    )


class ContactPointCreationSerializer(_Stated):
    """A new contact point."""

    name = StrictString(max_length=NAME_CHARS_MAX)
    kind = StrictString(max_length=16, help_text=f"One of {', '.join(KINDS)}.")


class ContactPointChangeSerializer(_Stated):
    """A change of a contact point; members that are missing stay."""

    name = StrictString(required=False, max_length=NAME_CHARS_MAX)


class ContactPointsView(View):
    """The contact points."""

    @extend_schema(
        operation_id="contact_points_list",
        summary="List contact points",
        description="For administrators, operators and viewers. Secrets are not shown.",
        responses={200: ContactPointPage},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        return Response({"items": list(map(contact_point_answer, contact_points())), "next": None})

    @extend_schema(
        operation_id="contact_points_create",
        summary="Create a contact point",
        description="It is notified of the alarms that are open, and of those that are raised from now on, in one message each "
        "`group_s` at most. For administrators and operators. The answer has the `secret` with which a webhook verifies messages.",
        parameters=[docs.LOCATION],
        request=ContactPointCreationSerializer,
        responses={201: ContactPointCreatedAnswer},
        examples=[
            OpenApiExample(
                "A webhook",
                value={"name": "on call", "kind": "webhook", "url": "https://hooks.example.org/herald"},
                request_only=True,
            ),
            OpenApiExample(
                "Mail, what is critical",
                value={"name": "operators", "kind": "mail", "to": ["ops@example.org"], "severity": "critical"},
                request_only=True,
            ),
        ],
    )
    def post(self, request: Request) -> Response:
        """Create."""
        body: dict[str, Any] = self.body(ContactPointCreationSerializer)
        row, secret = contact_point_create(principal=self.principal, **body)
        headers = {"Location": f"/api/v1/contact-points/{row.id}", "Cache-Control": "no-store"}
        answer = ContactPointCreatedAnswer.of(row, target=row.shown, secret=secret)
        return Response(answer, status=201, headers=headers)


class ContactPointView(View):
    """One contact point."""

    http_method_names = ["patch", "delete"]

    @extend_schema(
        operation_id="contact_points_change",
        summary="Change a contact point",
        description="All but its kind. For administrators and operators.",
        parameters=[CONTACT_POINT],
        request=ContactPointChangeSerializer,
        responses={200: ContactPointAnswer},
        examples=[OpenApiExample("Only what is critical", value={"severity": "critical"}, request_only=True)],
    )
    def patch(self, request: Request, contact_point: str) -> Response:
        """Change."""
        changes = self.body(ContactPointChangeSerializer)
        row = contact_point_change(contact_point=contact_point, principal=self.principal, changes=changes)
        return Response(contact_point_answer(row))

    @extend_schema(
        operation_id="contact_points_delete",
        summary="Delete a contact point",
        description="For administrators and operators.",
        parameters=[CONTACT_POINT],
        responses={204: None},
    )
    def delete(self, request: Request, contact_point: str) -> Response:
        """Delete."""
        contact_point_delete(contact_point=contact_point, principal=self.principal)
        return Response(status=204)


class ContactPointTestsView(View):
    """Test of a contact point."""

    @extend_schema(
        operation_id="contact_points_test",
        summary="Send a test to a contact point",
        description="Sends a message at once, and answers what came of it. For administrators and operators.",
        parameters=[CONTACT_POINT],
        request=NothingSerializer,
        responses={200: ContactPointTestedAnswer},
        examples=[OpenApiExample("Nothing", value={}, request_only=True)],
    )
    def post(self, request: Request, contact_point: str) -> Response:
        """Send."""
        self.body(NothingSerializer)
        return Response(contact_point_test(contact_point=contact_point, principal=self.principal))
