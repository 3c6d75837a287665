"""Operators' acts at one rendezvous point: pausing and resuming publishing, trimming the history."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.events.cursors import CURSOR_CHARS_MAX
from eventing.log import control
from eventing.rest import documents as docs
from eventing.rest.base import View, etag
from eventing.rest.fields import StrictObject, StrictString
from eventing.rps.api import representations
from eventing.rps.models import REASON_CHARS_MAX, RendezvousPoint
from eventing.rps.services.pausing import rendezvous_point_pause, rendezvous_point_resume
from eventing.rps.services.trimming import ALL, history_trim
from eventing.rps.shapes import RendezvousPointAnswer, TrimmedAnswer


class PauseSerializer(StrictObject):
    """Request of a pause."""

    reason = StrictString(
        required=False,
        allow_blank=True,
        default="",
        max_length=REASON_CHARS_MAX,
        help_text="Explanation, included in refusals to publishers.",
    )


class ResumptionSerializer(StrictObject):
    """Request without members."""


@extend_schema_field({"type": "string", "pattern": f"^({ALL}|{docs.CURSOR_PATTERN})$"})
class Before(StrictString):
    """End of the range to trim, parsed by the service."""


class TrimmingSerializer(StrictObject):
    """Request of a trim."""

    before = Before(
        min_length=1,
        max_length=CURSOR_CHARS_MAX,
        help_text=f"A cursor of the log's present epoch: events up to it are removed. Or {ALL}.",
    )
    reason = StrictString(
        required=False,
        allow_blank=True,
        default="",
        max_length=REASON_CHARS_MAX,
        help_text="Explanation for the audit.",
    )


class RendezvousPointPauseView(View):
    """Pausing of publishing."""

    @extend_schema(
        operation_id="rps_pause",
        summary="Pause publishing",
        description=(
            "Requires `administer`. This domain refuses publishes at the rendezvous point (409 `paused`) until "
            "it is resumed; at a replica other domains continue, and their events still arrive. Readers and "
            "subscriptions stay. Pausing again changes the reason."
        ),
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.ETAG],
        request=PauseSerializer,
        responses={200: RendezvousPointAnswer},
        examples=[OpenApiExample("With the reason", value={"reason": "a publisher floods"}, request_only=True)],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Pause."""
        return _answer(
            rendezvous_point_pause(reference=reference, principal=self.principal, **self.body(PauseSerializer))
        )


class RendezvousPointResumptionView(View):
    """Resuming of publishing."""

    @extend_schema(
        operation_id="rps_resume",
        summary="Resume publishing",
        description="Requires `administer`. Resuming an RP that is not paused changes nothing.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.ETAG],
        request=ResumptionSerializer,
        responses={200: RendezvousPointAnswer},
        examples=[OpenApiExample("As it is", value={}, request_only=True)],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Resume."""
        self.body(ResumptionSerializer)
        return _answer(rendezvous_point_resume(reference=reference, principal=self.principal))


class RendezvousPointTrimView(View):
    """Trimming of the history."""

    @extend_schema(
        operation_id="rps_trim",
        summary="Trim the history",
        description="Requires `administer`. Trimmed events are deleted permanently in this domain. Readers that have not received them get a gap notification. Events that were not yet sent to other domains are sealed first.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        request=TrimmingSerializer,
        responses={200: TrimmedAnswer},
        examples=[
            OpenApiExample("Everything", value={"before": ALL, "reason": "published by mistake"}, request_only=True),
            OpenApiExample("Up to a cursor", value={"before": "f2h5ue7q:120"}, request_only=True),
        ],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Trim."""
        done = history_trim(reference=reference, principal=self.principal, **self.body(TrimmingSerializer))
        return Response(TrimmedAnswer.of(done, offset=done.next - 1))


def _answer(row: RendezvousPoint) -> Response:
    return Response(representations.rendezvous_point(row, control.log_state(row.id)), headers=etag(row.entity_tag))
