"""The planner's input, read from what this domain has: own load, map, replicas and their vectors, bounds, the placement report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from django.db.models import Q

from eventing.conf import config
from eventing.core.modes import OFF
from eventing.log.watermarks import links_read
from eventing.membership.selectors.directory import directory_record, directory_records_of
from eventing.membership.selectors.picture import known_now
from eventing.operations.placement.models import PlacedReplicaRow, PlacementBounds, PlacementDecision
from eventing.operations.placement.ports import placement_advice
from eventing.operations.placement.rules.decisions import APPROVED, WORKING
from eventing.operations.placement.rules.freshness import BEHIND_S, FreshnessMark, moved_share, reached
from eventing.operations.placement.rules.loads import capacity_units, claimed_pressure
from eventing.operations.placement.rules.views import (
    HeldReplica,
    PlacedDomain,
    PlacedRp,
    PlacementObserved,
    ReaderGroup,
)
from eventing.operations.placement.selectors.bounds import BoundsInForce, bounds_in_force
from eventing.operations.placement.selectors.own_state import OwnState
from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.load_rows import DomainLoad
from eventing.peering.models import Peer
from eventing.peering.rules.peers import PeeringState
from eventing.peering.selectors.peers import peers_active
from eventing.replication.models import ReplicaAdmission
from eventing.replication.rules.known_routes import traits_of
from eventing.replication.services.replica_admissions import may_replicate
from eventing.rps.models import RendezvousPoint
from eventing.sql.remembered import remembered

COUNTS_S = 120.0
"""Seconds within which a replica must reach the home's vector at its invitation; later it counts as failing."""
AWAITED_S = 30.0
"""Seconds for which an invited domain is planned with before it counts."""
JOINS_S = 60.0
"""Seconds within which an invited domain must be admitted."""
SPREAD_S = 60.0
"""Seconds in which readers move to a replica that counts (guess: redirects are jittered)."""
RPS_MAX = 200  # bound: RPs that are planned at once; those with least load and no bounds of their own are left out
DELAY_KEPT_S = 600.0
"""Seconds for which a measured delay is used."""


def observation(
    own: OwnState,
    delays: Mapping[str, tuple[float, float]],
    now: datetime,
    bounds: Mapping[str, PlacementBounds],
    *,
    off_too: bool = False,
) -> PlacementObserved:
    """Return the present state of things; other domains only where an RP may be placed there. Raises redis.RedisError, DatabaseError.

    Args:
        delays: round-trip times in milliseconds, and when they were measured (Unix seconds), by domain.
        bounds: all that were set, by RP.
        off_too: RPs that are switched off are included, for a dry run.
    """
    advice = placement_advice()
    rows = _rows(own, bounds, advice, now)
    if not off_too:
        rows = [row for row in rows if bounds_in_force(row.id, bounds).mode != OFF]
    peers = list(peers_active()) if rows else []
    domains = domains_observed(peers, delays, now)
    zones = {one.name: one.zone for one in domains}
    placed = _placed([row.id for row in rows])
    return PlacementObserved(
        home=PlacedDomain(
            name=config().domain,
            zone=config().zone,
            capacity=config().capacity,
            groups=_groups(config().base_url, directory_record(config().domain), config().zone, config().operator),
        ),
        pressure=own.pressure,
        units=own.units,
        domains=tuple(domains),
        rps=tuple(
            _rp(row, own, bounds_in_force(row.id, bounds), placed, peers, advice.get(row.id, []), zones, now)
            for row in rows
        ),
    )


def _rows(own: OwnState, bounds: Iterable[str], advice: Iterable[str], now: datetime) -> list[RendezvousPoint]:
    """Return own RPs with load, bounds, advice or replicas that were placed: the greatest load first."""
    every = [*sorted(own.rps, key=lambda rp: -own.rps[rp]), *bounds, *rps_placed(), *advice]
    named = list(dict.fromkeys(every))[:RPS_MAX]
    if not named:
        return []
    found = RendezvousPoint.objects.filter(id__in=named, home="", expires_at__gt=now, descriptor__isnull=False)
    return sorted(found, key=lambda row: (-own.rps.get(row.id, 0.0), row.id))


@remembered
def rps_placed() -> list[str]:
    """Return RPs with replicas that were placed, at most RPS_MAX."""
    return list(PlacedReplicaRow.objects.values_list("rp", flat=True).distinct()[:RPS_MAX])


