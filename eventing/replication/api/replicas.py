"""/api/v1/replicas: this domain's replicas of other domains' rendezvous points; /api/v1/rps/{id}/replicas: who has one of ours."""

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
from eventing.rest.fields import Integer, Members, Text
from eventing.rest.requests import HistoryRequest
from eventing.rps.api import representations
from eventing.rps.models import DOMAIN_CHARS_MAX, RendezvousPoint
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get, replicas_page
from eventing.rps.services.permission import require

RP = OpenApiParameter(
    "reference", {"type": "string", "pattern": "^[a-z2-7]{26}$", "examples": [docs.ID_EXAMPLE]}, OpenApiParameter.PATH
)


class JoinRequest(Members):
    """A wish to hold a replica."""

    rp = Text(min_length=RP_ID_CHARS, max_length=RP_ID_CHARS, help_text="Id of the rendezvous point.")
    via = Text(
        required=False,
        allow_null=True,
        min_length=1,
        max_length=DOMAIN_CHARS_MAX,
        help_text="The peer to ask: the home, or any that has a replica. Absent: our peers, one after the other.",
    )
    lease_s = Integer(
        required=False,
        allow_null=True,
        help_text="How long each lease is to be; it is renewed until you leave. Absent or null: the domain's default.",
    )
    history = HistoryRequest(
        required=False, allow_null=True, help_text="What to keep here, if less than the home does; absent: as the home."
    )


class Invitation(Members):
    """Whom to invite."""

    peer = Text(min_length=1, max_length=DOMAIN_CHARS_MAX, help_text="The name of an active peer.")


class Replicas(View):
    """This domain's replicas."""

    @extend_schema(
        operation_id="replicas_list",
        summary="List this domain's replicas",
        description="Of other domains' rendezvous points: those that you may describe, by id. A page may be short and still have a next.",
        parameters=[docs.CURSOR, docs.LIMIT],
        responses={200: docs.ref("RendezvousPointPage")},
    )
    def get(self, request: Request) -> Response:
        """List."""
        page = replicas_page(principal=self.principal, cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, [representations.rendezvous_point(it.rp, it.log, whole=False) for it in page.items])

    @extend_schema(
        operation_id="replicas_join",
        summary="Join a rendezvous point of another domain",
        description="Its home decides by its policy (`replicate`); this domain reserves the history or refuses it whole. Joining "
        "again renews the lease.",
        request=JoinRequest,
        responses={201: docs.ref("RendezvousPoint")},
        examples=[
            OpenApiExample("Through its home", value={"rp": docs.ID_EXAMPLE, "via": "a.example"}, request_only=True)
        ],
    )
    def post(self, request: Request) -> Response:
        """Join."""
        return _answer(replica_join(principal=self.principal, **self.body(JoinRequest)), 201)


class Replica(View):
    """One replica of this domain's."""

    @extend_schema(
        operation_id="replicas_leave",
        summary="End a replica",
        description="Its history and the durable subscriptions here end with it; the rendezvous point goes on elsewhere. For "
        "administrators, and for who asked for it.",
        parameters=[RP],
        responses={204: None},
    )
    def delete(self, request: Request, reference: str) -> Response:
        """Leave."""
        replica_end(rp=reference, principal=self.principal)
        return Response(status=204)


class RendezvousPointReplicas(View):
    """The domains that participate in a rendezvous point."""

    @extend_schema(
        operation_id="rps_replicas_list",
        summary="List who participates in a rendezvous point",
        description="The home first, this domain among them, each with what it holds as far as is known here.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        responses={200: docs.ref("ParticipantList")},
    )
    def get(self, request: Request, reference: str) -> Response:
        """List."""
        row = rendezvous_point_get(reference)
        require(descriptor_of(row), self.principal, "describe")
        return Response({"items": replicas_shown(row)})

    @extend_schema(
        operation_id="rps_replicas_invite",
        summary="Invite a peer to hold a replica",
        description="Of a rendezvous point of this domain. The policy must allow the peer to `replicate`, and the peer must trust "
        "this domain to `host`. It has the replica when this answers.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        request=Invitation,
        responses={201: docs.ref("RendezvousPoint")},
        examples=[OpenApiExample("A peer", value={"peer": "b.example"}, request_only=True)],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Invite."""
        return _answer(replica_invite(reference=reference, principal=self.principal, **self.body(Invitation)), 201)


def _answer(row: RendezvousPoint, status: int) -> Response:
    document = representations.rendezvous_point(row, control.log_state(row.id))
    return Response(document, status=status, headers=etag(row.version))
