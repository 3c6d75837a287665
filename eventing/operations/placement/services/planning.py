"""One turn of the planner: observe, plan, record. A task calls it every few seconds; a second one side by side does nothing.

    observe (selectors/observation.py) -> the pure planner (rules/planner.py), from its stored state -> its steps are recorded as
    decisions, with their events, in the transaction that stores its state -> delays that it wants are measured -> alarms

A process that is killed in between has recorded all of it or nothing. What was decided is carried out by carrying.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from statistics import median
from typing import Any

import msgspec
from django.db import connection
from django.utils import timezone

from eventing.conf import config
from eventing.core.errors import ApplicationError
from eventing.core.modes import APPLY, OFF
from eventing.membership.models import DirectoryDomain
from eventing.operations.models import Alarm
from eventing.operations.placement.models import PlacedReplicaRow, PlacementDecision, PlannerRecord
from eventing.operations.placement.rules.loads import capacity_units
from eventing.operations.placement.rules.planner import PlacementPlanner
from eventing.operations.placement.rules.steps import LOAD, DelaysWanted, PlacementShortfall, PlacementStep
from eventing.operations.placement.rules.views import PlacementObserved
from eventing.operations.placement.selectors.bounds import bounds_all, bounds_in_force, domain_mode
from eventing.operations.placement.selectors.decisions import planner_state
from eventing.operations.placement.selectors.observation import SPREAD_S, observation, replicas_reached, rps_placed
from eventing.operations.placement.selectors.own_state import own_state
from eventing.operations.placement.services.decisions import decision_propose, decisions_expire
from eventing.operations.placement.services.following import replicas_follow
from eventing.operations.rules.alarms import PLACEMENT, Cleared, Output, Raised, Stated, Value
from eventing.operations.services.alarms import alarms_apply
from eventing.outbox.services import Outbox, change
from eventing.peering.wire.client import PeerError, call
from eventing.peering.wire.endpoints import PROBE
from eventing.peering.wire.messages import VERSION, encode
from eventing.periodic.services import run_require
from eventing.replication.joining.next_hops import next_hop_if_active
from eventing.replication.rules.reader_moves import BY_BALANCING, BY_PLACEMENT
from eventing.replication.services.reader_moves import reader_moves, readers_move

TURN_S_MIN = 1.0
RECORDED_S = 10.0
"""Seconds until a turn with nothing to plan is recorded again, with the pressure that people see."""
PROBES = 3
PROBE_S = 2.0  # bound: seconds for all probes of one domain; it counts as not measured
PROBING = 4
REDIRECTED_S = 15.0
"""Seconds over which readers are redirected to a replica that counts: below the 30 s for which a domain may be above its share."""
DELAYS_MAX = 1024  # bound: domains whose delay is remembered; those measured first are forgotten
log = logging.getLogger(__name__)


def placement_plan(*, now: datetime | None = None) -> int:
    """Do one turn. Returns how many decisions were recorded. Raises redis.RedisError."""
    now = now or timezone.now()
    bounds = bounds_all()
    if domain_mode(bounds) == OFF:
        with change(now) as outbox:
            record = PlannerRecord.objects.filter(id=1).first()
            if record is not None and record.shortfalls:
                record.shortfalls = []
                record.save(update_fields=["shortfalls"])
            decisions_expire(outbox)
        _alarms((), now)
        return 0
    own = own_state()
    record = PlannerRecord.objects.filter(id=1).first()
    delays = {} if record is None else {name: (one[0], one[1]) for name, one in record.delays.items()}
    if rps_placed():
        _count_reached(now)
        replicas_follow(now)
    seen = observation(own, delays, now, bounds)
    if record is not None and _rests(record, seen, now):
        return 0
    with change(now) as outbox:
        run_require()
        locked = PlannerRecord.objects.select_for_update().filter(id=1).first()
        if locked is not None and timedelta() <= now - locked.at < timedelta(seconds=TURN_S_MIN):
            return 0
        planner = PlacementPlanner(planner_state(locked))
        outputs = planner.handle(seen, now.timestamp())
        decided = _record(outputs, outbox)
        short = [one for one in outputs if isinstance(one, PlacementShortfall)]
        decisions_expire(outbox)
        _store(planner, seen, short, delays, now)
    bounds = bounds_all() if short else {}
    _alarms([one for one in short if bounds_in_force(one.rp, bounds).mode == APPLY], now)
    wanted = [name for one in outputs if isinstance(one, DelaysWanted) for name in one.domains]
    if wanted:
        _measure(wanted, now)
    return decided


def planner_told(
    *,
    refused: Iterable[str] = (),
    accepted: Iterable[str] = (),
    begun: PlacementStep | None = None,
    now: datetime,
) -> None:
    """Have the planner remember, within the caller's transaction, which domains refused or failed, which serve, and which step is
    begun.
    """
    record = PlannerRecord.objects.select_for_update().filter(id=1).first() or PlannerRecord(id=1, at=now)
    planner = PlacementPlanner(planner_state(record if record.state else None))
    for name in refused:
        planner.refused(name, now.timestamp())
    for name in accepted:
        planner.accepted(name)
    if begun is not None:
        planner.begun(begun, now.timestamp())
    record.state = msgspec.to_builtins(planner.state)
    record.save()


def _rests(record: PlannerRecord, seen: PlacementObserved, now: datetime) -> bool:
    """Return whether a turn would write what is written already, and the time: nothing is to be planned, as in the last turn."""
    is_recent = timedelta() <= now - record.at < timedelta(seconds=RECORDED_S)
    return is_recent and not record.shortfalls and PlacementPlanner(planner_state(record)).rests(seen)


def _record(outputs: Sequence[Any], outbox: Outbox) -> int:
    """Record the steps as decisions. They cost budget when they are begun (carrying.py)."""
    steps = [one for one in outputs if isinstance(one, PlacementStep)]
    bounds, decided = bounds_all() if steps else {}, 0
    for one in steps:
        approved = bounds_in_force(one.rp, bounds).mode == APPLY
        if decision_propose(one, outbox, approved=approved) is not None:
            decided += 1
    return decided


def _store(
    planner: PlacementPlanner,
    seen: PlacementObserved,
    short: Sequence[PlacementShortfall],
    delays: dict[str, tuple[float, float]],
    now: datetime,
) -> None:
    figures = {"pressure": seen.pressure, "predicted": planner.state.course.predicted(), "units": seen.units}
    PlannerRecord.objects.update_or_create(
        id=1,
        defaults={
            "state": msgspec.to_builtins(planner.state),
            "shortfalls": msgspec.to_builtins(list(short)),
            "seen": figures,
            "at": now,
        },
        create_defaults={
            "state": msgspec.to_builtins(planner.state),
            "shortfalls": msgspec.to_builtins(list(short)),
            "seen": figures,
            "delays": delays,
            "at": now,
        },
    )


def _count_reached(now: datetime) -> None:
    """Let replicas count whose vectors have reached the home's at their invitation."""
    waiting = list(PlacedReplicaRow.objects.filter(counted_at=None).order_by("id")[:100])
    for row in replicas_reached(waiting):
        with change(now):
            PlacedReplicaRow.objects.filter(id=row.id, counted_at=None).update(counted_at=now, marked_at=now)
            planner_told(accepted=[row.domain], now=now)
        _move_readers(row, now)


