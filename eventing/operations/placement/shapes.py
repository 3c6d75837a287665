"""Shapes of answers about placement."""

from __future__ import annotations

from typing import Annotated, Any

from eventing.core.modes import MODES
from eventing.core.shapes import Count, Moment, Number, Shape, doc, one_of, page_of
from eventing.operations.placement.rules.decisions import STATES
from eventing.operations.placement.rules.invitations import WHOM
from eventing.operations.placement.rules.steps import REASONS


class StepAtDomain(Shape):
    """The outcome at one domain."""

    state: Annotated[str, one_of("done", "failed")]
    detail: Annotated[str, doc("Why it failed, one sentence; may be empty.")]


class PlacementDecisionAnswer(Shape):
    """A decision about the placement of a rendezvous point."""

    id: str
    rp: Annotated[str, doc("Id of the rendezvous point.")]
    state: Annotated[str, one_of(*STATES)]
    reason: Annotated[str, one_of(*REASONS)]
    why: Annotated[str, doc("One sentence.")]
    inputs: Annotated[dict[str, float | str], doc("Measurements and estimates that it rests on, by name.")]
    adds: Annotated[list[str], doc("Domains that get a replica.")]
    retires: Annotated[list[str], doc("Domains whose replicas end.")]
    progress: Annotated[dict[str, StepAtDomain], doc("What was done so far, by domain.")]
    decided_by: Annotated[str, doc("Who approved or rejected it; empty: the planner by itself, or nobody yet.")]
    detail: Annotated[str, doc("Why it ended so; may be empty.")]
    created_at: Moment
    changed_at: Moment


PlacementDecisionPage = page_of(PlacementDecisionAnswer)


class PlacementBoundsAnswer(Shape):
    """Switch and bounds of the planner, of a rendezvous point or of the domain."""

    rp: Annotated[str | None, doc("Null: of the domain.")]
    mode: Annotated[str | None, one_of(*MODES), doc("Null: as the domain, or its setting HERALD_PLACEMENT.")]
    mode_in_force: Annotated[str, one_of(*MODES)]
    replicas_max: Annotated[int, doc("Most replicas at other domains.")]
    histories: Annotated[int, doc("Histories that share no risk, the home's included.")]
    pinned: Annotated[list[str], doc("Domains whose replicas are never retired.")]
    excluded: Annotated[list[str], doc("Domains that are never invited.")]
    changed_at: Moment | None
    changed_by: Annotated[str, doc("Empty: nobody has set anything.")]


class ShortfallAnswer(Shape):
    """A wanted placement that cannot be reached."""

    rp: str
    about: Annotated[str, one_of("load", "histories")]
    wanted: Annotated[Number, doc("Histories, or units of capacity.")]
    reachable: Number
    why: Annotated[str, doc("What limits it, one sentence.")]


class ChangeBudget(Shape):
    """Changes of one rendezvous point, and how many are left."""

    rp: str
    steps: Annotated[Count, doc("Changes in the last ten minutes.")]
    steps_max: Annotated[Count, doc("Most changes in ten minutes.")]
    may_grow: bool
    may_shrink: bool
    last_at: Moment


class PlanAnswer(Shape):
    """State of the planner, and what it would do next."""

    mode: Annotated[str, one_of(*MODES)]
    bounds: PlacementBoundsAnswer
    observed_at: Annotated[Moment | None, doc("Null: the planner has not run.")]
    pressure: Annotated[Number | None, doc("Load of this domain as a share of its capacity.")]
    predicted: Annotated[Number | None, doc("The same in 30 seconds, by its trend.")]
    open: Annotated[list[PlacementDecisionAnswer], doc("Decisions that are proposed, approved or under way.")]
    shortfalls: list[ShortfallAnswer]
    not_asked: Annotated[dict[str, Moment], doc("Domains that refused or failed, and until when they are not asked.")]
    budgets: Annotated[list[ChangeBudget], doc("Rendezvous points with changes in the last ten minutes, most first.")]


class PlannedStep(Shape):
    """A step that the planner would take."""

    rp: str
    reason: Annotated[str, one_of(*REASONS)]
    why: Annotated[str, doc("One sentence.")]
    inputs: Annotated[dict[str, float | str], doc("Measurements and estimates that it rests on, by name.")]
    adds: list[str]
    retires: list[str]
    mode: Annotated[str, one_of(*MODES), doc("In force at the rendezvous point: off, it would not be taken.")]


class PlanPreviewAnswer(Shape):
    """A dry run of the planner of placement."""

    at: Moment
    mode: Annotated[str, one_of(*MODES)]
    pressure: Number
    predicted: Annotated[Number, doc("The pressure in 30 seconds, by its trend.")]
    steps: list[PlannedStep]
    shortfalls: list[ShortfallAnswer]
    unmeasured: Annotated[list[str], doc("Domains whose delay is measured before one of them is chosen.")]
    rps: Annotated[Count, doc("Rendezvous points that were looked at.")]


class PlacedDomainLoad(Shape):
    """Load of a domain that holds replicas, or may."""

    domain: str
    here: Annotated[bool, doc("It is this domain.")]
    zone: str
    capacity: Annotated[Count, doc("Capacity class, as stated.")]
    units: Annotated[Number, doc("Capacity, in units of class 1.")]
    pressure: Annotated[Number | None, doc("Load as a share of capacity; null: it states none.")]
    willing: Annotated[bool, doc("False: it is suspected, and not invited.")]
    delay_ms: Annotated[Number | None, doc("Measured round-trip time; null: not measured lately.")]
    not_asked_until: Annotated[Moment | None, doc("It refused or failed, and is not invited until then.")]


class PlanLoadsAnswer(Shape):
    """Loads of the domains that replicas may be held at, and the thresholds of the planner."""

    domains: list[PlacedDomainLoad]
    fair: Annotated[
        Number | None, doc("Fair share: load of all as a share of their capacity; null: no loads are known.")
    ]
    bound: Annotated[Number, doc("A domain above so many times its fair share moves readers away.")]
    hot: Annotated[Number, doc("Pressure above which replicas are added.")]
    target: Annotated[Number, doc("Pressure that a step plans for.")]
    cool: Annotated[Number, doc("Pressure below which replicas are retired.")]


class InvitationPolicyAnswer(Shape):
    """The standing policy for invitations of other domains."""

    whom: Annotated[str, one_of(*WHOM), doc("trusted-peers: peers trusted with host; peers: all active peers.")]
    named: list[str]
    refused: list[str]
    replicas_max: Count
    replicas_per_home_max: Count
    history_bytes_max: Count
    history_bytes_total_max: Count
    events_per_s_max: Count
    per_home_per_hour_max: Count
    pressure_max_percent: Count


class ReceivedInvitationAnswer(Shape):
    """An invitation that another domain sent."""

    home: str
    rp: str
    at: Moment
    accepted: bool
    reason: Annotated[str, doc("Why it was refused, as a code; empty: it was accepted.")]
    detail: str


class InvitationsAnswer(Shape):
    """The standing policy, and the invitations received last."""

    policy: InvitationPolicyAnswer
    version: Annotated[Count, doc("0: the default.")]
    changed_at: Moment | None
    changed_by: str
    recent: list[ReceivedInvitationAnswer]


def plain(inputs: dict[str, Any]) -> dict[str, float | str]:
    """Return the inputs of a decision as answers show them."""
    return {name: value for name, value in inputs.items() if isinstance(value, int | float | str)}
