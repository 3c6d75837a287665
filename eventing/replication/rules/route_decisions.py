"""Decision of this domain about the routes of one RP: plans for the feeds of each origin, kept as long as they hold. Pure.

Quick to grow, slow to shrink: a plan that no longer meets the target, or has lost a link, is made anew at once; one that still meets it stays for
KEPT_S, even where fewer links would do by now. Nothing is computed while what is known of the links stays the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from eventing.overlay.routing.graph import RouteLink
from eventing.overlay.routing.planning import plan_routes
from eventing.overlay.routing.reliability import Estimate, reliability_of
from eventing.replication.rules.known_routes import KnownRoutes

KEPT_S = 600.0
"""Seconds for which a plan that meets the target is not replaced by a cheaper one."""
FORMAT = 1
ROUTES_SHOWN_MAX = 200  # bound: links in an event of planned routes; the others are in the answer of REST
STATES = ("met", "missed", "unknown")
Ends = tuple[str, str]
"""The two domains of a link, in order."""


class OriginRoutes(msgspec.Struct, frozen=True, array_like=True):
    """Plan for the feeds of one origin.

    Attributes:
        links: chosen ones.
        lower, upper: reliability of each receiver; two values where it is known as bounds only.
        missed: receivers below the target, with the reason for people.
    """

    links: tuple[Ends, ...]
    lower: dict[str, float]
    upper: dict[str, float]
    missed: dict[str, str]


class RouteDecision(msgspec.Struct, frozen=True, array_like=True):
    """Plans of an RP, with what they rest on.

    Attributes:
        at: time of the last change of the chosen links, Unix seconds.
        state: `met`; `missed`; `unknown`: below the target as far as is known, but not all participants state their links, or a link is not
            measured well enough yet.
        reason: of the last change, for people.
        probabilities: of each known link: the planned delivery.
        stated: participants that state their links.
        missed_since: when the state became `missed`, Unix seconds; 0 in another state.
    """

    format: int
    target: float
    at: float
    state: str
    reason: str
    participants: tuple[str, ...]
    stated: tuple[str, ...]
    probabilities: tuple[tuple[str, str, float], ...]
    origins: dict[str, OriginRoutes]
    missed_since: float = 0.0

    @property
    def chosen(self) -> dict[str, tuple[Ends, ...]]:
        """The chosen links by origin."""
        return {origin: routes.links for origin, routes in self.origins.items()}

    @property
    def missed(self) -> dict[str, str]:
        """Receivers below the target for any origin, with the reason of the first one."""
        found: dict[str, str] = {}
        for routes in self.origins.values():
            for receiver, reason in routes.missed.items():
                found.setdefault(receiver, reason)
        return dict(sorted(found.items()))


def routes_decide(
    known: KnownRoutes,
    *,
    participants: Collection[str],
    origins: Collection[str],
    target: float,
    before: RouteDecision | None,
    now: float,
) -> RouteDecision:
    """Decide about the routes of an RP; return `before` where nothing changed.

    Args:
        origins: participants that publish.
        now: Unix seconds.
    """
    inputs = tuple((a, b, probability) for (a, b), probability in known.probabilities.items())
    of, wanted = tuple(sorted(participants)), sorted(origins)
    settled = not known.unmeasured and known.stated == of
    if before is not None and _same(before, target, of, known, inputs, wanted) and _rests(before, settled, now):
        return before
    routes = {origin: _routes(known, of, origin, target, before, now) for origin in wanted}
    missed = any(one.missed for one in routes.values())
    state = "met" if not missed else "missed" if settled else "unknown"
    chosen = {origin: one.links for origin, one in routes.items()}
    changed = before is None or before.chosen != chosen or before.target != target
    reason = _reason(before, target, of, known, chosen) if changed or before is None else before.reason
    at = now if changed or before is None else before.at
    since = 0.0 if state != "missed" else now
    if since and before is not None and before.state == "missed":
        since = before.missed_since
    return RouteDecision(FORMAT, target, at, state, reason, of, known.stated, inputs, routes, since)


def _same(
    before: RouteDecision,
    target: float,
    participants: tuple[str, ...],
    known: KnownRoutes,
    inputs: tuple[tuple[str, str, float], ...],
    origins: Sequence[str],
) -> bool:
    """Return whether all that a decision rests on is as it was."""
    return (before.target, before.participants, before.stated, before.probabilities, sorted(before.origins)) == (
        target,
        participants,
        known.stated,
        inputs,
        list(origins),
    )


def _rests(before: RouteDecision, settled: bool, now: float) -> bool:
    """Return whether a decision with the same inputs needs no second look: it is missed by what is settled, or met and young."""
    if before.state == "met":
        return now - before.at < KEPT_S
    return (before.state == "missed") == settled


def _routes(
    known: KnownRoutes,
    participants: tuple[str, ...],
    origin: str,
    target: float,
    before: RouteDecision | None,
    now: float,
) -> OriginRoutes:
    receivers = [one for one in participants if one != origin]
    kept = _kept(known, receivers, origin, target, before, now)
    if kept is not None:
        return kept
    plan = plan_routes(known.graph, origin, receivers, target)
    return _stated(plan.links, plan.reliability, plan.missed)


def _kept(
    known: KnownRoutes,
    receivers: Sequence[str],
    origin: str,
    target: float,
    before: RouteDecision | None,
    now: float,
) -> OriginRoutes | None:
    """Return the plan before with its present reliability; None if it is to be made anew."""
    held = None if before is None else before.origins.get(origin)
    if held is None or before is None or before.target != target or now - before.at >= KEPT_S:
        return None
    by_ends = {(link.a, link.b): link for link in known.graph.links}
    if any(ends not in by_ends for ends in held.links):
        return None
    links = [by_ends[ends] for ends in held.links]
    reliability = reliability_of(known.graph, links, origin, receivers)
    if any(estimate.lower < target for estimate in reliability.values()):
        return None
    return _stated(links, reliability, {})


def _stated(links: Collection[RouteLink], reliability: dict[str, Estimate], missed: dict[str, str]) -> OriginRoutes:
    of = sorted(reliability.items())
    return OriginRoutes(
        tuple(sorted((link.a, link.b) for link in links)),
        {receiver: round(estimate.lower, 9) for receiver, estimate in of},
        {receiver: round(estimate.upper, 9) for receiver, estimate in of},
        dict(sorted(missed.items())),
    )


def _reason(
    before: RouteDecision | None,
    target: float,
    participants: tuple[str, ...],
    known: KnownRoutes,
    chosen: dict[str, tuple[Ends, ...]],
) -> str:
    """Return why the links change, in one sentence."""
    if before is None:
        return "The rendezvous point has a target reliability now."
    if before.target != target:
        return f"The target changed from {before.target:g} to {target:g}."
    if before.participants != participants:
        return "Participants changed."
    then = {(a, b): probability for a, b, probability in before.probabilities}
    used = sorted({ends for links in before.chosen.values() for ends in links})
    worst, fall = None, 0.0
    for ends in used:
        fell = then.get(ends, 0.0) - known.probabilities.get(ends, 0.0)
        if fell > fall:
            worst, fall = ends, fell
    if worst is not None:
        now = known.probabilities.get(worst, 0.0)
        return f"The link of {worst[0]} and {worst[1]} delivers {now:.4g}, {then[worst]:.4g} before."
    if sorted(before.origins) != sorted(chosen):
        return "Other participants publish."
    fewer = sum(map(len, chosen.values())) < sum(map(len, before.chosen.values()))
    return "Fewer links meet the target." if fewer else "More is known of the links."