def domains_observed(
    peers: Iterable[Peer], delays: Mapping[str, tuple[float, float]], now: datetime
) -> list[PlacedDomain]:
    """Return the active peers as the planner observes them."""
    peers = list(peers)
    if not peers:
        return []
    known = known_now(watching=False)
    names = [peer.name for peer in peers]
    stated = directory_records_of(names)
    found = []
    for peer in peers:
        record, load = stated.get(peer.name), known.seen.loads.get(peer.name)
        capacity = record.capacity if record is not None else 1
        zone = record.zone if record is not None else ""
        claim = None
        if load is not None:
            claim = DomainLoad(load.sessions, load.events_out_per_s, load.bytes_per_s, load.busy_permille)
        pressure = None if claim is None else claimed_pressure(claim, capacity)
        measured = delays.get(peer.name)
        fresh = measured is not None and now.timestamp() - measured[1] < DELAY_KEPT_S
        found.append(
            PlacedDomain(
                name=peer.name,
                zone=zone,
                capacity=capacity,
                pressure=pressure,
                room=capacity_units(capacity) * (1.0 - (pressure or 0.0)),
                groups=_groups(peer.url, record),
                willing=peer.name not in known.suspected,
                delay_ms=measured[0] if measured is not None and fresh else None,
            )
        )
    return found


def _groups(url: str, record: DomainRecord | None, zone: str = "", operator: str = "") -> tuple[str, ...]:
    """Return the shared risks of a domain: the host in its address and its address prefix, and by its record its zone, operator and sponsor.

    Args:
        zone, operator: of a domain without a record.
    """
    sponsorship = None if record is None else record.sponsorship
    zone, operator = (zone, operator) if record is None else (record.zone, record.operator)
    named = traits_of(url, zone, operator, "" if sponsorship is None else str(sponsorship.sponsor))
    return tuple(f"{kind}:{name}" for kind, name in {"host": urlsplit(url).hostname or "", **named}.items() if name)


def _placed(rps: list[str]) -> dict[str, dict[str, PlacedReplicaRow]]:
    found: dict[str, dict[str, PlacedReplicaRow]] = {}
    for row in PlacedReplicaRow.objects.filter(rp__in=rps).order_by("id"):
        found.setdefault(row.rp, {})[row.domain] = row
    return found


def _rp(
    row: RendezvousPoint,
    own: OwnState,
    bounds: BoundsInForce,
    placed: Mapping[str, Mapping[str, PlacedReplicaRow]],
    peers: Iterable[Peer],
    advised: list[str],
    zones: Mapping[str, str],
    now: datetime,
) -> PlacedRp:
    barred = [peer.name for peer in peers if not may_replicate(row, peer.name)]
    return PlacedRp(
        rp=row.id,
        units=own.rps.get(row.id, 0.0),
        replicas=tuple(_replicas(row, placed.get(row.id, {}), now)),
        readers=_readers(advised, zones),
        advised=tuple(advised),
        histories=bounds.histories,
        replicas_max=bounds.replicas_max,
        pinned=bounds.pinned,
        excluded=tuple(dict.fromkeys([*bounds.excluded, *barred])),
    )


def _readers(advised: list[str], zones: Mapping[str, str]) -> tuple[ReaderGroup, ...]:
    """Return the zones of the domains whose people read here, as the report names them."""
    found = list(dict.fromkeys(zones[name] for name in advised if zones.get(name)))
    return tuple(ReaderGroup(zone=zone, share=1 / len(found)) for zone in found)


def _replicas(row: RendezvousPoint, placed: Mapping[str, PlacedReplicaRow], now: datetime) -> Iterable[HeldReplica]:
    admitted = set(
        ReplicaAdmission.objects.filter(rp=row, revoked=False, expires_at__gt=now).values_list("domain", flat=True)
    )
    asked = PlacementDecision.objects.filter(rp=row.id, state__in=(APPROVED, WORKING)).first()
    pending = [] if asked is None else [name for name in asked.adds if name not in asked.progress]
    active = set(Peer.objects.filter(Q(state=PeeringState.ACTIVE)).values_list("name", flat=True))
    for name in sorted({*admitted, *placed, *pending}):
        one = placed.get(name)
        if one is None:
            yield HeldReplica(domain=name, counts=name in admitted)
            continue
        age = abs(now - one.invited_at)  # a clock that was set back does not make it young
        lost = name not in admitted and age > timedelta(seconds=JOINS_S)
        late = one.counted_at is None and age > timedelta(seconds=COUNTS_S)
        counts = one.counted_at is not None and name in admitted
        spread = 0.0 if one.counted_at is None else moved_share((now - one.counted_at).total_seconds(), SPREAD_S)
        behind = one.marked_at is not None and now - one.marked_at > timedelta(seconds=BEHIND_S)
        failing = lost or late or behind or name not in active
        awaited = one.counted_at is not None or age <= timedelta(seconds=AWAITED_S)
        yield HeldReplica(domain=name, counts=counts, ours=True, failing=failing, awaited=awaited, spread=spread)


def replicas_reached(rows: Iterable[PlacedReplicaRow]) -> list[PlacedReplicaRow]:
    """Return those whose vector has reached the home's at their invitation. Raises redis.RedisError."""
    found = []
    for row in rows:
        theirs = links_read(row.domain, [row.rp])[row.rp].theirs
        if reached(FreshnessMark(row.vector, row.invited_at.timestamp()), theirs):
            found.append(row)
    return found
