"""Target reliability of an RP: the share of events that arrive at every participant in time. Pure."""

from __future__ import annotations

from eventing.core.errors import InvalidRequest

IN_TIME_S = 5.0
"""Seconds within which an event has arrived in time: several grafts, fewer than a reader's reconnection (guess)."""
STEP = 1e-6
"""Targets are whole millionths, as they are signed (statements.py: reliability_ppm)."""
RELIABILITY_MIN = STEP  # bound: least target reliability; a request is refused: no target says the same
RELIABILITY_MAX = 1 - STEP  # bound: greatest target reliability; a request is refused: no plan reaches certainty


def reliability_checked(target: float | None) -> float | None:
    """Return a target in whole millionths; None for no target. Raises InvalidRequest."""
    if target is None:
        return None
    rounded = round(target, 6)
    if not RELIABILITY_MIN <= rounded <= RELIABILITY_MAX:
        raise InvalidRequest(f"reliability must be from {RELIABILITY_MIN:.6f} to {RELIABILITY_MAX:.6f}, or null.")
    return rounded
