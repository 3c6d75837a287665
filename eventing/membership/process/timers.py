"""Timers of the machines, in memory: a heap."""

from __future__ import annotations

import heapq
import itertools
from typing import Any

TIMERS_MAX = 100_000  # bound: timers of the overlay that run; one more is an error of the machines, and ends the process's thread


class Timers:
    """Timers in the order of their ends. Times are seconds of any steady clock."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Any]] = []
        self._numbers = itertools.count()

    def set(self, timer: Any, at: float) -> None:
        """Give a timer back at a time. Raises OverflowError beyond TIMERS_MAX."""
        if len(self._heap) >= TIMERS_MAX:
            raise OverflowError(f"More than {TIMERS_MAX} timers of the overlay run.")
        heapq.heappush(self._heap, (at, next(self._numbers), timer))

    def next_at(self) -> float | None:
        """Return when the next timer ends; None if none runs."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> list[Any]:
        """Take the timers that have ended."""
        found = []
        while self._heap and self._heap[0][0] <= now:
            found.append(heapq.heappop(self._heap)[2])
        return found
