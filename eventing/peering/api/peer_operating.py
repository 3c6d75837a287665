"""Operators' actions on a peer that need no decision about trust (those are in peers.py): renewing its lease."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.peering.api.peers import NAME, representation
from eventing.peering.services.peer_operating import peer_renew
from eventing.peering.shapes import PeerAnswer
from eventing.rest.base import View
from eventing.rest.fields import NothingSerializer


class PeerRenewalView(View):
    """Renewal of a peer's lease."""

    @extend_schema(
        operation_id="peers_renew",
        summary="Renew a peer's lease",
        description="For administrators and operators. The lease counts from now, as after contact with the peer. A "
        "peer without contact is removed when the lease expires.",
        parameters=[NAME],
        request=NothingSerializer,
        responses={200: PeerAnswer},
        examples=[OpenApiExample("Renew the lease", value={}, request_only=True)],
    )
    def post(self, request: Request, name: str) -> Response:
        """Renew."""
        self.body(NothingSerializer)
        return Response(representation(peer_renew(principal=self.principal, name=name)))
