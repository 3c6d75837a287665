"""The descriptor of an RP as the hot path needs it: small, immutable, compiled, cached in each gateway process."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eventing.access.rules.policy import Policy
from eventing.core.events.ack_level import Ack
from eventing.core.events.history import HistoryBounds
from eventing.core.principals import Principal
from eventing.rps.rules.audience import Need

AT_A_REPLICA = frozenset({"describe", "administer"})  # what administrators may do at a replica, whatever its home says


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What every operation at an RP is checked against.

    Attributes:
        id: the self-certifying id, or that of an administrative RP.
        creator: identity of the principal that administers it; empty for the domain's own.
        version: grows with every change; the ETag.
        expires_at: Unix seconds at which the lease ends; infinity for administrative RPs, which live with their RP.
        name: hierarchical name, for tokens narrowed to names; empty if it has none.
        home: the domain whose RP this is a replica of; empty for our own RPs. `policy` is then the home's, seen from
            here (Policy.seen_from), and `creator` is empty: who created the RP administers it at its home only.
        links: the peers that its events go to and come from, in the order of their names.
        paused: why this domain takes no events here from its publishers, as its operator said; None while it does.
        audience: who must be reading while events are published here; this domain's readers and publishers only.
        renewed_from: Unix seconds from which on use renews the lease; infinity for never.
    """

    id: str
    creator: str
    version: int
    policy: Policy
    ack: Ack
    history: HistoryBounds
    expires_at: float
    name: str = ""
    home: str = ""
    links: tuple[str, ...] = ()
    paused: str | None = None
    audience: tuple[Need, ...] = ()
    renewed_from: float = math.inf

    def allows(self, principal: Principal, operation: str) -> bool:
        """Whether `principal` may do `operation` here: administrators and the creator always, others by the policy.

        At a replica the home's policy decides for everybody. This domain's administrators only see it and administer
        what is this domain's of it: subscriptions, and whether there is a replica at all.
        """
        if principal.narrowed and not principal.permits(operation, self.id, self.name):
            return False
        if self.administered_by(principal) and (not self.home or operation in AT_A_REPLICA):
            return True
        return self.policy.allows(principal, operation)

    def administered_by(self, principal: Principal) -> bool:
        """Whether `principal` may do everything here, whatever the policy says. What other issuers claim of `admin` counts nothing."""
        return (principal.admin and principal.local) or self.created_by(principal)

    def created_by(self, principal: Principal) -> bool:
        """Whether `principal` created the RP; a stranger without a token never did."""
        return bool(self.creator) and principal.identity == self.creator and not principal.anonymous
