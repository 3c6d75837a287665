"""Reads for the console: many rendezvous points at once, by their ids, and the extents of their logs."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.utils import timezone

from eventing.core.principals import Principal
from eventing.log import control
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import Listed

EXTENTS_MAX = 100


def rendezvous_points_seen(
    *, principal: Principal, ids: Collection[str], now: datetime | None = None
) -> list[RendezvousPoint]:
    """Return those of `ids` (the first EXTENTS_MAX) that exist and that `principal` may describe."""
    wanted = list(ids)[:EXTENTS_MAX]
    rows = RendezvousPoint.objects.filter(id__in=wanted, expires_at__gt=now or timezone.now())
    return [row for row in rows if descriptor_of(row).allows(principal, "describe")]


def rendezvous_points_listed(
    *, principal: Principal, ids: Collection[str], now: datetime | None = None
) -> list[Listed]:
    """Return the result of rendezvous_points_seen with the extents of the logs."""
    seen = rendezvous_points_seen(principal=principal, ids=ids, now=now)
    logs = control.log_states([row.id for row in seen])
    return [Listed(row, log) for row, log in zip(seen, logs, strict=True)]
