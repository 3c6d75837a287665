"""What operators do at one rendezvous point: pause and resume publishing, trim its history."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.events.cursors import CURSOR_CHARS_MAX
from eventing.log import control
from eventing.rest import documents as docs
from eventing.rest.base import View, etag
from eventing.rest.fields import Members, Text
from eventing.rps.api import representations
from eventing.rps.models import REASON_CHARS_MAX, RendezvousPoint
from eventing.rps.services.pausing import rendezvous_point_pause, rendezvous_point_resume
from eventing.rps.services.trimming import ALL, history_trim


class Pause(Members):
    """Why."""

    reason = Text(
        required=False,
        allow_blank=True,
        default="",
        max_length=REASON_CHARS_MAX,
        help_text="Publishers are told it with their refusal.",
    )


class Resumption(Members):
    """Nothing is to be said."""


@extend_schema_field({"type": "string", "pattern": f"^({ALL}|{docs.CURSOR_PATTERN})$"})
class Before(Text):
    """Up to where; the service reads it."""


class Trimming(Members):
    """What is to go, and why."""

    before = Before(
        min_length=1,
        max_length=CURSOR_CHARS_MAX,
        help_text=f"A cursor of the log's present epoch: what is up to it goes. Or {ALL}.",
    )
    reason = Text(required=False, allow_blank=True, default="", max_length=REASON_CHARS_MAX, help_text="For the audit.")


class RendezvousPointPause(View):
    """Pausing."""

    @extend_schema(
        operation_id="rps_pause",
        summary="Pause publishing",
        description="For who administers the rendezvous point. This domain takes no events there from its publishers (409 "
        "`paused`) until it is resumed; at a replica the others go on, and their events still come. Readers and "
        "subscriptions stay. Pausing again changes the reason.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.ETAG],
        request=Pause,
        responses={200: docs.ref("RendezvousPoint")},
        examples=[OpenApiExample("With the reason", value={"reason": "a publisher floods"}, request_only=True)],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Pause."""
        return _answer(rendezvous_point_pause(reference=reference, principal=self.principal, **self.body(Pause)))


class RendezvousPointResumption(View):
    """Resuming."""

    @extend_schema(
        operation_id="rps_resume",
        summary="Resume publishing",
        description="For who administers the rendezvous point. Resuming what is not paused changes nothing.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.ETAG],
        request=Resumption,
        responses={200: docs.ref("RendezvousPoint")},
        examples=[OpenApiExample("As it is", value={}, request_only=True)],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Resume."""
        self.body(Resumption)
        return _answer(rendezvous_point_resume(reference=reference, principal=self.principal))


class RendezvousPointTrim(View):
    """Trimming."""

    @extend_schema(
        operation_id="rps_trim",
        summary="Trim the history",
        description="For who administers the rendezvous point. What is before goes for good, in this domain; readers that "
        "are behind are told a gap. Where it is shared with other domains, what was not sent yet is sealed first.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        request=Trimming,
        responses={200: docs.ref("Trimmed")},
        examples=[
            OpenApiExample("Everything", value={"before": ALL, "reason": "published by mistake"}, request_only=True),
            OpenApiExample("Up to a cursor", value={"before": "f2h5ue7q:120"}, request_only=True),
        ],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Trim."""
        done = history_trim(reference=reference, principal=self.principal, **self.body(Trimming))
        return Response(
            {"removed": done.removed, "epoch": done.epoch, "first": done.first, "offset": done.next - 1},
        )


def _answer(row: RendezvousPoint) -> Response:
    return Response(representations.rendezvous_point(row, control.log_state(row.id)), headers=etag(row.version))
