"""/api/v1/plan: the planner of placement: state, decisions, bounds, the standing policy for invitations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.access.rules.permission import require_overseer
from eventing.core.errors import InvalidRequest
from eventing.core.modes import MODES
from eventing.core.principals import Principal
from eventing.core.roles import oversees
from eventing.core.timestamps import timestamp
from eventing.operations.placement.models import WHY_CHARS_MAX, PlacementBounds
from eventing.operations.placement.rules.decisions import STATES
from eventing.operations.placement.rules.invitations import (
    BYTES_MAX,
    FROM_MAX,
    PER_HOUR_MAX,
    REPLICAS_MAX,
    WHOM,
)
from eventing.operations.placement.selectors.bounds import (
    DOMAIN,
    bounds_all,
    bounds_in_force,
    domain_mode,
    standing_policy,
    standing_row,
)
from eventing.operations.placement.selectors.decisions import (
    decision_get,
    decisions_open,
    decisions_page,
    invitations_recent,
    planner_record,
)
from eventing.operations.placement.selectors.preview import change_budgets, placement_loads, placement_preview
from eventing.operations.placement.services.bounds import (
    HISTORIES_MAX,
    LIST_MAX,
    placement_bound,
    standing_policy_set,
)
from eventing.operations.placement.services.decisions import decision_answer, decision_approve, decision_reject
from eventing.operations.placement.shapes import (
    InvitationPolicyAnswer,
    InvitationsAnswer,
    PlacementBoundsAnswer,
    PlacementDecisionAnswer,
    PlacementDecisionPage,
    PlanAnswer,
    PlanLoadsAnswer,
    PlanPreviewAnswer,
    ReceivedInvitationAnswer,
    ShortfallAnswer,
)
from eventing.rest import documents as docs
from eventing.rest.base import View, page_answer
from eventing.rest.fields import NothingSerializer, StrictInteger, StrictObject, StrictString
from eventing.rps.models import DOMAIN_CHARS_MAX
from eventing.rps.rules.statements import ADMISSIONS_MAX
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require

DECISION_ID = OpenApiParameter("decision", {"type": "string", "pattern": "^[1-9][0-9]{0,17}$"}, OpenApiParameter.PATH)
STATE = OpenApiParameter("state", str, enum=["open", *STATES], description="Only decisions in this state.")
RP = OpenApiParameter("rp", str, description="Only decisions about this rendezvous point, by id or name.")


def _names(about: str, most: int) -> serializers.ListField:
    child = StrictString(min_length=1, max_length=DOMAIN_CHARS_MAX)
    return serializers.ListField(child=child, required=False, max_length=most, help_text=about)


class PlacementBoundsSerializer(StrictObject):
    """A change of switch and bounds; members that are missing stay."""

    mode = StrictString(
        required=False,
        allow_null=True,
        max_length=8,
        help_text=f"One of {', '.join(MODES)}; null: as the domain, or its setting.",
    )
    replicas_max = StrictInteger(
        required=False, allow_null=True, min_value=0, max_value=ADMISSIONS_MAX, help_text="Null: the domain's."
    )
    histories = StrictInteger(
        required=False, allow_null=True, min_value=1, max_value=HISTORIES_MAX, help_text="Null: the domain's."
    )
    pinned = _names("Domains whose replicas are never retired.", LIST_MAX)
    excluded = _names("Domains that are never invited.", LIST_MAX)


class RejectionSerializer(StrictObject):
    """A rejection with a note."""

    note = StrictString(
        required=False, allow_blank=True, default="", max_length=WHY_CHARS_MAX, help_text="A note for people."
    )


class InvitationPolicySerializer(StrictObject):
    """A change of the standing policy; members that are missing stay."""

    whom = StrictString(required=False, max_length=16, help_text=f"One of {', '.join(WHOM)}.")
    named = _names("With whom `named`: domains whose invitations are accepted.", FROM_MAX)
    refused = _names("Domains whose invitations are refused, whatever `whom` says.", FROM_MAX)
    replicas_max = StrictInteger(required=False, min_value=0, max_value=REPLICAS_MAX)
    replicas_per_home_max = StrictInteger(required=False, min_value=0, max_value=REPLICAS_MAX)
    history_bytes_max = StrictInteger(required=False, min_value=0, max_value=BYTES_MAX)
    history_bytes_total_max = StrictInteger(required=False, min_value=0, max_value=BYTES_MAX)
    events_per_s_max = StrictInteger(required=False, min_value=0, max_value=10**9)
    per_home_per_hour_max = StrictInteger(required=False, min_value=1, max_value=PER_HOUR_MAX)
    pressure_max_percent = StrictInteger(required=False, min_value=1, max_value=100)


class PlanView(View):
    """State of the planner."""

    http_method_names = ["get", "head", "patch"]

    @extend_schema(
        operation_id="plan_get",
        summary="The planner of placement",
        description="Its mode and bounds, what it observed last, the decisions that are open (in mode `advise`: what it would do "
        "next), and what cannot be reached. For administrators, operators and viewers.",
        responses={200: PlanAnswer},
    )
    def get(self, request: Request) -> Response:
        """Show."""
        require_overseer(self.principal)
        return Response(_plan())

    @extend_schema(
        operation_id="plan_bound",
        summary="Change switch and bounds of the domain",
        description="`off` stops the planner for all rendezvous points. For administrators and operators.",
        request=PlacementBoundsSerializer,
        responses={200: PlanAnswer},
        examples=[OpenApiExample("Apply", value={"mode": "apply", "replicas_max": 8}, request_only=True)],
    )
    def patch(self, request: Request) -> Response:
        """Change."""
        _bound(None, self.principal, self.body(PlacementBoundsSerializer))
        return Response(_plan())


class PlanPreviewView(View):
    """Dry run of the planner of placement."""

    @extend_schema(
        operation_id="plan_preview",
        summary="Run the planner of placement dry",
        description="What it would do now, with inputs and reasons, for rendezvous points that are switched off as well. Nothing is "
        "recorded or changed. For administrators, operators and viewers.",
        responses={200: PlanPreviewAnswer},
    )
    def get(self, request: Request) -> Response:
        """Plan, and answer the plan."""
        require_overseer(self.principal)
        return Response(placement_preview())


class PlanLoadsView(View):
    """Loads that the planner of placement decides from."""

    @extend_schema(
        operation_id="plan_loads",
        summary="Show the loads of domains that replicas may be held at",
        description="This domain and its active peers, with the fair share and the thresholds of the planner. For administrators, "
        "operators and viewers.",
        responses={200: PlanLoadsAnswer},
    )
    def get(self, request: Request) -> Response:
        """Show."""
        require_overseer(self.principal)
        return Response(placement_loads())


class PlanOfRpView(View):
    """Switch and bounds of one rendezvous point."""

    http_method_names = ["get", "head", "patch"]

    @extend_schema(
        operation_id="plan_rp_get",
        summary="Switch and bounds of a rendezvous point",
        description="For those who oversee the domain, and with `administer` at the rendezvous point.",
        parameters=[docs.REFERENCE],
        responses={200: PlacementBoundsAnswer},
    )
    def get(self, request: Request, reference: str) -> Response:
        """Show."""
        descriptor = descriptor_get(reference)
        if not oversees(self.principal):
            require(descriptor, self.principal, "administer")
        return Response(_bounds(descriptor.id))

    @extend_schema(
        operation_id="plan_rp_bound",
        summary="Change switch and bounds of a rendezvous point",
        description="For rendezvous points of this domain; for administrators and operators.",
        parameters=[docs.REFERENCE],
        request=PlacementBoundsSerializer,
        responses={200: PlacementBoundsAnswer},
        examples=[OpenApiExample("Two histories", value={"mode": "apply", "histories": 2}, request_only=True)],
    )
    def patch(self, request: Request, reference: str) -> Response:
        """Change."""
        row = _bound(reference, self.principal, self.body(PlacementBoundsSerializer))
        return Response(_bounds(row.rp))


class DecisionsView(View):
    """List of decisions."""

    @extend_schema(
        operation_id="plan_decisions_list",
        summary="List decisions about placement",
        description="Newest first, kept for 30 days. All for administrators, operators and viewers; with `rp` also for principals "
        "with `administer` there.",
        parameters=[STATE, RP, docs.CURSOR, docs.LIMIT],
        responses={200: PlacementDecisionPage},
    )
    def get(self, request: Request) -> Response:
        """List."""
        reference, rp = self.query("rp"), None
        if reference is None:
            require_overseer(self.principal)
        else:
            descriptor = descriptor_get(reference)
            if not oversees(self.principal):
                require(descriptor, self.principal, "administer")
            rp = descriptor.id
        page = decisions_page(rp=rp, state=self.query("state"), cursor=self.query("cursor"), limit=self.limit())
        return page_answer(page, [decision_answer(row) for row in page.items])


class DecisionView(View):
    """One decision."""

    @extend_schema(
        operation_id="plan_decisions_get",
        summary="Explain a decision about placement",
        description="With its inputs, its reason, and what was done at each domain. For administrators, operators and viewers.",
        parameters=[DECISION_ID],
        responses={200: PlacementDecisionAnswer},
    )
    def get(self, request: Request, decision: str) -> Response:
        """Show."""
        require_overseer(self.principal)
        return Response(decision_answer(decision_get(decision)))


class DecisionApprovalView(View):
    """Approval of a proposal."""

    @extend_schema(
        operation_id="plan_decisions_approve",
        summary="Approve a proposal",
        description="It is carried out within seconds. For administrators and operators.",
        parameters=[DECISION_ID],
        request=NothingSerializer,
        responses={200: PlacementDecisionAnswer},
    )
    def post(self, request: Request, decision: str) -> Response:
        """Approve."""
        self.body(NothingSerializer)
        return Response(decision_answer(decision_approve(decision=decision, principal=self.principal)))


class DecisionRejectionView(View):
    """Rejection of a decision."""

    @extend_schema(
        operation_id="plan_decisions_reject",
        summary="Reject a decision",
        description="A proposal, or one that was approved and is not under way yet. For administrators and operators.",
        parameters=[DECISION_ID],
        request=RejectionSerializer,
        responses={200: PlacementDecisionAnswer},
        examples=[OpenApiExample("With a note", value={"note": "maintenance there"}, request_only=True)],
    )
    def post(self, request: Request, decision: str) -> Response:
        """Reject."""
        row = decision_reject(decision=decision, principal=self.principal, **self.body(RejectionSerializer))
        return Response(decision_answer(row))


class InvitationsView(View):
    """The standing policy for invitations."""

    http_method_names = ["get", "head", "patch"]

    @extend_schema(
        operation_id="plan_invitations_get",
        summary="The standing policy for invitations",
        description="Whose rendezvous points this domain replicates without a person's decision, and how much; with the invitations "
        "received last. For administrators, operators and viewers.",
        responses={200: InvitationsAnswer},
    )
    def get(self, request: Request) -> Response:
        """Show."""
        require_overseer(self.principal)
        return Response(_invitations())

    @extend_schema(
        operation_id="plan_invitations_bound",
        summary="Change the standing policy for invitations",
        description="A policy that contradicts itself is refused with the contradiction. For administrators and operators.",
        request=InvitationPolicySerializer,
        responses={200: InvitationsAnswer},
        examples=[OpenApiExample("Two domains", value={"whom": "named", "named": ["a.example"]}, request_only=True)],
    )
    def patch(self, request: Request) -> Response:
        """Change."""
        standing_policy_set(principal=self.principal, policy=self.body(InvitationPolicySerializer))
        return Response(_invitations())


def _bound(reference: str | None, principal: Principal, body: dict[str, Any]) -> PlacementBounds:
    if body.get("mode") not in (None, *MODES):
        raise InvalidRequest(f"mode must be one of {', '.join(MODES)}, or null.")
    return placement_bound(reference=reference, principal=principal, **body)


def _bounds(rp: str) -> PlacementBoundsAnswer:
    rows = bounds_all()
    row, force = rows.get(rp), bounds_in_force(rp, rows)
    return PlacementBoundsAnswer(
        rp=rp or None,
        mode=row.mode or None if row is not None else None,
        mode_in_force=force.mode,
        replicas_max=force.replicas_max,
        histories=force.histories,
        pinned=list(force.pinned),
        excluded=list(force.excluded),
        changed_at=timestamp(row.changed_at) if row is not None else None,
        changed_by=row.changed_by if row is not None else "",
    )


def _plan() -> PlanAnswer:
    record = planner_record()
    seen = {} if record is None else record.seen
    offs = {} if record is None else record.state.get("back_offs", {})
    return PlanAnswer(
        mode=domain_mode(),
        bounds=_bounds(DOMAIN),
        observed_at=timestamp(record.at) if record is not None and seen else None,
        pressure=seen.get("pressure"),
        predicted=seen.get("predicted"),
        open=[decision_answer(row) for row in decisions_open()],
        shortfalls=[ShortfallAnswer(**one) for one in (record.shortfalls if record is not None else ())],
        not_asked={
            name: timestamp(datetime.fromtimestamp(until, UTC))
            for name, (until, _) in sorted(offs.items())
            if record is not None and until > record.at.timestamp()
        },
        budgets=change_budgets(record, timezone.now()),
    )


def _invitations() -> InvitationsAnswer:
    row, policy = standing_row(), standing_policy()
    return InvitationsAnswer(
        policy=InvitationPolicyAnswer.of(policy, named=list(policy.named), refused=list(policy.refused)),
        version=row.version if row is not None else 0,
        changed_at=timestamp(row.changed_at) if row is not None else None,
        changed_by=row.changed_by if row is not None else "",
        recent=[ReceivedInvitationAnswer.of(one, accepted=not one.reason) for one in invitations_recent()],
    )
