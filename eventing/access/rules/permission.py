"""Permissions of roles in the domain, with one refusal for all services."""

from __future__ import annotations

from eventing.core.errors import Forbidden
from eventing.core.principals import Principal
from eventing.core.roles import operates, oversees, reads_only


def require_operator(principal: Principal) -> None:
    """Raise Forbidden unless the principal may act on everything in the domain (administrator or operator)."""
    if not operates(principal):
        raise Forbidden("This requires an administrator's or operator's token of this domain that is not narrowed.")


def require_overseer(principal: Principal) -> None:
    """Raise Forbidden unless the principal may see all of the domain (administrator, operator or viewer)."""
    if not oversees(principal):
        raise Forbidden(
            "This requires a token of an administrator, operator or viewer of this domain that is not narrowed."
        )


def require_writer(principal: Principal) -> None:
    """Raise Forbidden if the principal's role is read-only (viewer)."""
    if reads_only(principal):
        raise Forbidden("Your role is read-only: it cannot change anything, including subscriptions and their cursors.")
