"""Bounds of the data plane: trimming histories by age, and removing logs without an RP."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice

from django.utils import timezone

from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMINS, admin_id
from eventing.log import control
from eventing.outbox import administrative_events as events
from eventing.outbox.administrative_events import ADMIN_HISTORY
from eventing.outbox.services import change
from eventing.rps.models import RendezvousPoint

TRIM_EVERY_S = 30  # seconds between two trims of an RP; readers never see events beyond the bound
# About 1 s of Redis round trips.
TRIM_BATCH = 2000  # bound: RPs trimmed by one call; the others are left to the next run
SWEEP_BATCH = 500  # logs compared with the database at a time


def histories_trim(*, now: datetime | None = None) -> int:
    """Trim by age the histories that were not trimmed for TRIM_EVERY_S, longest first; report the removed events.

    Events that appends removed by count or bytes since the last report are included. Administrative RPs' histories are
    trimmed too, unreported: they have no administrative RP. Returns the number of events that left the reported
    histories. Raises redis.RedisError.
    """
    now = now or timezone.now()
    due = RendezvousPoint.objects.filter(trimmed_at__lte=now - timedelta(seconds=TRIM_EVERY_S)).order_by("trimmed_at")
    rps = list(due.values_list("id", flat=True)[:TRIM_BATCH])
    for rp in DOMAIN_ADMINS:
        control.trim_log(rp)
    trimmed = {rp: control.trim_log(rp) for rp in rps}
    for rp in rps:
        control.trim_log(admin_id(rp))
    _renew_admin_bounds(rps)
    reported = [rp for rp in rps if trimmed[rp].removed]
    logs = dict(zip(reported, control.log_states(reported), strict=True))
    with change(now) as outbox:
        still_there = set(RendezvousPoint.objects.filter(id__in=reported).values_list("id", flat=True))
        for rp in reported:
            log = logs[rp]
            if rp in still_there and log is not None:
                data = {"removed": trimmed[rp].removed, **events.log_data(log)}
                outbox.event(events.HISTORY_TRIMMED, rp, data)
        RendezvousPoint.objects.filter(id__in=rps).update(trimmed_at=now)
    return sum(trimmed[rp].removed for rp in reported)


def _renew_admin_bounds(rps: Sequence[str]) -> None:
    """Set the present bounds of administrative logs, which otherwise keep those of their creation."""
    administrative = list(map(admin_id, rps))
    for rp, events_max in zip(administrative, control.events_max_all(administrative), strict=True):
        if events_max not in (None, ADMIN_HISTORY.max_events):
            control.ensure_log(rp, ADMIN_HISTORY)


def logs_sweep() -> int:
    """Remove logs without an RP, left by a crash, or by a publish during the deletion of its RP. Returns their number.

    A log is made only after its RP is committed, and the database is read after the log was found: so a log without an
    RP then is orphaned. Raises redis.RedisError.
    """
    removed = 0
    logs = control.logs()
    while batch := list(islice(logs, SWEEP_BATCH)):
        for rp in _orphans(batch):
            control.delete_log(rp)
            removed += 1
    return removed


def _orphans(logs: Iterable[str]) -> list[str]:
    owners = {log: log.removesuffix(ADMIN_SUFFIX) for log in logs if log not in DOMAIN_ADMINS}
    known = set(RendezvousPoint.objects.filter(id__in=set(owners.values())).values_list("id", flat=True))
    return [log for log, owner in owners.items() if owner not in known]
