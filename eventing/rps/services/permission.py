"""Whether a principal may do what it asks at an RP: one sentence of refusal for all services."""

from __future__ import annotations

from datetime import datetime

from eventing.core import names
from eventing.core.errors import TOKEN_NEEDED, Conflict, Forbidden, Unauthenticated
from eventing.core.ids import is_admin
from eventing.core.principals import Principal
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.descriptor import Descriptor
from eventing.rps.selectors.descriptors import descriptor_of
from eventing.rps.selectors.rendezvous_points import rendezvous_point_get


def require(descriptor: Descriptor, principal: Principal, operation: str) -> None:
    """Raises Forbidden, or Unauthenticated without a token, unless `principal` may do `operation` at the RP."""
    if not descriptor.allows(principal, operation):
        if principal.anonymous:
            raise Unauthenticated(TOKEN_NEEDED)
        raise Forbidden(f"Your token does not allow to {operation} here.")


def require_creation(principal: Principal) -> None:
    """Raises Forbidden for a token of a foreign issuer, or one that is narrowed to other operations or to RPs.

    Policies open RPs to people from elsewhere; what the domain takes on is up to those it knows. Any other may create.
    """
    if principal.anonymous:
        raise Unauthenticated(TOKEN_NEEDED)
    if not principal.local:
        raise Forbidden("Only bearers of this domain's own tokens create rendezvous points.")
    if not principal.permits("administer"):
        raise Forbidden("Your token is narrowed to other operations than administer; it cannot create.")


def rp_administered(reference: str, principal: Principal, now: datetime) -> RendezvousPoint:
    """The RP, locked, if `principal` administers it in this domain; replicas too.

    Raises NotFound, Gone, Forbidden (administrative RPs among it), InvalidRequest.
    """
    if names.is_id(reference) and is_admin(reference):
        raise Forbidden(
            "Administrative rendezvous points live with what they report on; they are not changed themselves."
        )
    row = rendezvous_point_get(reference, now=now, lock=True)
    require(descriptor_of(row), principal, "administer")
    return row


def require_home(row: RendezvousPoint) -> None:
    """Raises Conflict for a replica: only the home changes, renews or deletes an RP."""
    if row.home:
        raise Conflict(
            f"This is a replica of a rendezvous point of {row.home}: only {row.home} changes, renews or deletes it. Ask"
            f" there, or end the replica here: herald replica leave {row.id}.",
            home=row.home,
        )
