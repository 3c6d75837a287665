"""A home that is cut off, as it appears to itself: most of its replicas fail at once. Pure.

To a domain whose own connection is broken, all others fail. So a home of which most replicas fail at the same time retires none of them for
SUSPECTS_ITSELF_S: they may serve its readers on the other side.
"""

from __future__ import annotations

from collections.abc import Iterable

from eventing.operations.placement.rules.views import HeldReplica

FAILING_MIN = 3
"""Failing replicas from which on a home suspects itself, where they are more than half."""
SUSPECTS_ITSELF_S = 900.0  # bound: seconds for which such a home retires nothing; then failing replicas are replaced


def most_fail_since(before: float | None, replicas: Iterable[HeldReplica], now: float) -> float | None:
    """Return since when most of the placed replicas fail; None: they do not.

    Args:
        before: the result of the last time. One that is later than now, as a clock that was set back leaves it, counts as now.
        replicas: of all RPs of the home.
    """
    placed = [one for one in replicas if one.ours]
    failing = sum(1 for one in placed if one.failing)
    if failing < FAILING_MIN or 2 * failing <= len(placed):
        return None
    return now if before is None else min(before, now)


def suspects_itself(most_fail: float | None, now: float) -> bool:
    """Return whether the home is to suspect itself, by `most_fail_since`."""
    return most_fail is not None and now - most_fail < SUSPECTS_ITSELF_S
