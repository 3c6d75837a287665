"""What the outbox tells other subjects (core/ports.py)."""

from __future__ import annotations

from eventing.core.ports import Hook


@Hook
def rp_changed(rp: str) -> None:
    """Have what changed about an RP sent to whom it is shared with. What cannot be sent now is left to the exchange's sweep."""
