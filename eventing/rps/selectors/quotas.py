"""What principals and the domain hold of what is limited: read before something is admitted, and for /api/v1/limits."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Sum

from eventing.rps.models import RendezvousPoint
from eventing.subscriptions.models import Subscription


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


def rps_in_domain() -> int:
    """RPs of the domain, replicas of others' among them."""
    return RendezvousPoint.objects.count()


def subscriptions_in_domain() -> int:
    """Durable subscriptions of the domain."""
    return Subscription.objects.count()


def rps_of(identity: str) -> tuple[int, int]:
    """RPs that the principal has created, and the bytes of history that they reserve."""
    rows = RendezvousPoint.objects.filter(creator=identity)
    sums = rows.aggregate(rps=Count("*"), history_bytes=Sum("max_bytes"))
    return sums["rps"], sums["history_bytes"] or 0


def subscriptions_of(identity: str) -> int:
    """Durable subscriptions that the principal owns."""
    return Subscription.objects.filter(owner=identity).count()


def subscriptions_at(rp: str) -> int:
    """Durable subscriptions at the RP."""
    return Subscription.objects.filter(at=rp).count()
