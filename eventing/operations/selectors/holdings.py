"""Numbers of limited objects of principals and the domain, for /api/v1/limits and for load samples."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Sum

from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.quotas import rps_of
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.selectors.quotas import subscriptions_in_domain, subscriptions_of


@dataclass(frozen=True, slots=True)
class Held:
    """Numbers of objects; expired ones count until they are reaped, as their reservations are held until then."""

    rps: int
    history_bytes: int
    subscriptions: int


def held_by(identity: str) -> Held:
    """Return the numbers for the principal with this identity."""
    rps, history_bytes = rps_of(identity)
    return Held(rps, history_bytes, subscriptions_of(identity))


def largest_holders(each: int) -> dict[str, Held]:
    """Return the principals that hold most, by identity: of each kind of object the `each` greatest, those with most history first."""
    created = RendezvousPoint.objects.values("creator").annotate(rps=Count("*"), history_bytes=Sum("max_bytes"))
    owned = Subscription.objects.values("owner").annotate(subscriptions=Count("*"))
    names = {
        row["creator"] for order in ("-rps", "-history_bytes") for row in created.order_by(order, "creator")[:each]
    }
    names |= {row["owner"] for row in owned.order_by("-subscriptions", "owner")[:each]}
    found = {name: held_by(name) for name in names}
    return dict(sorted(found.items(), key=lambda one: (-one[1].history_bytes, -one[1].rps, one[0])))


def held_in_domain() -> Held:
    """Return the numbers for the domain."""
    sums = RendezvousPoint.objects.aggregate(rps=Count("id"), history_bytes=Sum("max_bytes"))
    return Held(sums["rps"], sums["history_bytes"] or 0, subscriptions_in_domain())
