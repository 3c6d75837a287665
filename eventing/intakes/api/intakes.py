"""/api/v1/rps/{id}/intakes and /api/v1/intakes: addresses for other systems' webhooks. What they receive is published by
eventing/gateway/endpoints/intake.py.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from msgspec.structs import asdict
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.roles import reads_only
from eventing.intakes.api.requests import IntakeChangeSerializer, IntakeCreationSerializer
from eventing.intakes.selectors.intakes import intake_answer, intake_answers, intake_get, intakes_page
from eventing.intakes.services.intakes import intake_create, intake_delete, intake_renew, intake_update
from eventing.intakes.shapes import IntakeAnswer, IntakeCreatedAnswer, IntakePage
from eventing.rest import documents as docs
from eventing.rest.base import View, etag, page_answer
from eventing.rest.fields import LeaseRequestSerializer
from eventing.rest.shapes import RenewalAnswer
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require

INTAKE_ID = OpenApiParameter("intake_id", {"type": "string", "pattern": "^in_[a-z2-7]{26}$"}, OpenApiParameter.PATH)


class _IntakeView(View):
    def require_administered(self, reference: str) -> str:
        """Return the RP's id if the caller administers it, or may see all of the domain. Raises NotFound, Gone, Forbidden."""
        descriptor = descriptor_get(reference)
        if not (reads_only(self.principal) and self.principal.permits("describe", descriptor.id, descriptor.name)):
            require(descriptor, self.principal, "administer")
        return descriptor.id


class RendezvousPointIntakesView(_IntakeView):
    """The intakes of a rendezvous point."""

    @extend_schema(
        operation_id="rps_intakes_list",
        summary="List intakes",
        description="With the operation `administer` at the rendezvous point. Addresses and secrets are not shown.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.CURSOR, docs.LIMIT],
        responses={200: IntakePage},
    )
    def get(self, request: Request, reference: str) -> Response:
        """List."""
        page = intakes_page(rp=self.require_administered(reference), cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, intake_answers(page.items))

    @extend_schema(
        operation_id="rps_intakes_create",
        summary="Create an intake",
        description="Makes an address, `url`, at which another system's webhooks become events here. It is shown only in this "
        "answer. Requires the operation `administer`, and a token of this domain.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.ETAG, docs.LOCATION],
        request=IntakeCreationSerializer,
        responses={201: IntakeCreatedAnswer},
        examples=[
            OpenApiExample(
                "Webhooks of GitHub",
                value={"format": "github", "secret": "f3b1c29d7a0e4c5d8e6f", "title": "releases"},
                request_only=True,
            ),
            OpenApiExample("Any JSON", value={"lease_s": 604800}, request_only=True),
        ],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Create."""
        body: dict[str, Any] = self.body(IntakeCreationSerializer)
        body["kind"] = body.pop("format", "plain")
        row, url = intake_create(reference=reference, principal=self.principal, **body)
        headers = {**etag(row.version), "Location": f"/api/v1/intakes/{row.id}", "Cache-Control": "no-store"}
        return Response(IntakeCreatedAnswer(**asdict(intake_answer(row)), url=url), status=201, headers=headers)


class IntakeView(_IntakeView):
    """One intake."""

    @extend_schema(
        operation_id="intakes_get",
        summary="Describe an intake",
        description="With the operation `administer` at its rendezvous point. `ETag` is the version.",
        parameters=[INTAKE_ID, docs.ETAG],
        responses={200: IntakeAnswer},
    )
    def get(self, request: Request, intake_id: str) -> Response:
        """Describe."""
        row = intake_get(intake_id)
        self.require_administered(row.rp_id)
        return Response(intake_answer(row), headers=etag(row.version))

    @extend_schema(
        operation_id="intakes_change",
        summary="Change an intake",
        description="A new `secret` is valid at once; the one before is accepted for a day more, so that the sender can be "
        "changed in between.",
        parameters=[INTAKE_ID, docs.IF_MATCH, docs.ETAG],
        request=IntakeChangeSerializer,
        responses={200: IntakeAnswer},
        examples=[OpenApiExample("Another title", value={"title": "build server"}, request_only=True)],
    )
    def patch(self, request: Request, intake_id: str) -> Response:
        """Change."""
        row = intake_update(
            intake_id=intake_id,
            principal=self.principal,
            changes=self.body(IntakeChangeSerializer),
            versions=self.expected_versions(),
        )
        return Response(intake_answer(row), headers=etag(row.version))

    @extend_schema(
        operation_id="intakes_delete",
        summary="End an intake",
        description="Its address receives nothing any more.",
        parameters=[INTAKE_ID, docs.IF_MATCH],
        responses={204: None},
    )
    def delete(self, request: Request, intake_id: str) -> Response:
        """End."""
        intake_delete(intake_id=intake_id, principal=self.principal, versions=self.expected_versions())
        return Response(status=204)


class IntakeRenewalView(View):
    """The lease of an intake."""

    @extend_schema(
        operation_id="intakes_renew",
        summary="Renew an intake's lease",
        description="The lease counts from now and never ends earlier than before. Use renews it, too.",
        parameters=[INTAKE_ID],
        request=LeaseRequestSerializer,
        responses={200: RenewalAnswer},
        examples=[OpenApiExample("One month", value={"lease_s": 2592000}, request_only=True)],
    )
    def post(self, request: Request, intake_id: str) -> Response:
        """Renew."""
        body = self.body(LeaseRequestSerializer)
        return Response(RenewalAnswer(lease=intake_renew(intake_id=intake_id, principal=self.principal, **body)))
