"""Reads of watch rules: those of the domain, and all in force."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from django.db.models import Count, Max
from django.utils import timezone

from eventing.rps.models import DomainWatches, RendezvousPoint
from eventing.rps.rules.watches import WATCHED_RPS_MAX, WatchRule, rules_of
from eventing.sql.remembered import remembered


class Watched(NamedTuple):
    """An RP with rules: its name, the time of its creation, and its rules, including audiences."""

    rp: str
    label: str
    created_at: datetime
    rules: tuple[WatchRule, ...]


class InForce(NamedTuple):
    """All rules of the domain and its RPs."""

    domain: tuple[WatchRule, ...]
    rps: tuple[Watched, ...]


def domain_watches() -> DomainWatches | None:
    """Return the row of the domain's rules; None if there never were any."""
    return DomainWatches.objects.filter(id=1).first()


def watched_rps() -> int:
    """Count the RPs with rules."""
    return RendezvousPoint.objects.exclude(watched_at=None).count()


def watches_stated(rps: Collection[str]) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Return id, label and stated rules of each of these RPs."""
    rows = RendezvousPoint.objects.filter(id__in=rps).values_list("id", "name", "watch")
    return ((rp, name or rp, watch) for rp, name, watch in rows)


def rules_latest(rp: str | None, count: int) -> Iterator[tuple[datetime, WatchRule]]:
    """Return the rules of the RP (None: of all), each with the time of its change, of the `count` RPs changed last."""
    rows = RendezvousPoint.objects.exclude(watched_at=None)
    rows = rows if rp is None else rows.filter(id=rp)
    columns = rows.order_by("-watched_at").values_list("id", "watch", "audience", "watched_at")[:count]
    return ((since, rule) for of, watch, who, since in columns if since for rule in rules_of(of, watch, who))


@remembered
def rules_stamp() -> tuple[object, ...]:
    """Return a value that changes whenever a rule changes, or an RP with rules ends or is renamed; cheap without rules."""
    rows = RendezvousPoint.objects.exclude(watched_at=None)
    own = DomainWatches.objects.values_list("version", flat=True).first()
    return own, *rows.aggregate(watched=Max("watched_at"), changed=Max("changed_at"), count=Count("id")).values()


def rules_in_force(*, now: datetime | None = None) -> InForce:
    """Return the rules in force. RPs whose lease has ended exist until they are reaped, but their rules no longer count."""
    now = now or timezone.now()
    own = domain_watches()
    rows = RendezvousPoint.objects.exclude(watched_at=None).filter(expires_at__gt=now)
    # Ordered like the index of the few watched RPs: the others are not read.
    ordered = rows.order_by("watched_at", "id")
    columns = ordered.values_list("id", "name", "created_at", "watch", "audience")[:WATCHED_RPS_MAX]
    return InForce(
        tuple(rules_of("", own.watch)) if own else (),
        tuple(
            Watched(rp, name or rp, created_at, tuple(rules_of(rp, watch, audience)))
            for rp, name, created_at, watch, audience in sorted(columns, key=itemgetter(0))
        ),
    )
