"""What principals and the domain hold of what is limited, for /api/v1/limits and for load samples."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Sum

from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.quotas import rps_of
from eventing.subscriptions.selectors.quotas import subscriptions_in_domain, subscriptions_of


@dataclass(frozen=True, slots=True)
class Held:
    """What is held; things whose lease has ended count until they are reaped, as what they reserve is held until then."""

    rps: int
    history_bytes: int
    subscriptions: int


def held_by(identity: str) -> Held:
    """What the principal with this identity holds."""
    rps, history_bytes = rps_of(identity)
    return Held(rps, history_bytes, subscriptions_of(identity))


def held_in_domain() -> Held:
    """What everybody holds."""
    sums = RendezvousPoint.objects.aggregate(rps=Count("id"), history_bytes=Sum("max_bytes"))
    return Held(sums["rps"], sums["history_bytes"] or 0, subscriptions_in_domain())
