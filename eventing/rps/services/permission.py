"""Permissions of principals at an RP, with one refusal for all services."""

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
    """Raise Forbidden, or Unauthenticated without a token, unless `principal` may do `operation` at the RP."""
    if not descriptor.allows(principal, operation):
        if principal.anonymous:
            raise Unauthenticated(TOKEN_NEEDED)
        raise Forbidden(f"Your token does not allow to {operation} here.")


def require_creation(principal: Principal) -> None:
    """Raise Forbidden for a token of a foreign issuer, or one that is narrowed to other operations or to RPs.

    Policies open RPs to principals from elsewhere, but only the domain's own principals may create RPs.
    """
    if principal.anonymous:
        raise Unauthenticated(TOKEN_NEEDED)
    if not principal.local:
        raise Forbidden("Creating rendezvous points requires a token of this domain.")
    if not principal.permits("administer"):
        raise Forbidden(
            "Your token is narrowed to operations other than administer; it cannot create rendezvous points."
        )


def rp_administered(reference: str, principal: Principal, now: datetime) -> RendezvousPoint:
    """Return the RP, locked, if `principal` administers it in this domain, including replicas.

    Raises NotFound, Gone, Forbidden (also for administrative RPs), InvalidRequest.
    """
    if names.is_id(reference) and is_admin(reference):
        raise Forbidden(
            "Administrative rendezvous points cannot be changed; they exist as long as the rendezvous point that they report on."
        )
    row = rendezvous_point_get(reference, now=now, lock=True)
    require(descriptor_of(row), principal, "administer")
    return row


def require_home(row: RendezvousPoint) -> None:
    """Raise Conflict for a replica: only the home changes, renews or deletes an RP."""
    if row.home:
        raise Conflict(
            f"This is a replica of a rendezvous point of {row.home}, which only {row.home} can change, renew or delete. Send the request there, or end the replica here: herald replica leave {row.id}.",
            home=row.home,
        )
