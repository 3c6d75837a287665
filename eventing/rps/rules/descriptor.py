"""Descriptors of RPs for the hot path: small, immutable, compiled, cached in each gateway process."""

from __future__ import annotations

import math
from dataclasses import dataclass

from eventing.access.rules.policy import Policy
from eventing.core.events.ack_level import Ack
from eventing.core.events.history import HistoryBounds
from eventing.core.principals import Principal
from eventing.rps.rules.audience import Need

AT_A_REPLICA = frozenset(
    {"describe", "administer"}
)  # operations of administrators at a replica, whatever its home allows


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Descriptor against which every operation at an RP is checked.

    Attributes:
        id: the self-certifying id, or that of an administrative RP.
        creator: identity of the principal that administers it; empty for the domain's own.
        version: increases with every change of what is signed.
        expires_at: Unix seconds at which the lease ends; infinity for administrative RPs, which live with their RP.
        name: hierarchical name, for tokens narrowed to names; empty if there is none.
        home: for a replica, the home; empty for own RPs. `creator` is then empty: the creator administers the RP at its
            home only.
        authority: the domain that created the RP, if another; empty for this one. `policy` is that domain's, translated
            for this one (Policy.seen_from), wherever the home is.
        links: peers with which its events are exchanged, ordered by name.
        paused: the operator's reason while this domain refuses publishes here; None while not paused.
        audience: readers that must be connected while events are published here; applies to this domain's readers and
            publishers only.
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
    authority: str = ""

    def allows(self, principal: Principal, operation: str) -> bool:
        """Return True if `principal` may do `operation` here: administrators and the creator always, others by the
        policy.

        At a replica the home's policy decides for everybody. This domain's administrators may only describe it and
        administer its local parts: subscriptions, and the existence of the replica.
        """
        if principal.narrowed and not principal.permits(operation, self.id, self.name):
            return False
        if self.administered_by(principal) and (not self.home or operation in AT_A_REPLICA):
            return True
        return self.policy.allows(principal, operation)

    def administered_by(self, principal: Principal) -> bool:
        """Return True if `principal` may do everything here, whatever the policy. `admin` claims of other issuers do not count."""
        return (principal.admin and principal.local) or self.created_by(principal)

    def created_by(self, principal: Principal) -> bool:
        """Return True if `principal` created the RP; always False for a stranger without a token."""
        return bool(self.creator) and principal.identity == self.creator and not principal.anonymous
