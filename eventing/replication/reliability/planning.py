"""Planning of routes, live: for each RP with a target reliability, what is known of links -> a decision -> planned feeds of this domain's links.

Every domain decides for its own links, from what it knows. A planned feed is eager on the link beside the trees of Plumtree
(overlay/feed_tree.py); when a decision changes, links that are left out stay eager until they are pruned as redundant, so that nothing is lost.
RPs without a target are not looked at. In mode advise a decision is made and stored, and no link is planned; in mode off there is none.

What a crash loses is found again: decisions are in Redis, planned feeds in the links, and each look compares both.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec
from django.utils import timezone

from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.modes import APPLY, OFF
from eventing.log import watermarks
from eventing.outbox.services import change
from eventing.overlay import broadcast
from eventing.overlay.link_rows import MeasuredLink
from eventing.replication.forwarding import wakeups
from eventing.replication.reliability.announcing import decision_report
from eventing.replication.reliability.feed_origins import feed_origins
from eventing.replication.reliability.knowledge import others_links, own_links, traits
from eventing.replication.rules.known_routes import KnownRoutes, known_routes
from eventing.replication.rules.route_decisions import FORMAT, STATES, RouteDecision, routes_decide
from eventing.replication.scoring.effects import avoided
from eventing.replication.selectors.forwarding import Participation, participations
from eventing.replication.selectors.regions import region_of
from eventing.replication.selectors.route_modes import routes_mode, routes_switches
from eventing.replication.selectors.targets import participants_now, targets
from eventing.store.rp_routes import decision_store, decisions_stored, routed_rps, routes_forget
from eventing.telemetry import metrics

PLAN_S = 5.0
"""Seconds between two looks."""
COST = 0.05
"""Share of a core that planning may take; where plans are large, looks are rarer."""
ORIGINS_MAX = 8  # bound: origins of an RP whose events are planned for, its home first; others' go by the trees of their feeds alone
_encode = msgspec.msgpack.Encoder().encode
_read = msgpack_reader(RouteDecision)


class _Looks:
    """Time of the next look of this process."""

    def __init__(self) -> None:
        self.due_at = float("-inf")


_looks = per_process(_Looks)


def routes_plan(*, at_once: bool = False) -> int:
    """Decide about the routes of all RPs with a target, if it is time. Returns how many decisions changed.

    Raises redis.RedisError, DatabaseError.
    """
    looks, now = _looks(), time.monotonic()
    if not at_once and now < looks.due_at:
        return 0
    looks.due_at = now + PLAN_S
    began = time.thread_time()
    try:
        return _plan_all()
    finally:
        looks.due_at = max(looks.due_at, now + (time.thread_time() - began) / COST)


def _plan_all() -> int:
    targeted, switches = targets(), routes_switches()
    modes = {rp: routes_mode(rp, switches) for rp in targeted}
    wanted = {rp: target for rp, target in targeted.items() if modes[rp] != OFF}
    for rp in routed_rps():
        if rp not in wanted:
            _forget(rp, ended=rp not in targeted)
    if not wanted:
        _measured([])
        return 0
    at = timezone.now()
    who = participations(wanted)
    before = {rp: decision_read(data) for rp, data in decisions_stored(list(wanted)).items()}
    partners = sorted({peer for one in who.values() for peer in one.links})
    own, others = {link.peer: link for link in own_links(partners)}, others_links()
    changed, states = 0, list[str]()
    planned: dict[str, dict[str, frozenset[str]]] = {}
    for rp, target in wanted.items():
        feeds = feed_origins(rp)
        decision = _decide(rp, target, who[rp], {*feeds.values()}, own, others, before[rp], at)
        if decision is None:
            continue
        if modes[rp] == APPLY:
            states.append(decision.state)
        if decision is not before[rp]:
            decision_store(rp, _encode(decision))
            with change(at) as outbox:
                decision_report(rp, before[rp], decision, modes[rp], outbox)
            changed += 1
        for peer in who[rp].links:
            chosen = _planned(decision, feeds, peer) if modes[rp] == APPLY else frozenset()
            planned.setdefault(peer, {})[rp] = chosen
    for peer, of in planned.items():
        _apply(peer, of)
    _measured(states)
    return changed


def _measured(states: Sequence[str]) -> None:
    for state in STATES:
        metrics.TARGETS.labels(state).set(states.count(state))


def decision_of(rp: str) -> RouteDecision | None:
    """Return the decision in force at an RP. Raises redis.RedisError."""
    return decision_read(decisions_stored([rp])[rp])


def decisions_of(rps: Sequence[str]) -> dict[str, RouteDecision]:
    """Return the decisions in force at those of these RPs that have one. Raises redis.RedisError."""
    found = ((rp, decision_read(data)) for rp, data in decisions_stored(rps).items())
    return {rp: decision for rp, decision in found if decision is not None}


def decision_read(data: bytes | None) -> RouteDecision | None:
    """Decode a stored decision; None without one, and for one of another format, which is made anew."""
    if data is None:
        return None
    try:
        decision = _read(data)
    except Undecodable:
        return None
    return decision if decision.format == FORMAT else None


def _decide(
    rp: str,
    target: float,
    who: Participation,
    publishing: Collection[str],
    own: Mapping[str, MeasuredLink],
    others: Mapping[str, list[MeasuredLink]],
    before: RouteDecision | None,
    at: datetime,
) -> RouteDecision | None:
    participants = participants_now(who, at)
    if len(participants) < 2 or config().domain not in participants:
        return None
    known = _known(who, participants, own, others, at)
    origins = dict.fromkeys((who.home, config().domain, *sorted(publishing)))
    return routes_decide(
        known,
        participants=participants,
        origins=[one for one in origins if one in participants][:ORIGINS_MAX],
        target=target,
        before=before,
        now=at.timestamp(),
    )


def routes_known(rp: str) -> tuple[str, tuple[str, ...], KnownRoutes]:
    """Return the home of an RP, its participants, and what is known of the links between them now. Raises redis.RedisError."""
    at, who = timezone.now(), participations([rp])[rp]
    own = {link.peer: link for link in own_links(sorted(who.links))}
    participants = participants_now(who, at)
    return who.home, participants, _known(who, participants, own, others_links(), at)


def _known(
    who: Participation,
    participants: Sequence[str],
    own: Mapping[str, MeasuredLink],
    others: Mapping[str, list[MeasuredLink]],
    at: datetime,
) -> KnownRoutes:
    shunned, region = avoided(), region_of(who, at)
    links = dict(others)
    links[config().domain] = [own[peer] for peer in who.links if peer in own and shunned.chooses(region, peer)]
    return known_routes(participants, links, traits(participants))


def _planned(decision: RouteDecision, feeds: Mapping[str, str], peer: str) -> frozenset[str]:
    """Return the feeds, given with their origins, that the link of this domain with a peer is planned for."""
    me = config().domain
    ends = (min(me, peer), max(me, peer))
    chosen = decision.chosen
    return frozenset(feed for feed, origin in feeds.items() if ends in chosen.get(origin, ()))


def _apply(peer: str, planned: Mapping[str, frozenset[str]]) -> None:
    """Plan these feeds, by RP, on the links with a peer, and send what newly eager links lack."""
    links = watermarks.links_read(peer, list(planned))
    changing = [rp for rp, link in links.items() if link.tree.planned != planned[rp]]
    watermarks.links_change(peer, changing, lambda rp, link: broadcast.planned(link, planned[rp]))
    if changing:
        wakeups.wake(peer, changing)


def _forget(rp: str, *, ended: bool) -> None:
    """End the routes of an RP; `ended`: it has no target any more, or does not exist, so that its arrivals are forgotten too."""
    decision = decision_of(rp)
    for peer in participations([rp])[rp].links:
        _apply(peer, {rp: frozenset()})
    routes_forget(rp, decision.participants if ended and decision is not None else ())
