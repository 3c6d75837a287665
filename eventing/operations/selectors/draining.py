"""Reads of draining: the drain under way, and what this domain still has to hand over."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import NamedTuple

import msgspec
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from eventing.conf import config
from eventing.core.decoding import Undecodable, json_reader
from eventing.operations.models import DomainDrain
from eventing.operations.rules.draining import HomeCandidate, homes_in_order
from eventing.replication.joining.presenters import replicas_shown
from eventing.replication.models import ReplicaAdmission
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.home_terms import plan_in_force
from eventing.sql.remembered import remembered
from eventing.store.load import rps_loads
from eventing.store.presence import gateways_alive

RPS_MAX = 1000  # bound: RPs that one sweep of a drain looks at; the others are left to the next sweeps
READ_RPS_MAX = (
    10_000  # bound: RPs whose readers a drain counts and moves; readers of the others stay until the domain stops
)


class SampledReadings(msgspec.Struct):
    """The member of an RP's sample that states its readers (operations/samples/flow_samples.py)."""

    readings: int = 0


_read = json_reader(SampledReadings)


def drain_latest() -> DomainDrain | None:
    """Return the latest drain; None: there was none."""
    return DomainDrain.objects.filter(id=1).first()


def drain_active(*, now: datetime | None = None) -> DomainDrain | None:
    """Return the drain under way; None for none."""
    last = _last_drain()
    if last is None or last.ended_at is not None or last.until <= (now or timezone.now()):
        return None
    return DomainDrain.objects.filter(id=1, ended_at=None, until__gt=now or timezone.now()).first()


@remembered
def _last_drain() -> DomainDrain | None:
    return DomainDrain.objects.filter(id=1).first()


def draining() -> bool:
    """Return whether a drain is under way."""
    return drain_active() is not None


class OwnHomes(NamedTuple):
    """RPs whose home this domain is: those to hand over now, their number in all, and the number of those that stay."""

    rows: list[RendezvousPoint]
    left: int
    staying: int


def own_homes(drain: DomainDrain, now: datetime) -> OwnHomes:
    """Return the RPs of this domain that a drain hands over: others participate, and not too many refused."""
    rows = RendezvousPoint.objects.filter(home="", expires_at__gt=now)
    admitted = ReplicaAdmission.objects.filter(rp=OuterRef("pk"), revoked=False, expires_at__gt=now)
    refused = RendezvousPoint.objects.filter(id__in=list(drain.refusals), home="")
    given_up = [row.id for row in refused if not homes_in_order(home_candidates(row), drain.refusals[row.id])]
    shared = rows.filter(Exists(admitted)).exclude(descriptor=None).exclude(id__in=given_up)
    left = shared.count()
    return OwnHomes(list(shared.order_by("id")[:RPS_MAX]), left, rows.count() - left)


def home_candidates(row: RendezvousPoint) -> list[HomeCandidate]:
    """Return the participants that may become the home of an RP of this domain."""
    plan = plan_in_force(row.home_record)
    order = [one.domain for one in plan.electors] if plan is not None else []
    own = config().domain
    return [
        HomeCandidate(one.domain, order.index(one.domain) if one.domain in order else None, one.backlog)
        for one in replicas_shown(row)
        if one.domain != own
    ]


def readers_left(now: datetime) -> Counter[str]:
    """Return the readers here of each RP that other domains serve too; RPs without any are left out. Raises redis.RedisError."""
    admitted = ReplicaAdmission.objects.filter(rp=OuterRef("pk"), revoked=False, expires_at__gt=now)
    shared = RendezvousPoint.objects.filter(expires_at__gt=now).filter(~Q(home="") | Exists(admitted)).order_by("id")
    alive, found = set(gateways_alive(now)), Counter[str]()
    for rp, rows in rps_loads(list(shared.values_list("id", flat=True)[:READ_RPS_MAX])).items():
        for gateway, row in rows.items():
            try:
                found[rp] += _read(row).readings if gateway in alive else 0
            except Undecodable:
                continue
    return +found
