"""/api/v1/replicas: this domain's replicas of other domains' rendezvous points; /api/v1/rps/{id}/replicas: the
participants of an RP.
"""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.ids import RP_ID_CHARS
from eventing.log import control
from eventing.replication.joining.client import replica_end, replica_invite, replica_join
from eventing.replication.joining.presenters import replicas_shown
from eventing.rest import documents as docs
from eventing.rest.base import View, etag, page_answer
from eventing.rest.fields import HistoryRequestSerializer, StrictInteger, StrictObject, StrictString
from eventing.rps.api import representations
from eventing.rps.models import DOMAIN_CHARS_MAX, RendezvousPoint
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get, replicas_page
from eventing.rps.services.permission import require
from eventing.rps.shapes import ParticipantList, RendezvousPointAnswer, RendezvousPointPage

RP = OpenApiParameter(
    "reference", {"type": "string", "pattern": "^[a-z2-7]{26}$", "examples": [docs.ID_EXAMPLE]}, OpenApiParameter.PATH
)


class JoinRequestSerializer(StrictObject):
    """A request for a replica."""

    rp = StrictString(min_length=RP_ID_CHARS, max_length=RP_ID_CHARS, help_text="Id of the rendezvous point.")
    via = StrictString(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=DOMAIN_CHARS_MAX,
        help_text="The peer to ask: the home, or any peer with a replica. Absent: all peers, one after the other.",
    )
    lease_s = StrictInteger(
        required=False,
        allow_null=True,
        help_text="Length of each lease, which is renewed until the replica is ended. Absent or null: the domain's "
        "default.",
    )
    history = HistoryRequestSerializer(
        required=False, allow_null=True, help_text="History to keep here, if less than the home's; absent: the home's."
    )


class InvitationSerializer(StrictObject):
    """An invitation of a peer."""

    peer = StrictString(min_length=1, max_length=DOMAIN_CHARS_MAX, help_text="The name of an active peer.")


class ReplicasView(View):
    """List of this domain's replicas."""

    @extend_schema(
        operation_id="replicas_list",
        summary="List this domain's replicas",
        description="Replicas of other domains' rendezvous points that the caller may describe, by id. A short page "
        "may still have a `next`.",
        parameters=[docs.CURSOR, docs.LIMIT],
        responses={200: RendezvousPointPage},
    )
    def get(self, request: Request) -> Response:
        """List."""
        page = replicas_page(principal=self.principal, cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, [representations.rendezvous_point(it.rp, it.log, whole=False) for it in page.items])

    @extend_schema(
        operation_id="replicas_join",
        summary="Join a rendezvous point of another domain",
        description="The home decides by its policy (`replicate`); this domain reserves the history or refuses the "
        "whole request. Joining again renews the lease.",
        request=JoinRequestSerializer,
        responses={201: RendezvousPointAnswer},
        examples=[
            OpenApiExample("Through its home", value={"rp": docs.ID_EXAMPLE, "via": "a.example"}, request_only=True)
        ],
    )
    def post(self, request: Request) -> Response:
        """Join."""
        return _answer(replica_join(principal=self.principal, **self.body(JoinRequestSerializer)), 201)


class ReplicaView(View):
    """One replica of this domain."""

    @extend_schema(
        operation_id="replicas_leave",
        summary="End a replica",
        description="Deletes the replica's history and its durable subscriptions in this domain; the rendezvous point "
        "continues elsewhere. For administrators and the principal that requested the replica.",
        parameters=[RP],
        responses={204: None},
    )
    def delete(self, request: Request, reference: str) -> Response:
        """Leave."""
        replica_end(rp=reference, principal=self.principal)
        return Response(status=204)


class RendezvousPointReplicasView(View):
    """Participants of a rendezvous point."""

    @extend_schema(
        operation_id="rps_replicas_list",
        summary="List the participants of a rendezvous point",
        description="The home first, this domain included, each with its version vector as far as known here.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        responses={200: ParticipantList},
    )
    def get(self, request: Request, reference: str) -> Response:
        """List."""
        row = rendezvous_point_get(reference)
        require(descriptor_of(row), self.principal, "describe")
        return Response(ParticipantList(items=replicas_shown(row)))

    @extend_schema(
        operation_id="rps_replicas_invite",
        summary="Invite a peer to hold a replica",
        description="For rendezvous points of this domain. The policy must allow the peer to `replicate`, and the "
        "peer must trust this domain with `host`. The peer has the replica when the request is answered.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        request=InvitationSerializer,
        responses={201: RendezvousPointAnswer},
        examples=[OpenApiExample("A peer", value={"peer": "b.example"}, request_only=True)],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Invite."""
        return _answer(
            replica_invite(reference=reference, principal=self.principal, **self.body(InvitationSerializer)), 201
        )


def _answer(row: RendezvousPoint, status: int) -> Response:
    document = representations.rendezvous_point(row, control.log_state(row.id))
    return Response(document, status=status, headers=etag(row.entity_tag))
