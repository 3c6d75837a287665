"""Warnings of leases that expire soon, and reaping of expired ones, in bounded batches, each reported on its admin RP.

Both are safe to run at any time, twice, and concurrently: a row is processed under its lock, and rows renewed or
removed meanwhile no longer match.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeVar

from django.db.models import QuerySet
from django.utils import timezone

from eventing.intakes.models import Intake
from eventing.intakes.services import intakes
from eventing.operations.services.losses import rp_expired
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.rps.models import RendezvousPoint
from eventing.rps.services import rendezvous_points
from eventing.sql.leases import expires_first, is_due, warns_first
from eventing.sql.locking import locked_batch
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.selectors.losses import losses_at, losses_of
from eventing.subscriptions.services import subscriptions
from eventing.telemetry import metrics

Leased = TypeVar("Leased", RendezvousPoint, Subscription, Intake)

# A batch's effects are about 1,000 Redis calls, well under a second.
REAP_BATCH = 200  # bound: rows of one transaction of the reaper; the others are in the next batch
REAP_ROUNDS_MAX = 10  # bound: batches of one call of the reaper; the others are left to the next run
WARN_BATCH = 500


def leases_reap(*, now: datetime | None = None) -> int:
    """Remove RPs, subscriptions and intakes whose lease has expired. Returns how many."""
    now = now or timezone.now()
    reaped = 0
    for _ in range(REAP_ROUNDS_MAX):
        batch = subscriptions_expire(now=now) + intakes_expire(now=now) + rendezvous_points_expire(now=now)
        reaped += batch
        metrics.LEASES_REAPED.inc(batch)
        if batch < REAP_BATCH:
            break
    return reaped


def rendezvous_points_expire(*, now: datetime) -> int:
    """Remove one batch of RPs whose lease has expired, with their history and subscriptions. Returns how many."""
    ended = RendezvousPoint.objects.filter(expires_at__lte=now).order_by("expires_at")
    if not is_due(expires_first(RendezvousPoint), now):
        return 0
    with_subscriptions = ended.filter(subscriptions__isnull=False).values_list("id", flat=True).distinct()
    found = {rp: losses_at(rp) for rp in with_subscriptions[:REAP_BATCH]}  # Redis is read before SQL is locked
    with change(now) as outbox:
        rows = locked_batch(ended, REAP_BATCH)
        for row in rows:
            outbox.lease_event(events.LEASE_EXPIRED, row)
            rp_expired(row, outbox, found.get(row.id, {}))
            rendezvous_points.remove(row, outbox, "lease-expired")
    return len(rows)


def subscriptions_expire(*, now: datetime) -> int:
    """Remove one batch of subscriptions whose lease has expired. Returns how many."""
    ended = Subscription.objects.filter(expires_at__lte=now).order_by("expires_at")
    if not is_due(expires_first(Subscription), now):
        return 0
    found = losses_of(ended.values_list("id", flat=True)[:REAP_BATCH])  # Redis is read before SQL is locked
    with change(now) as outbox:
        rows = locked_batch(ended, REAP_BATCH)
        for row in rows:
            outbox.lease_event(events.LEASE_EXPIRED, row)
            subscriptions.remove(row, outbox, "lease-expired", lag=found.get(row.id))
    return len(rows)


def intakes_expire(*, now: datetime) -> int:
    """Remove one batch of intakes whose lease has expired. Returns how many."""
    ended = Intake.objects.filter(expires_at__lte=now).order_by("expires_at")
    if not is_due(expires_first(Intake), now):
        return 0
    with change(now) as outbox:
        rows = locked_batch(ended, REAP_BATCH)
        for row in rows:
            outbox.lease_event(events.LEASE_EXPIRED, row)
            intakes.remove(row, outbox, "lease-expired")
    return len(rows)


def leases_warn(*, now: datetime | None = None) -> int:
    """Report leases that expire soon, once each, at most WARN_BATCH of each kind. Returns how many."""
    now = now or timezone.now()
    every = _warn(RendezvousPoint.objects.all(), now) + _warn(Subscription.objects.all(), now)
    return every + _warn(Intake.objects.all(), now)


def _warn(leased: QuerySet[Leased], now: datetime) -> int:
    due = leased.filter(warned_at=None, warn_at__lte=now, expires_at__gt=now).order_by("warn_at")
    if not is_due(warns_first(leased.model), now) or not due.exists():
        return 0
    with change(now) as outbox:
        rows = locked_batch(due, WARN_BATCH)
        for row in rows:
            outbox.lease_event(events.LEASE_WARNED, row)
        leased.filter(pk__in=[row.pk for row in rows]).update(warned_at=now)
    return len(rows)
