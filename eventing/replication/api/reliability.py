"""/api/v1/rps/{id}/reliability: the planned and the measured reliability of an RP."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.replication.reliability.presenting import reliability_shown
from eventing.replication.shapes import ReliabilityAnswer
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get
from eventing.rps.services.permission import require


class ReliabilityView(View):
    """The reliability of one rendezvous point."""

    @extend_schema(
        operation_id="rps_reliability",
        summary="Show the planned and the measured reliability",
        description="For a rendezvous point with a target reliability: the links that this domain plans for the events of "
        "each origin, what they promise to each participant, and the share of events that each participant held in time, by "
        "its own version vectors. Each participant plans for its own links and answers for itself. Requires the operation "
        "`history`.",
        parameters=[docs.REFERENCE_BEFORE_ACTION],
        responses={200: ReliabilityAnswer},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Return the reliability."""
        row = rendezvous_point_get(reference)
        require(descriptor_of(row), self.principal, "history")
        return Response(reliability_shown(row))
