"""What principals, RPs and the domain hold of durable subscriptions, which are limited."""

from __future__ import annotations

from eventing.subscriptions.models import Subscription


def subscriptions_in_domain() -> int:
    """Durable subscriptions of the domain."""
    return Subscription.objects.count()


def subscriptions_of(identity: str) -> int:
    """Durable subscriptions that the principal owns."""
    return Subscription.objects.filter(owner=identity).count()


def subscriptions_at(rp: str) -> int:
    """Durable subscriptions at the RP."""
    return Subscription.objects.filter(at=rp).count()
