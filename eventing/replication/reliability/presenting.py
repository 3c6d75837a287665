"""Presentation of target reliabilities: what is planned, and what arrived, of one RP and of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from django.utils import timezone

from eventing.conf import config
from eventing.core.timestamps import timestamp
from eventing.replication.models import RoutesSwitch
from eventing.replication.reliability.planning import decision_of, decisions_of
from eventing.replication.rules.route_decisions import RouteDecision
from eventing.replication.selectors.forwarding import participations
from eventing.replication.selectors.route_modes import DOMAIN, routes_mode, routes_switches
from eventing.replication.selectors.targets import PLANNED_RPS_MAX, participants_now, targets
from eventing.replication.shapes import (
    ParticipantReliability,
    PlannedLinkAnswer,
    PlannedRpAnswer,
    ReliabilityAnswer,
    RoutesAnswer,
    RoutesSwitchAnswer,
)
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.reliability import IN_TIME_S
from eventing.store.rp_routes import Arrivals, arrivals_read


def reliability_shown(row: RendezvousPoint) -> ReliabilityAnswer:
    """Return the planned and the measured reliability of an RP here. Raises redis.RedisError."""
    who = participations([row.id])[row.id]
    others = [one for one in participants_now(who, timezone.now()) if one != config().domain]
    decision = None if row.reliability is None else decision_of(row.id)
    arrived = arrivals_read(row.id, others)
    return ReliabilityAnswer(
        rp=row.id,
        target=row.reliability,
        mode=routes_mode(row.id, routes_switches()),
        within_s=IN_TIME_S,
        state="none" if decision is None else decision.state,
        reason=None if decision is None else decision.reason,
        planned_at=None if decision is None else timestamp(datetime.fromtimestamp(decision.at, UTC)),
        participants=[_participant(one, decision, arrived.get(one, Arrivals())) for one in others],
        links=[] if decision is None else _links(decision),
    )


def routes_shown() -> RoutesAnswer:
    """Return the planner of routes: its switch, and all RPs with a target. Raises redis.RedisError."""
    aims, switches, now = targets(), routes_switches(), timezone.now()
    decisions, who = decisions_of(list(aims)), participations(aims)
    own = config().domain
    return RoutesAnswer(
        switch=routes_switch_shown(DOMAIN),
        items=[
            _planned_rp(
                rp,
                target,
                decisions.get(rp),
                [one for one in participants_now(who[rp], now) if one != own],
                switches,
            )
            for rp, target in aims.items()
        ],
        complete=len(aims) < PLANNED_RPS_MAX,
    )


def routes_switch_shown(rp: str) -> RoutesSwitchAnswer:
    """Return the switch of an RP, or with DOMAIN of the domain."""
    switches = routes_switches()
    row = switches.get(rp)
    return RoutesSwitchAnswer(
        rp=rp or None,
        mode=row.mode or None if row is not None else None,
        mode_in_force=routes_mode(rp, switches),
        changed_at=timestamp(row.changed_at) if row is not None else None,
        changed_by=row.changed_by if row is not None else "",
    )


def _planned_rp(
    rp: str,
    target: float,
    decision: RouteDecision | None,
    others: Sequence[str],
    switches: Mapping[str, RoutesSwitch],
) -> PlannedRpAnswer:
    arrived = [one for one in arrivals_read(rp, others).values() if one.share is not None]
    lower = [] if decision is None else [value for one in decision.origins.values() for value in one.lower.values()]
    own = switches.get(rp)
    return PlannedRpAnswer(
        rp=rp,
        target=target,
        mode=own.mode or None if own is not None else None,
        mode_in_force=routes_mode(rp, switches),
        state="none" if decision is None else decision.state,
        reason="" if decision is None else decision.reason,
        planned_at=None if decision is None else timestamp(datetime.fromtimestamp(decision.at, UTC)),
        participants=len(others),
        links=0 if decision is None else len({ends for links in decision.chosen.values() for ends in links}),
        links_known=0 if decision is None else len(decision.probabilities),
        planned=min(lower, default=None),
        measured=min((round(one.share, 6) for one in arrived if one.share is not None), default=None),
        events=round(sum(one.arrived + one.late for one in arrived), 1),
        missed={} if decision is None else decision.missed,
    )


def _participant(domain: str, decision: RouteDecision | None, arrivals: Arrivals) -> ParticipantReliability:
    planned = (
        [] if decision is None else [one.lower[domain] for one in decision.origins.values() if domain in one.lower]
    )
    return ParticipantReliability(
        domain=domain,
        planned=min(planned, default=None),
        missed=None if decision is None else decision.missed.get(domain),
        states_links=decision is not None and domain in decision.stated,
        measured=None if arrivals.share is None else round(arrivals.share, 6),
        events=round(arrivals.arrived + arrivals.late, 1),
    )


def _links(decision: RouteDecision) -> list[PlannedLinkAnswer]:
    return [
        PlannedLinkAnswer(
            ends=[a, b],
            delivery=round(probability, 6),
            origins=[origin for origin, links in sorted(decision.chosen.items()) if (a, b) in links],
        )
        for a, b, probability in decision.probabilities
    ]
