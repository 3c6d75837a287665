"""Access to what push shows of a subscription."""

from __future__ import annotations

from eventing.core.principals import Principal
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.selectors.subscriptions import subscription_get
from eventing.subscriptions.services.permission import require_managed


def managed(subscription_id: str, principal: Principal) -> Subscription:
    """Return the subscription if `principal` may see it. Raises NotFound, Gone, Forbidden."""
    row = subscription_get(subscription_id)
    require_managed(row, descriptor_get(row.at), principal)
    return row
