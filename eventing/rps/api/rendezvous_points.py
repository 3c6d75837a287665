"""/api/v1/rps: rendezvous points."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core import names
from eventing.core.ids import is_admin
from eventing.log import control
from eventing.rest import documents as docs
from eventing.rest.base import View, etag, page_answer
from eventing.rest.fields import LeaseRequestSerializer
from eventing.rest.idempotency import created_once
from eventing.rest.idempotency_records import IdempotencyClaim
from eventing.rest.shapes import RenewalAnswer
from eventing.rps.api import representations
from eventing.rps.api.requests import RendezvousPointChangeSerializer, RendezvousPointCreationSerializer
from eventing.rps.models import REASON_CHARS_MAX
from eventing.rps.ports import discovery_field
from eventing.rps.selectors.descriptors import descriptor_get, descriptor_of
from eventing.rps.selectors.rendezvous_point_lists import rendezvous_points_listed_by
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get, rendezvous_points_page
from eventing.rps.services.permission import require
from eventing.rps.services.rendezvous_points import (
    rendezvous_point_create,
    rendezvous_point_delete,
    rendezvous_point_renew,
    rendezvous_point_update,
)
from eventing.rps.shapes import RendezvousPointAnswer, RendezvousPointPage

REASON = OpenApiParameter(
    "reason", {"type": "string", "maxLength": REASON_CHARS_MAX}, description="Recorded in the audit."
)


class RendezvousPointsView(View):
    """The domain's rendezvous points."""

    @extend_schema(
        operation_id="rps_list",
        summary="List rendezvous points",
        description="Rendezvous points that you may describe, newest first; with `prefix`, those of the subtree by name; or in the order of `sort`. A page may be short, even empty, and still have a next.",
        parameters=[docs.CURSOR, docs.LIMIT, docs.PREFIX, docs.SORT, docs.Q],
        responses={200: RendezvousPointPage},
    )
    def get(self, request: Request) -> Response:
        """List RPs."""
        asked: dict[str, Any] = {
            "principal": self.principal,
            "cursor": self.query("cursor"),
            "limit": self.limit(),
            "prefix": self.query("prefix"),
        }
        sort, text = self.query("sort"), self.query("q")
        if sort is None and not text:
            page = rendezvous_points_page(**asked)
        else:
            page = rendezvous_points_listed_by(**asked, sort=sort or "created", text=text or "")
        return page_answer(page, [representations.rendezvous_point(it.rp, it.log, whole=False) for it in page.items])

    @extend_schema(
        operation_id="rps_create",
        summary="Create a rendezvous point",
        description="The requesting principal becomes the creator and administers the RP. It is admitted completely against the domain's quota, or refused.",
        parameters=[docs.IDEMPOTENCY_KEY, docs.ETAG, docs.LOCATION],
        request=RendezvousPointCreationSerializer,
        responses={201: RendezvousPointAnswer},
        examples=[
            OpenApiExample(
                "A day of one sensor",
                value={
                    "name": "sensors/roof",
                    "title": "Weather on the roof",
                    "lease_s": 3600,
                    "history": {"max_events": 1440, "max_age_s": 86400},
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Create an RP."""
        body = self.body(RendezvousPointCreationSerializer)

        def create(claim: IdempotencyClaim | None) -> str:
            return rendezvous_point_create(principal=self.principal, claim=claim, **body).id

        return created_once(self, create, _created)


class RendezvousPointView(View):
    """One rendezvous point, by id or name."""

    open_methods = ("GET", "HEAD")

    @extend_schema(
        operation_id="rps_get",
        summary="Describe a rendezvous point",
        description="Also for administrative ones (`ID.admin`, `domain.admin`). `ETag` changes with the version, and with `audience` and `watch`. `Link` names the WebSub hub and the topic.",
        parameters=[docs.REFERENCE, docs.ETAG],
        responses={200: RendezvousPointAnswer},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Describe the RP."""
        if names.is_id(reference) and is_admin(reference):
            descriptor = descriptor_get(reference)
            require(descriptor, self.principal, "describe")
            shown = representations.administrative_rp(descriptor, control.log_state(descriptor.id))
            return Response(shown, headers=_headers(descriptor.id, descriptor.version))
        row = rendezvous_point_get(reference)
        require(descriptor_of(row), self.principal, "describe")
        document = representations.rendezvous_point(row, control.log_state(row.id))
        return Response(document, headers=_headers(row.id, row.entity_tag))

    @extend_schema(
        operation_id="rps_change",
        summary="Change a rendezvous point",
        description='Absent members stay. With `If-Match`, only if the RP has one of these entity tags; a version alone, `"3"`, disregards `audience` and `watch`.',
        parameters=[docs.REFERENCE, docs.IF_MATCH, docs.ETAG],
        request=RendezvousPointChangeSerializer,
        responses={200: RendezvousPointAnswer},
        examples=[OpenApiExample("Keep less", value={"history": {"max_events": 100}}, request_only=True)],
    )
    def patch(self, request: Request, reference: str) -> Response:
        """Change the RP."""
        row = rendezvous_point_update(
            reference=reference,
            principal=self.principal,
            changes=self.body(RendezvousPointChangeSerializer),
            tags=self.expected_tags(),
        )
        return Response(representations.rendezvous_point(row, control.log_state(row.id)), headers=etag(row.entity_tag))

    @extend_schema(
        operation_id="rps_delete",
        summary="Delete a rendezvous point",
        description="Its history and its subscriptions are deleted with it.",
        parameters=[docs.REFERENCE, docs.IF_MATCH, REASON],
        responses={204: None},
    )
    def delete(self, request: Request, reference: str) -> Response:
        """Delete the RP."""
        rendezvous_point_delete(
            reference=reference,
            principal=self.principal,
            tags=self.expected_tags(),
            reason=self.query("reason") or "",
        )
        return Response(status=204)


class RendezvousPointRenewalView(View):
    """Lease of a rendezvous point."""

    @extend_schema(
        operation_id="rps_renew",
        summary="Renew a rendezvous point's lease",
        description="The new lease counts from now and never ends earlier than the running one.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        request=LeaseRequestSerializer,
        responses={200: RenewalAnswer},
        examples=[OpenApiExample("An hour more", value={"lease_s": 3600}, request_only=True)],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Renew the lease."""
        body = self.body(LeaseRequestSerializer)
        return Response(
            RenewalAnswer(lease=rendezvous_point_renew(reference=reference, principal=self.principal, **body))
        )


def _created(rp: str) -> Response:
    row = rendezvous_point_get(rp)
    headers = {**etag(row.entity_tag), "Location": representations.rp_path(rp)}
    return Response(representations.rendezvous_point(row, control.log_state(rp)), status=201, headers=headers)


def _headers(rp: str, tag: int | str) -> dict[str, str]:
    """Make the headers of an RP's answer: its entity tag, and where its WebSub hub is."""
    link = discovery_field(rp)
    return {**etag(tag), "Link": link} if link else etag(tag)
