"""Withdrawals: admissions that the home took back, kept to be told to the domain itself until it knows.

Nothing is sent over links any more to a domain that is no longer admitted, and it would serve on under the policy that it
heard of last. The life of a withdrawal: the home takes an admission back, or a replica takes that over -> each tells the
domain if it is a peer, the replicas because the home may not be one (replication/joining/announcements.py) -> it says
that it does not participate, or is admitted again, or its lease would be over anyway: there is nothing to tell any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from eventing.peering.selectors.peers import peers_active
from eventing.replication.models import ReplicaAdmission
from eventing.rps.rules.statements import Admission

TELL_BATCH = 100  # of one sweep
AGAIN_FRACTION = 0.1  # of the time since it was taken back, between two tries: who was away long is told a little later
AGAIN_S_MIN = 2
AGAIN_S_MAX = 300


def withdrawal(held: ReplicaAdmission | None, admission: Admission, now: datetime) -> dict[str, Any]:
    """The columns that say whether a domain is to be told of `admission`, which takes the place of `held`: when next, and
    for how long, which is for as long as it might serve on."""
    until = None if held is None else held.tell_until if held.revoked else held.expires_at
    if admission.publishes or until is None or until <= now:
        return {"tell_at": None, "tell_until": None}
    return {"tell_at": now, "tell_until": until}


def withdrawals_due(*, now: datetime | None = None) -> list[ReplicaAdmission]:
    """Withdrawals that peers are to be told of now, by domain; at most TELL_BATCH, those that wait longest."""
    now = now or timezone.now()
    rows = ReplicaAdmission.objects.filter(tell_at__lte=now, tell_until__gt=now)
    rows = rows.filter(domain__in=[peer.name for peer in peers_active()])
    return sorted(rows.order_by("tell_at")[:TELL_BATCH], key=lambda row: row.domain)


def withdrawals_try(rows: Iterable[ReplicaAdmission], *, now: datetime | None = None) -> None:
    """Note that these are being told: if the domain does not take them, they are due again later."""
    now = now or timezone.now()
    for row in rows:
        since_s = now.timestamp() - row.issued_at_ms / 1000
        again_s = min(max(since_s * AGAIN_FRACTION, AGAIN_S_MIN), AGAIN_S_MAX)
        _same(row).update(tell_at=now + timedelta(seconds=again_s))


def withdrawals_told(rows: Iterable[ReplicaAdmission]) -> None:
    """Note that the domain knows of these."""
    for row in rows:
        _same(row).update(tell_at=None, tell_until=None)


def withdrawn_from(rp: str, now: datetime) -> Sequence[str]:
    """The domains that are still to be told that they are no longer admitted to an RP."""
    rows = ReplicaAdmission.objects.filter(rp=rp, tell_at__isnull=False, tell_until__gt=now)
    return list(rows.values_list("domain", flat=True))


def _same(row: ReplicaAdmission) -> QuerySet[ReplicaAdmission]:
    """The row, if the home has said nothing else since."""
    return ReplicaAdmission.objects.filter(pk=row.pk, issued_at_ms=row.issued_at_ms, tell_at__isnull=False)
