"""Keeping the data plane within bounds: trimming histories by age, and removing logs that no RP owns any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import islice

from django.utils import timezone

from eventing.core.ids import ADMIN_SUFFIX, DOMAIN_ADMIN, admin_id
from eventing.log import control
from eventing.outbox import administrative_events as events
from eventing.outbox.administrative_events import ADMIN_HISTORY
from eventing.outbox.services import change
from eventing.rps.models import RendezvousPoint
from eventing.store import keys

TRIM_EVERY_S = 30  # how long an RP is left alone after it was looked at; readers never see what is older than its bound
TRIM_BATCH = 2000  # RPs of one call: ~1 s of Redis round trips
SWEEP_BATCH = 500  # logs compared with the database at a time


def histories_trim(*, now: datetime | None = None) -> int:
    """Trim by age the histories that were not looked at for TRIM_EVERY_S, longest first; report what left them.

    What appends dropped by count or bytes since the last look is in the report as well. Administrative RPs' histories
    are trimmed along, unreported: they have no administrative RP. Returns how many events left the reported histories.
    Raises redis.RedisError.
    """
    now = now or timezone.now()
    due = RendezvousPoint.objects.filter(trimmed_at__lte=now - timedelta(seconds=TRIM_EVERY_S)).order_by("trimmed_at")
    rps = list(due.values_list("id", flat=True)[:TRIM_BATCH])
    control.trim_log(DOMAIN_ADMIN)
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
    """A log keeps the bounds it was made with: give administrative ones those of today, should they have changed."""
    pipeline = control.client().pipeline(transaction=False)
    for rp in rps:
        pipeline.hget(keys.meta_key(admin_id(rp)), "m")
    today = str(ADMIN_HISTORY.max_events).encode()
    for rp, events_max in zip(rps, pipeline.execute() if rps else (), strict=True):
        if events_max is not None and events_max != today:
            control.ensure_log(admin_id(rp), ADMIN_HISTORY)


def logs_sweep() -> int:
    """Remove logs whose RP is gone: left by a crash, or by a publish that was under way when it went. Returns how many.

    A log is made only after its RP is committed, and the database is asked after the log was seen: so what has no RP
    then has none any more. Raises redis.RedisError.
    """
    removed = 0
    logs = control.logs()
    while batch := list(islice(logs, SWEEP_BATCH)):
        for rp in _orphans(batch):
            control.delete_log(rp)
            removed += 1
    return removed


def _orphans(logs: Iterable[str]) -> list[str]:
    owners = {log: log.removesuffix(ADMIN_SUFFIX) for log in logs if log != DOMAIN_ADMIN}
    known = set(RendezvousPoint.objects.filter(id__in=set(owners.values())).values_list("id", flat=True))
    return [log for log, owner in owners.items() if owner not in known]
