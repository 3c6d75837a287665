"""What operators do about a peer, besides deciding about it (peers.py): they keep it."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.peering.api.peers import NAME, representation
from eventing.peering.services.peer_operating import peer_renew
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import Members


class Nothing(Members):
    """Nothing is to be said."""


class PeerRenewal(View):
    """The lease of a peer."""

    @extend_schema(
        operation_id="peers_renew",
        summary="Renew a peer's lease",
        description="For administrators and operators. It counts from now, as after contact; a peer that stays silent is "
        "forgotten that much later.",
        parameters=[NAME],
        request=Nothing,
        responses={200: docs.ref("Peer")},
        examples=[OpenApiExample("As it is", value={}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Renew."""
        self.body(Nothing)
        return Response(representation(peer_renew(principal=self.principal, name=name)))
