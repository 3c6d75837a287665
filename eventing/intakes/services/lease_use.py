"""Use of intakes: a webhook that was published. Its time is noted, and it renews the lease. Called by gateways for many at
once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from django.utils import timezone

from eventing.conf import config
from eventing.intakes.models import Intake
from eventing.intakes.selectors.intakes import intakes_in
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.sql.leases import LEASE_COLUMNS, lease_renew, renewed_from
from eventing.store.intake_uses import intake_uses_write

USE_BATCH = 200  # bound: leases of intakes renewed by use in one transaction; the others are in the next transaction


def intakes_used(uses: Mapping[tuple[str, str], int]) -> None:
    """Note the last use, Unix seconds, of intakes, each given with its RP before its id. Raises redis.RedisError.

    Use renews the lease, so a time that is older than the longest lease belongs to no intake any more.
    """
    intake_uses_write(uses, config().lease_s_max)


def intakes_use(ids: Collection[str], *, now: datetime | None = None) -> None:
    """Renew the leases of used intakes; those that are not due, or have expired, are left. Safe to call twice."""
    now = now or timezone.now()
    ordered = sorted(ids)
    for begin in range(0, len(ordered), USE_BATCH):
        due = [
            row.id
            for row in intakes_in(ordered[begin : begin + USE_BATCH], now)
            if renewed_from(row) <= now.timestamp()
        ]
        if not due:
            continue
        with change(now) as outbox:
            for row in Intake.objects.filter(id__in=due, expires_at__gt=now).select_for_update().order_by("id"):
                if renewed_from(row) <= now.timestamp():
                    lease_renew(row, row.asked_again_s, now)
                    row.save(update_fields=LEASE_COLUMNS)
                    outbox.announce(row.rp_id)
                    outbox.lease_event(events.LEASE_RENEWED, row)
