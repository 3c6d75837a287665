"""Dry run of the planner of routes for one RP: a plan from what is known now, recorded nowhere, beside the plan in force."""

from __future__ import annotations

from eventing.core.errors import Conflict, InvalidRequest
from eventing.core.modes import APPLY
from eventing.overlay.routing.planning import TARGET_MAX, RoutePlan, plan_routes
from eventing.overlay.routing.reliability import reliability_of
from eventing.replication.reliability.planning import decision_of, routes_known
from eventing.replication.rules.known_routes import KnownRoutes
from eventing.replication.selectors.route_modes import routes_mode, routes_switches
from eventing.replication.shapes import PreviewedLink, PreviewedReceiver, RoutesPreviewAnswer
from eventing.rps.models import RendezvousPoint

PREVIEW_PARTICIPANTS_MAX = (
    16  # bound: participants of an RP in a dry run, seconds of a core; it is refused: 409 `conflict`
)


def routes_preview(row: RendezvousPoint, *, target: float | None = None) -> RoutesPreviewAnswer:
    """Plan the routes of the home's events at an RP, and compare them with the plan in force. Takes up to seconds.

    Args:
        target: another target than the RP's, above 0 to TARGET_MAX; None: the RP's.

    Raises Conflict (too many participants, or no other one), InvalidRequest (no target), redis.RedisError.
    """
    aim = row.reliability if target is None else target
    if aim is None:
        raise InvalidRequest("The rendezvous point has no target reliability. State one: target=0.999.")
    if not 0.0 < aim <= TARGET_MAX:
        raise InvalidRequest(f"target is above 0, and at most {TARGET_MAX}.")
    origin, domains, known = routes_known(row.id)
    if len(domains) < 2:
        raise Conflict("No other domain takes part in the rendezvous point.")
    if len(domains) > PREVIEW_PARTICIPANTS_MAX:
        raise Conflict(
            f"A dry run has at most {PREVIEW_PARTICIPANTS_MAX} participants, and this rendezvous point {len(domains)}. "
            "Switch it to advise: its plan is then computed in the background."
        )
    receivers = [name for name in domains if name != origin]
    mode, decision = routes_mode(row.id, routes_switches()), decision_of(row.id)
    there = decision.chosen.get(origin, ()) if decision is not None and mode == APPLY else ()
    plan = plan_routes(known.graph, origin, receivers, aim)
    now = _lower(known, there, origin, receivers) if there else {}
    return RoutesPreviewAnswer(
        rp=row.id,
        origin=origin,
        target=aim,
        mode_in_force=mode,
        met=not plan.missed,
        receivers=[
            PreviewedReceiver(
                domain=name,
                planned=round(plan.reliability[name].lower, 9),
                in_force=now.get(name),
                missed=plan.missed.get(name),
            )
            for name in receivers
        ],
        links=_links(known, plan, there),
    )


def _lower(
    known: KnownRoutes, there: tuple[tuple[str, str], ...], origin: str, receivers: list[str]
) -> dict[str, float]:
    links = [link for link in known.graph.links if (link.a, link.b) in there]
    found = reliability_of(known.graph, links, origin, receivers)
    return {name: round(found[name].lower, 9) for name in receivers}


def _links(known: KnownRoutes, plan: RoutePlan, there: tuple[tuple[str, str], ...]) -> list[PreviewedLink]:
    planned = {(link.a, link.b) for link in plan.links}
    ends = sorted({*known.probabilities, *there})
    return [
        PreviewedLink(
            ends=list(one),
            delivery=round(known.probabilities.get(one, 0.0), 6),
            planned=one in planned,
            in_force=one in there,
        )
        for one in ends
    ]
