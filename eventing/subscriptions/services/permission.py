"""Permission of a principal to see or manage a durable subscription, with one refusal for all services."""

from __future__ import annotations

from eventing.core.errors import Forbidden
from eventing.core.principals import Principal
from eventing.core.roles import reads_only
from eventing.rps.rules.descriptor import Descriptor
from eventing.subscriptions.models import Subscription


def may_manage(row: Subscription, descriptor: Descriptor, principal: Principal, operation: str) -> bool:
    """Return whether `principal` may see or manage a subscription: as its owner within the token's operations, or by
    `administer`.

    A principal that may read all of the domain may see it too; services that change one call `require_writer` besides.
    """
    granted = principal.permits(operation, descriptor.id, descriptor.name)
    if row.owner == principal.identity and granted:
        return True
    return descriptor.allows(principal, "administer") or (reads_only(principal) and granted)


def require_managed(row: Subscription, descriptor: Descriptor, principal: Principal) -> None:
    """Raise Forbidden unless `principal` owns the subscription or administers its RP."""
    if not may_manage(row, descriptor, principal, "subscribe"):
        raise Forbidden(
            "This operation on a subscription is for its owner, or requires `administer` at the rendezvous point."
        )
