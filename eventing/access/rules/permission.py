"""Whether the role of a principal in the domain allows what it asks: one sentence of refusal for all services."""

from __future__ import annotations

from eventing.core.errors import Forbidden
from eventing.core.principals import Principal
from eventing.core.roles import operates, oversees, reads_only


def require_operator(principal: Principal) -> None:
    """Raises Forbidden for who does not act on all that lives in the domain: an administrator or an operator does."""
    if not operates(principal):
        raise Forbidden("Only an administrator or operator of this domain does this, with a token for all of it.")


def require_overseer(principal: Principal) -> None:
    """Raises Forbidden for who does not see all of the domain: an administrator, an operator, a viewer."""
    if not oversees(principal):
        raise Forbidden(
            "Only an administrator, operator or viewer of this domain sees this, with a token for all of it."
        )


def require_writer(principal: Principal) -> None:
    """Raises Forbidden for who sees all of the domain and changes nothing: no subscription, no lease, nobody's cursor."""
    if reads_only(principal):
        raise Forbidden("Your role is to look: it changes nothing, subscriptions and their cursors included.")
