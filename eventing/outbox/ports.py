"""What the outbox tells other subjects (core/ports.py)."""

from __future__ import annotations

from eventing.core.events.history import HistoryBounds
from eventing.core.ports import Hook, Port


@Hook
def rp_changed(rp: str) -> None:
    """Have what changed about an RP sent to whom it is shared with. What cannot be sent now is left to the exchange's sweep."""


@Port
def log_bounds(rp: str) -> HistoryBounds | None:
    """The history bounds of the RP with this id; None if there is no such RP."""
    raise NotImplementedError


@Port
def rps_in_domain() -> int:
    """RPs of the domain, replicas of others' among them."""
    raise NotImplementedError


@Port
def subscriptions_in_domain() -> int:
    """Durable subscriptions of the domain."""
    raise NotImplementedError
