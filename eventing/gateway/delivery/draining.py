"""Close of a gateway's sessions over time, so that readers return to the domain's other gateways evenly (docs/decisions/0122).

Sessions that are closed in the same moment are asked to return at different ones: `retry_after_ms` of the frame `closing`, `retry:`
of Server-Sent Events.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Set

from eventing.gateway.delivery.session import Session

TICK_S = 0.1
CLOSES_PER_S_MIN = 100.0
"""Sessions are closed no slower than that: a gateway with few of them does not wait for the end of its time."""
RETURNS_PER_S = 1000
"""Readers that were closed together return at this rate, the others' own jitter aside."""
RETURN_S_MAX = 10  # bound: seconds that a client is asked to wait before it returns; more of them return in a second


def return_after_ms(closed_together: int) -> int:
    """Draw how many milliseconds a client should wait before it connects again.

    Args:
        closed_together: sessions that are closed in the same moment as its session.
    """
    spread_ms = min(RETURN_S_MAX * 1000, closed_together * 1000 // RETURNS_PER_S)
    return random.randint(0, spread_ms)  # noqa: S311 - spreads load, protects nothing


class Departure:
    """Schedule by which sessions are closed. Pure: times are monotonic seconds.

    Args:
        sessions: how many there are at the beginning.
        within_s: time over which they are closed; 0: at once.
        now: the time.
    """

    def __init__(self, sessions: int, within_s: float, now: float) -> None:
        self._per_s = max(CLOSES_PER_S_MIN, sessions / within_s) if within_s > 0 else float("inf")
        self._closing: set[Session] = set()
        self._begun = now
        self._count = 0.0

    def due(self, sessions: Collection[Session], now: float) -> list[Session]:
        """Return the sessions to close now, each once; sessions that were opened meanwhile follow the others.

        Args:
            sessions: those that are open, oldest first.
        """
        waiting = [session for session in sessions if session not in self._closing]
        allowed = len(waiting)
        if self._per_s != float("inf"):
            allowed = min(allowed, int((now - self._begun) * self._per_s + 1 - self._count))
        found = waiting[: max(0, allowed)]
        self._closing.update(found)
        self._count += len(found)
        return found

    def is_over(self, sessions: Set[Session]) -> bool:
        """Return whether every open session was closed or is being closed."""
        return sessions <= self._closing


async def pause(period_s: float, cut: asyncio.Event) -> None:
    """Sleep, until `cut` is set at most."""
    try:
        async with asyncio.timeout(period_s):
            await cut.wait()
    except TimeoutError:
        return
