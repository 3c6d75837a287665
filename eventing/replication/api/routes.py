"""/api/v1/plan/routes: the planner of routes: its switches, plans in short, and dry runs."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.core.errors import InvalidRequest
from eventing.core.modes import MODES
from eventing.replication.reliability.presenting import routes_shown, routes_switch_shown
from eventing.replication.reliability.previewing import routes_preview
from eventing.replication.services.route_modes import routes_switch
from eventing.replication.shapes import RoutesAnswer, RoutesPreviewAnswer, RoutesSwitchAnswer
from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.rest.fields import StrictObject, StrictString
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get

TARGET = OpenApiParameter(
    "target", float, description="Another target reliability than that of the rendezvous point, for example 0.9999."
)


class RoutesSwitchSerializer(StrictObject):
    """A switch of the planner of routes."""

    mode = StrictString(
        allow_null=True, max_length=8, help_text=f"One of {', '.join(MODES)}; null: as the domain, or its setting."
    )


class RoutesView(View):
    """The planner of routes."""

    http_method_names = ["get", "head", "patch"]

    @extend_schema(
        operation_id="plan_routes_get",
        summary="The planner of routes",
        description="Its switch, and each rendezvous point with a target reliability: what is planned, and what was measured. "
        "For administrators, operators and viewers.",
        responses={200: RoutesAnswer},
    )
    def get(self, request: Request) -> Response:
        """Show."""
        require_overseer(self.principal)
        return Response(routes_shown())

    @extend_schema(
        operation_id="plan_routes_switch",
        summary="Switch the planner of routes of the domain",
        description="`off`: feeds follow their trees, nothing is planned; off for every rendezvous point. `advise`: plans are "
        "computed and shown, and have no effect. `apply`: feeds are eager on the planned links. For administrators and operators.",
        request=RoutesSwitchSerializer,
        responses={200: RoutesAnswer},
        examples=[OpenApiExample("Advise", value={"mode": "advise"}, request_only=True)],
    )
    def patch(self, request: Request) -> Response:
        """Switch."""
        routes_switch(reference=None, principal=self.principal, mode=_mode(self))
        return Response(routes_shown())


class RoutesOfRpView(View):
    """The planner of routes at one rendezvous point."""

    http_method_names = ["get", "head", "patch"]

    @extend_schema(
        operation_id="plan_routes_rp_get",
        summary="Dry run of the planner of routes",
        description="The links that would be chosen now for the events of the home, beside those in force; nothing is recorded or "
        "changed. Up to 16 participants. For administrators, operators and viewers.",
        parameters=[docs.REFERENCE, TARGET],
        responses={200: RoutesPreviewAnswer},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Plan, and answer the plan."""
        require_overseer(self.principal)
        text = self.query("target")
        try:
            target = None if text is None else float(text)
        except ValueError:
            raise InvalidRequest("target is a number, for example 0.999.") from None
        return Response(routes_preview(rendezvous_point_get(reference), target=target))

    @extend_schema(
        operation_id="plan_routes_rp_switch",
        summary="Switch the planner of routes at a rendezvous point",
        description="For this domain's links only: each participant plans for its own. For administrators and operators.",
        parameters=[docs.REFERENCE],
        request=RoutesSwitchSerializer,
        responses={200: RoutesSwitchAnswer},
        examples=[OpenApiExample("As the domain", value={"mode": None}, request_only=True)],
    )
    def patch(self, request: Request, reference: str) -> Response:
        """Switch."""
        row = routes_switch(reference=reference, principal=self.principal, mode=_mode(self))
        return Response(routes_switch_shown(row.rp))


def _mode(view: View) -> str | None:
    mode: str | None = view.body(RoutesSwitchSerializer)["mode"]
    if mode not in (None, *MODES):
        raise InvalidRequest(f"mode must be one of {', '.join(MODES)}, or null.")
    return mode
