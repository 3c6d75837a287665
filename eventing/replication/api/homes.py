"""/api/v1/rps/{id}/move and succession: the home of a rendezvous point, and who elects its successor."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.log import control
from eventing.replication.homes.moving import rp_move
from eventing.replication.homes.planning import succession_plan_set
from eventing.rest import documents as docs
from eventing.rest.base import View, etag
from eventing.rest.fields import StrictInteger, StrictObject, StrictString
from eventing.rps.api import representations
from eventing.rps.models import DOMAIN_CHARS_MAX
from eventing.rps.rules.home_terms import ELECTORS_MAX, ELECTORS_MIN, SILENCE_S_MAX, SILENCE_S_MIN
from eventing.rps.shapes import RendezvousPointAnswer

SILENCE_S_DEFAULT = 300  # longer than an upgrade and a restart take


class MoveSerializer(StrictObject):
    """A planned move."""

    domain = StrictString(min_length=1, max_length=DOMAIN_CHARS_MAX, help_text="The next home, a participant.")


class SuccessionSerializer(StrictObject):
    """A succession plan."""

    electors = serializers.ListField(
        child=StrictString(min_length=1, max_length=DOMAIN_CHARS_MAX),
        max_length=ELECTORS_MAX,
        help_text=f"Participants, in the order in which they succeed: {ELECTORS_MIN} to {ELECTORS_MAX}; none: off.",
    )
    silence_s = StrictInteger(
        required=False,
        min_value=SILENCE_S_MIN,
        max_value=SILENCE_S_MAX,
        default=SILENCE_S_DEFAULT,
        help_text="Seconds of silence of the home after which they elect one of them.",
    )


class RendezvousPointMoveView(View):
    """Move of a rendezvous point's home."""

    @extend_schema(
        operation_id="rps_move",
        summary="Move the home of a rendezvous point to another domain",
        description="For administrators of the home, and the creator. The next home must hold a replica and trust this "
        "domain with `host`. This domain keeps a replica; the id, its readers and publishers stay. When the request is "
        "answered, this domain is the home no more.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        request=MoveSerializer,
        responses={200: RendezvousPointAnswer},
        examples=[OpenApiExample("To a peer", value={"domain": "b.example"}, request_only=True)],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Move."""
        row = rp_move(reference=reference, principal=self.principal, **self.body(MoveSerializer))
        document = representations.rendezvous_point(row, control.log_state(row.id))
        return Response(document, headers=etag(row.entity_tag))


class RendezvousPointSuccessionView(View):
    """Succession plan of a rendezvous point."""

    @extend_schema(
        operation_id="rps_succession_set",
        summary="Set who succeeds a silent home",
        description="For administrators of the home, and the creator. The majority of the electors elects one of them when "
        "the home is silent for them; a change needs the consent of the majority of the electors before it.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        request=SuccessionSerializer,
        responses={200: RendezvousPointAnswer},
        examples=[
            OpenApiExample("Two", value={"electors": ["b.example", "c.example"], "silence_s": 60}, request_only=True)
        ],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Set."""
        body = self.body(SuccessionSerializer)
        row = succession_plan_set(reference=reference, principal=self.principal, **body)
        document = representations.rendezvous_point(row, control.log_state(row.id))
        return Response(document, headers=etag(row.entity_tag))
