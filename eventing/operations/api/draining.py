"""/api/v1/drain: handing over what this domain has, before it stops."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.core.errors import InvalidRequest
from eventing.operations.services.drain_preview import drain_preview
from eventing.operations.services.draining import (
    UNTIL_S_MAX,
    drain_begin,
    drain_end,
    drain_shown,
    require_drain_administrator,
)
from eventing.operations.shapes import DrainAnswer, DrainPreviewAnswer
from eventing.rest.base import View
from eventing.rest.fields import StrictBoolean, StrictInteger, StrictObject


class DrainRequestSerializer(StrictObject):
    """A drain."""

    for_s = StrictInteger(min_value=1, max_value=UNTIL_S_MAX, help_text="Seconds until it ends by itself.")
    closes = StrictBoolean(
        default=False, help_text="The domain stops for good: subscribers of what nobody takes over are notified."
    )


class DrainPreviewView(View):
    """Preview of a drain."""

    @extend_schema(
        operation_id="drain_preview",
        summary="Show what a drain would do, and what cannot be handed over",
        description="For administrators, operators and viewers. Nothing changes.",
        parameters=[OpenApiParameter("closes", bool, description="Whether the domain stops for good. Default: false.")],
        responses={200: DrainPreviewAnswer},
    )
    def get(self, request: Request) -> Response:
        """Show."""
        require_overseer(self.principal)
        closes = self.query("closes")
        if closes not in (None, "true", "false"):
            raise InvalidRequest("closes is true or false.")
        return Response(drain_preview(closes=closes == "true"), headers={"Cache-Control": "no-store"})


class DrainView(View):
    """The drain of this domain."""

    @extend_schema(
        operation_id="drain_get",
        summary="Show the drain of the domain",
        description="For administrators, operators and viewers.",
        responses={200: DrainAnswer},
    )
    def get(self, request: Request) -> Response:
        """Show."""
        require_overseer(self.principal)
        return Response(drain_shown(), headers={"Cache-Control": "no-store"})

    @extend_schema(
        operation_id="drain_begin",
        summary="Hand over what this domain has",
        description="For administrators. Homes go to participants, readers to other domains, the delivery of shared "
        "subscriptions to their other holders. Begun again, its end changes, and refused homes are tried anew.",
        request=DrainRequestSerializer,
        responses={200: DrainAnswer},
        examples=[OpenApiExample("For an hour", value={"for_s": 3600}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Begin."""
        require_drain_administrator(self.principal)
        asked = self.body(DrainRequestSerializer)
        until = timezone.now() + timedelta(seconds=asked["for_s"])
        return Response(drain_begin(principal=self.principal, until=until, closes=asked["closes"]))

    @extend_schema(
        operation_id="drain_end",
        summary="End the drain of the domain",
        description="For administrators. What was handed over stays where it is.",
        responses={200: DrainAnswer},
    )
    def delete(self, request: Request) -> Response:
        """End."""
        return Response(drain_end(principal=self.principal))
