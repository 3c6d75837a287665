"""Usage of quotas by principals and by the domain: RPs and their histories."""

from __future__ import annotations

from django.db.models import Count, Sum

from eventing.core.events.history import HistoryBounds
from eventing.rps.models import RendezvousPoint


def log_bounds(rp: str) -> HistoryBounds | None:
    """Return the history bounds of the RP with this id; None if there is no such RP."""
    row = RendezvousPoint.objects.filter(id=rp).first()
    return None if row is None else row.bounds


def rps_in_domain() -> int:
    """Count the RPs of the domain, including replicas of other domains'."""
    return RendezvousPoint.objects.count()


def rps_of(identity: str) -> tuple[int, int]:
    """Return the number of RPs that the principal has created, and the bytes of history that they reserve."""
    rows = RendezvousPoint.objects.filter(creator=identity)
    sums = rows.aggregate(rps=Count("*"), history_bytes=Sum("max_bytes"))
    return sums["rps"], sums["history_bytes"] or 0
