"""Tables of durable subscriptions."""

from __future__ import annotations

from eventing.subscriptions.models.shared_subscription import SharedSubscription
from eventing.subscriptions.models.subscription import Subscription

__all__ = [
    "SharedSubscription",
    "Subscription",
]
