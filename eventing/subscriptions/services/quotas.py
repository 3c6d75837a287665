"""The quota of principals for durable subscriptions, checked under a lock in the transaction that creates one.

Administrators are exempt, as from all quotas of principals (rps/services/quotas.py).
"""

from __future__ import annotations

from eventing.conf import config
from eventing.core.errors import QuotaExceeded
from eventing.core.principals import Principal
from eventing.sql.locking import lock_principal
from eventing.subscriptions.selectors.quotas import subscriptions_of


def require_subscription_quota(principal: Principal) -> None:
    """Raise QuotaExceeded if the principal has reached its quota of durable subscriptions. Locks the principal."""
    if not principal.admin:
        require_owner_quota(principal.identity)


def require_owner_quota(owner: str) -> None:
    """Raise QuotaExceeded if the owner of this identity has reached its quota of durable subscriptions. Locks the owner."""
    limit = config().subscriptions_per_principal
    if not limit:
        return
    lock_principal(owner)
    if subscriptions_of(owner) >= limit:
        raise QuotaExceeded(
            f"You may have at most {limit} durable subscriptions here. Delete one that you do not need.", limit=limit
        )
