"""Numbers of durable subscriptions of principals, RPs and the domain, for quotas."""

from __future__ import annotations

from eventing.subscriptions.models import Subscription


def subscriptions_in_domain() -> int:
    """Return the number of durable subscriptions of the domain."""
    return Subscription.objects.count()


def subscriptions_of(identity: str) -> int:
    """Return the number of durable subscriptions that the principal owns."""
    return Subscription.objects.filter(owner=identity).count()


def subscriptions_at(rp: str) -> int:
    """Return the number of durable subscriptions at the RP."""
    return Subscription.objects.filter(at=rp).count()


def subscriptions_ending_with(rp: str) -> int:
    """Return the number of durable subscriptions that end with the RP: its own, and those at its administrative RP."""
    return Subscription.objects.filter(rp=rp).count()