def _move_readers(row: PlacedReplicaRow, now: datetime) -> None:
    """Point the part of the readers here that a new replica is to have to the replicas, where it was placed for load; balancing that is
    under way does so by itself.
    """
    decision = PlacementDecision.objects.filter(id=row.decision).only("reason").first()
    if decision is None or decision.reason != LOAD:
        return
    if any(move.rp == row.rp and move.by == BY_BALANCING for move in reader_moves(now=now)):
        return
    counting = PlacedReplicaRow.objects.filter(rp=row.rp, counted_at__isnull=False).values_list("domain", flat=True)
    classes = dict(DirectoryDomain.objects.filter(name__in=[*counting, row.domain]).values_list("name", "capacity"))
    units = {name: capacity_units(classes.get(name, 1)) for name in (*counting, row.domain)}
    share = units[row.domain] / (capacity_units(config().capacity) + sum(units.values()))
    until = now + timedelta(seconds=SPREAD_S)
    try:
        why = f"A replica for load at {row.domain}."
        readers_move(rp=row.rp, share=share, until=until, spread_s=REDIRECTED_S, reason=why, by=BY_PLACEMENT, now=now)
    except ApplicationError as error:
        log.info("placement: readers of %s are not moved to %s: %s", row.rp, row.domain, error.detail)


def _measure(domains: Sequence[str], now: datetime) -> None:
    """Measure round-trip times, and store them for the next turn; a domain that does not answer backs off."""
    with ThreadPoolExecutor(PROBING, thread_name_prefix="placement") as threads:
        found = dict(zip(domains, threads.map(_probe, domains), strict=True))
    with change(now):
        record = PlannerRecord.objects.select_for_update().filter(id=1).first()
        if record is None:
            return
        measured = {name: [ms, now.timestamp()] for name, ms in found.items() if ms is not None}
        kept = sorted({**record.delays, **measured}.items(), key=lambda one: -one[1][1])[:DELAYS_MAX]
        record.delays = dict(kept)
        record.save(update_fields=["delays"])
        planner_told(refused=[name for name, ms in found.items() if ms is None], now=now)


def _probe(domain: str) -> float | None:
    """Return the median round-trip time of PROBES probes, milliseconds; None if the domain does not answer."""
    try:
        hop = next_hop_if_active(domain)
        if hop is None:
            return None
        until, times = time.monotonic() + PROBE_S, []
        for _ in range(PROBES):
            began = time.monotonic()
            if began >= until:
                break
            call(hop.url, hop.domain, PROBE, encode([VERSION]), max(0.1, until - began))
            times.append(1000 * (time.monotonic() - began))
        return round(median(times), 2) if times else None
    except PeerError as error:
        log.info("placement: %s does not answer a probe: %s", domain, error.detail)
        return None
    finally:
        connection.close()


def _alarms(short: Sequence[PlacementShortfall], now: datetime) -> None:
    """Raise alarms of what cannot be reached, and clear those of what can."""
    wanted = {f"{one.about} {one.rp}": one for one in short}
    open_ = set(Alarm.objects.filter(rule=PLACEMENT, cleared_at=None).values_list("about", flat=True))
    outputs: list[Output] = [
        Cleared(PLACEMENT, about, "The wanted placement can be reached, or is no longer wanted.")
        for about in sorted(open_ - set(wanted))
    ]
    for about, one in wanted.items():
        if about in open_:
            continue
        unit = "histories" if one.about == "histories" else "units of capacity"
        detail = f"The placement that {one.rp} needs for its {one.about} cannot be reached: {one.why}"
        values = (Value("reachable", round(one.reachable, 3), round(one.wanted, 3), unit),)
        outputs.append(
            Raised(
                Stated(
                    PLACEMENT, about, one.rp, PLACEMENT, "warning", detail, values, f"/rps/{one.rp}", now.timestamp()
                )
            )
        )
    alarms_apply(outputs, now=now)
