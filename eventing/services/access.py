"""Whether a principal may do what it asks: one sentence of refusal for all services."""

from __future__ import annotations

from eventing.core.descriptor import Descriptor
from eventing.core.errors import Forbidden
from eventing.core.principals import Principal
from eventing.models import Subscription


def require(descriptor: Descriptor, principal: Principal, operation: str) -> None:
    """Raises Forbidden unless `principal` may do `operation` at the RP."""
    if not descriptor.allows(principal, operation):
        raise Forbidden(f"Your token does not allow to {operation} here.")


def require_creation(principal: Principal) -> None:
    """Raises Forbidden for a token that is narrowed to operations other than administering. Any other may create RPs."""
    if not principal.permits("administer"):
        raise Forbidden("Your token is narrowed to other operations than administer; it cannot create.")


def may_manage(row: Subscription, descriptor: Descriptor, principal: Principal, operation: str) -> bool:
    """Whether `principal` may see or manage a subscription: its owner within the token's operations, or who administers."""
    granted = principal.permits(operation, descriptor.id, descriptor.name)
    return (row.owner == principal.identity and granted) or descriptor.allows(principal, "administer")


def require_managed(row: Subscription, descriptor: Descriptor, principal: Principal) -> None:
    """Raises Forbidden unless `principal` owns the subscription or administers its RP."""
    if not may_manage(row, descriptor, principal, "subscribe"):
        raise Forbidden("Only its owner, or who administers the rendezvous point, may do this with a subscription.")
