"""/api/v1/plan/homes: homes that moved, and who elects successors."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.replication.selectors.home_records import homes_shown
from eventing.replication.shapes import HomesAnswer
from eventing.rest.base import View


class HomesView(View):
    """Homes of rendezvous points that moved, or have successors."""

    @extend_schema(
        operation_id="plan_homes_list",
        summary="List homes that moved, and elections of successors",
        description="Rendezvous points of this domain and replicas here: their last hand-over, the electors, and for how long the "
        "home has been silent for this domain. For administrators, operators and viewers.",
        responses={200: HomesAnswer},
    )
    def get(self, request: Request) -> Response:
        """List."""
        require_overseer(self.principal)
        return Response(homes_shown())
