"""Dry run of the planner of placement, and the loads that it decides from. Nothing is recorded."""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.timestamps import timestamp
from eventing.operations.placement.models import PlannerRecord
from eventing.operations.placement.rules.budget import BUDGET_STEPS, may_grow, may_shrink, steps_within
from eventing.operations.placement.rules.courses import COOL, HOT
from eventing.operations.placement.rules.loads import capacity_class, capacity_units
from eventing.operations.placement.rules.planner import TARGET, PlacementPlanner
from eventing.operations.placement.rules.steps import DelaysWanted, PlacementShortfall, PlacementStep
from eventing.operations.placement.selectors.bounds import bounds_all, bounds_in_force, domain_mode
from eventing.operations.placement.selectors.decisions import planner_record, planner_state
from eventing.operations.placement.selectors.observation import domains_observed, observation
from eventing.operations.placement.selectors.own_state import own_state
from eventing.operations.placement.shapes import (
    ChangeBudget,
    PlacedDomainLoad,
    PlanLoadsAnswer,
    PlannedStep,
    PlanPreviewAnswer,
    ShortfallAnswer,
    plain,
)
from eventing.peering.selectors.peers import peers_active
from eventing.replication.rules.ranking import LOAD_FACTOR

BUDGETS_SHOWN_MAX = 50  # bound: RPs whose budget is in an answer; those with fewest changes are left out


def placement_preview(*, now: datetime | None = None) -> PlanPreviewAnswer:
    """Run the planner on what is known now, for RPs that are switched off as well. Raises redis.RedisError, DatabaseError."""
    now = now or timezone.now()
    record, bounds = planner_record(), bounds_all()
    seen = observation(own_state(), _delays(record), now, bounds, off_too=True)
    planner = PlacementPlanner(planner_state(record))
    outputs = planner.handle(seen, now.timestamp())
    wanted = [name for one in outputs if isinstance(one, DelaysWanted) for name in one.domains]
    return PlanPreviewAnswer(
        at=timestamp(now),
        mode=domain_mode(),
        pressure=seen.pressure,
        predicted=planner.state.course.predicted(),
        steps=[
            PlannedStep(
                rp=one.rp,
                reason=one.reason,
                why=one.why,
                inputs=plain(dict(one.inputs)),
                adds=list(one.adds),
                retires=list(one.retires),
                mode=bounds_in_force(one.rp, bounds).mode,
            )
            for one in outputs
            if isinstance(one, PlacementStep)
        ],
        shortfalls=[ShortfallAnswer.of(one) for one in outputs if isinstance(one, PlacementShortfall)],
        unmeasured=list(dict.fromkeys(wanted)),
        rps=len(seen.rps),
    )


def placement_loads(*, now: datetime | None = None) -> PlanLoadsAnswer:
    """Return the loads of this domain and of those that may hold replicas. Raises redis.RedisError, DatabaseError."""
    now = now or timezone.now()
    record, own = planner_record(), own_state()
    offs = planner_state(record).back_offs
    home = PlacedDomainLoad(
        domain=config().domain,
        here=True,
        zone=config().zone,
        capacity=capacity_class(config().capacity),
        units=capacity_units(config().capacity),
        pressure=own.pressure,
        willing=True,
        delay_ms=None,
        not_asked_until=None,
    )
    others = [
        PlacedDomainLoad(
            domain=one.name,
            here=False,
            zone=one.zone,
            capacity=capacity_class(one.capacity),
            units=capacity_units(one.capacity),
            pressure=one.pressure,
            willing=one.willing,
            delay_ms=one.delay_ms,
            not_asked_until=_moment(offs[one.name].until)
            if one.name in offs and offs[one.name].until > now.timestamp()
            else None,
        )
        for one in domains_observed(peers_active(), _delays(record), now)
    ]
    known = [(one.pressure, one.units) for one in (home, *others) if one.pressure is not None]
    capacity = sum(units for _, units in known)
    return PlanLoadsAnswer(
        domains=[home, *sorted(others, key=lambda one: one.domain)],
        fair=sum(pressure * units for pressure, units in known) / capacity if capacity else None,
        bound=LOAD_FACTOR,
        hot=HOT,
        target=TARGET,
        cool=COOL,
    )


def change_budgets(record: PlannerRecord | None, now: datetime) -> list[ChangeBudget]:
    """Return what RPs with recent changes have left of their budgets, those with most changes first."""
    at = now.timestamp()
    found = [(steps_within(steps, at), rp, steps) for rp, steps in planner_state(record).steps.items()]
    found.sort(key=lambda one: (-one[0], one[1]))
    return [
        ChangeBudget(
            rp=rp,
            steps=many,
            steps_max=BUDGET_STEPS,
            may_grow=may_grow(steps, at),
            may_shrink=may_shrink(steps, at),
            last_at=_moment(steps[-1].at),
        )
        for many, rp, steps in found[:BUDGETS_SHOWN_MAX]
        if many
    ]


def _delays(record: PlannerRecord | None) -> dict[str, tuple[float, float]]:
    return {} if record is None else {name: (one[0], one[1]) for name, one in record.delays.items()}


def _moment(at: float) -> str:
    return timestamp(datetime.fromtimestamp(at, UTC))
