"""Ports and hooks through which the outbox calls other subjects (core/ports.py)."""

from __future__ import annotations

from eventing.core.events.history import HistoryBounds
from eventing.core.ports import Hook, Port


@Hook
def rp_changed(rp: str) -> None:
    """Send a change of an RP to the domains that share it. The exchange's sweep sends what cannot be sent now."""


@Port
def log_bounds(rp: str) -> HistoryBounds | None:
    """Return the history bounds of the RP with this id; None if there is no such RP."""
    raise NotImplementedError


@Port
def rps_in_domain() -> int:
    """Count the RPs of the domain, including replicas of other domains'."""
    raise NotImplementedError


@Port
def subscriptions_in_domain() -> int:
    """Count the durable subscriptions of the domain."""
    raise NotImplementedError
