"""Reads of watch rules: those of the domain, and all that are in force."""

from __future__ import annotations

from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from django.db.models import Count, Max
from django.utils import timezone

from eventing.rps.models import DomainWatches, RendezvousPoint
from eventing.rps.rules.watches import WATCHED_RPS_MAX, Rule, rules_of


class Watched(NamedTuple):
    """An RP with rules: what it is called, when it was made, and its rules, audiences among them."""

    rp: str
    label: str
    created_at: datetime
    rules: tuple[Rule, ...]


class InForce(NamedTuple):
    """All rules of the domain and its RPs."""

    domain: tuple[Rule, ...]
    rps: tuple[Watched, ...]


def domain_watches() -> DomainWatches | None:
    """The row of the domain's rules; None if there never were any."""
    return DomainWatches.objects.filter(id=1).first()


def watched_rps() -> int:
    """How many RPs have rules."""
    return RendezvousPoint.objects.exclude(watched_at=None).count()


def rules_stamp() -> tuple[object, ...]:
    """Changes whenever a rule does, an RP with rules ends or is renamed; cheap where there are none."""
    rows = RendezvousPoint.objects.exclude(watched_at=None)
    own = DomainWatches.objects.values_list("version", flat=True).first()
    return own, *rows.aggregate(watched=Max("watched_at"), changed=Max("changed_at"), count=Count("id")).values()


def rules_in_force(*, now: datetime | None = None) -> InForce:
    """The rules. RPs whose lease has ended are still there until they are reaped: their rules say nothing any more."""
    now = now or timezone.now()
    own = domain_watches()
    rows = RendezvousPoint.objects.exclude(watched_at=None).filter(expires_at__gt=now)
    # Ordered as the index of the few that are watched has them: the others are not read.
    ordered = rows.order_by("watched_at", "id")
    columns = ordered.values_list("id", "name", "created_at", "watch", "audience")[:WATCHED_RPS_MAX]
    return InForce(
        tuple(rules_of("", own.watch)) if own else (),
        tuple(
            Watched(rp, name or rp, created_at, tuple(rules_of(rp, watch, audience)))
            for rp, name, created_at, watch, audience in sorted(columns, key=itemgetter(0))
        ),
    )
