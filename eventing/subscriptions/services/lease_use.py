"""Renewal of leases by use: of RPs that are published at and read, of durable subscriptions that are read.

The life of a renewal: an operation succeeds -> the gateway notes the use in memory, if the lease is old enough for use
to renew it (core/leases.py) -> within seconds the notes are passed to this module, many in one transaction -> the lease
counts from now for the duration that its owner asked for last, never ends earlier, and is reported as any renewal.

A note that is lost with its process does no harm: use renews a lease with three quarters left, and the next use does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from django.utils import timezone

from eventing.conf import config
from eventing.log.shared_subscriptions import SubscriptionKey, read_all
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.overlay import takeover
from eventing.rps.models import RendezvousPoint
from eventing.sql.leases import LEASE_COLUMNS, lease_renew, renewed_from
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.services.shared_subscriptions import now_ms, shared_changed

# Two events each, and an announcement for those of RPs.
USE_BATCH = 200  # bound: leases renewed by use in one transaction; the others are in the next transaction


def leases_use(
    *, rps: Collection[str] = (), subscriptions: Collection[str] = (), now: datetime | None = None
) -> dict[str, float]:
    """Renew the leases of used RPs and durable subscriptions; those that are not due, or have expired, are left.

    Safe to call at any time, twice, and concurrently.

    Returns: By id, from when on use renews the lease again, Unix seconds; without those that no longer exist.

    Raises redis.RedisError if the delivering domain of a shared subscription cannot be read.
    """
    now = now or timezone.now()
    found: dict[str, float] = {}
    for some in _batches(rps):
        found |= _rps_use(some, now)
    for some in _batches(subscriptions):
        found |= _subscriptions_use(some, now)
    return found


def _rps_use(ids: Sequence[str], now: datetime) -> dict[str, float]:
    rows = RendezvousPoint.objects.filter(id__in=ids, expires_at__gt=now)
    found = {row.id: renewed_from(row) for row in rows}
    if due := [one for one, begin in found.items() if begin <= now.timestamp()]:
        with change(now) as outbox:
            for row in rows.filter(id__in=due).select_for_update().order_by("id"):
                if renewed_from(row) <= now.timestamp():
                    _renew(row, outbox)
                    outbox.announce(row.id)
                found[row.id] = renewed_from(row)
    return found


def _subscriptions_use(ids: Sequence[str], now: datetime) -> dict[str, float]:
    rows = Subscription.objects.filter(id__in=ids, expires_at__gt=now)
    found = {row.id: renewed_from(row) for row in rows if _renewable(row, now)}
    if due := [one for one, begin in found.items() if begin <= now.timestamp()]:
        with change(now) as outbox:
            for row in rows.filter(id__in=due).select_for_update().order_by("id"):
                if renewed_from(row) <= now.timestamp():
                    _renew(row, outbox)
                    shared_changed(row, now)
                found[row.id] = renewed_from(row)
    return found


def _renew(row: RendezvousPoint | Subscription, outbox: Outbox) -> None:
    lease_renew(row, row.asked_again_s, outbox.now)
    row.save(update_fields=LEASE_COLUMNS)
    outbox.lease_event(events.LEASE_RENEWED, row)


def _renewable(row: Subscription, now: datetime) -> bool:
    """Return whether a renewal here reaches all holders of a shared subscription: at its keeper, and where it is
    delivered.
    """
    if row.keeper in ("", config().domain):
        return True
    standing = read_all([SubscriptionKey(row.at, row.id)])[0].standing
    return standing is not None and takeover.delivers(standing, config().domain, now_ms(now))


def _batches(ids: Collection[str]) -> list[list[str]]:
    ordered = sorted(ids)
    return [ordered[begin : begin + USE_BATCH] for begin in range(0, len(ordered), USE_BATCH)]
