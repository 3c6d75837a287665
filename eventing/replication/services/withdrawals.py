"""Withdrawals: admissions that the home withdrew, kept until the domain concerned has been notified.

Nothing is sent over links any more to a domain that is no longer admitted, and it would serve on under the last policy
that it received. The life of a withdrawal: the home withdraws an admission, or a replica receives that -> each notifies
the domain if it is a peer, the replicas because the home may not be one (replication/joining/announcements.py) -> the
domain states that it does not participate, or is admitted again, or its lease would have expired: the withdrawal is
settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from eventing.peering.selectors.partners import partners
from eventing.replication.models import ReplicaAdmission
from eventing.rps.rules.statements import Admission
from eventing.sql.leases import is_due
from eventing.sql.remembered import remembered

TELL_BATCH = 100  # bound: withdrawn admissions sent in one sweep; the others are left to the next sweep
AGAIN_FRACTION = 0.1  # of the time since the withdrawal, between two attempts: a domain that was down for long is notified a little later
AGAIN_S_MIN = 2
# bound: seconds between two attempts to send a withdrawal; the withdrawal is sent again, until the lease would have ended
AGAIN_S_MAX = 300


def withdrawal(held: ReplicaAdmission | None, admission: Admission, now: datetime) -> dict[str, Any]:
    """Return the columns that state whether a domain is to be notified of `admission`, which replaces `held`: when
    next, and until when, which is for as long as the domain might serve on.
    """
    until = None if held is None else held.tell_until if held.revoked else held.expires_at
    if admission.publishes or until is None or until <= now:
        return {"tell_at": None, "tell_until": None}
    return {"tell_at": now, "tell_until": until}


def withdrawals_due(*, now: datetime | None = None) -> list[ReplicaAdmission]:
    """Return withdrawals that peers are to be notified of now, by domain; at most TELL_BATCH, those that have waited
    longest.
    """
    now = now or timezone.now()
    if not is_due(_first_due(), now):
        return []
    rows = ReplicaAdmission.objects.filter(tell_at__lte=now, tell_until__gt=now)
    rows = rows.filter(domain__in=[peer.name for peer in partners()])
    return sorted(rows.order_by("tell_at")[:TELL_BATCH], key=lambda row: row.domain)


@remembered
def _first_due() -> datetime | None:
    rows = ReplicaAdmission.objects.exclude(tell_at=None).order_by("tell_at")
    return rows.values_list("tell_at", flat=True).first()


def withdrawals_try(rows: Iterable[ReplicaAdmission], *, now: datetime | None = None) -> None:
    """Record the attempt for these: without an acknowledgement they are due again later."""
    now = now or timezone.now()
    for row in rows:
        since_s = now.timestamp() - row.issued_at_ms / 1000
        again_s = min(max(since_s * AGAIN_FRACTION, AGAIN_S_MIN), AGAIN_S_MAX)
        _same(row).update(tell_at=now + timedelta(seconds=again_s))


def withdrawals_acknowledged(rows: Iterable[ReplicaAdmission]) -> None:
    """Record that the domain has acknowledged these."""
    for row in rows:
        _same(row).update(tell_at=None, tell_until=None)


def withdrawn_from(rp: str, now: datetime) -> Sequence[str]:
    """Return the domains that are still to be notified that they are no longer admitted to an RP."""
    rows = ReplicaAdmission.objects.filter(rp=rp, tell_at__isnull=False, tell_until__gt=now)
    return list(rows.values_list("domain", flat=True))


def _same(row: ReplicaAdmission) -> QuerySet[ReplicaAdmission]:
    """Return the row, if the home has issued no other statement since."""
    return ReplicaAdmission.objects.filter(pk=row.pk, issued_at_ms=row.issued_at_ms, tell_at__isnull=False)
