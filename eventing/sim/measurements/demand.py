"""Demand for the famous RP over time, and the turns in which a measurement applies it: what placement and balancing share."""

from __future__ import annotations

from typing import Annotated

import msgspec

from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import Measurement, Values

HOUR_S = 3600.0


class DemandMeasurement(Measurement, frozen=True, kw_only=True):
    """A table `[[measurements]]` with the demand: a line through points.

    Attributes:
        demand: points (seconds, readers), in order.
        period_s: the points repeat after so many seconds; 0: they do not.
        turn_s: simulated seconds between two turns of readers and planner.
    """

    demand: Annotated[tuple[tuple[float, float], ...], msgspec.Meta(min_length=1)]
    period_s: Annotated[float, msgspec.Meta(ge=0.0)] = 0.0
    turn_s: Annotated[float, msgspec.Meta(gt=0.0)] = 1.0

    def readers_at(self, time_s: float) -> float:
        """Return the readers that are wanted at a time of the run."""
        at = time_s % self.period_s if self.period_s else time_s
        before = self.demand[0]
        for point in self.demand:
            if point[0] > at:
                part = (at - before[0]) / (point[0] - before[0]) if point[0] > before[0] else 1.0
                return before[1] + part * (point[1] - before[1])
            before = point
        return before[1]


class TurnsProbe:
    """Turns of one run, from `_begin_turns` on, and the greatest values that were seen.

    Args:
        turn_s: simulated seconds between two turns.
        seen: names of the values; each is 0 at first.
    """

    def __init__(self, run: SimulationContext, turn_s: float, *seen: str) -> None:
        self._run = run
        self._turn_s = turn_s
        self._seen: Values = dict.fromkeys(seen, 0.0)

    def _turn(self) -> None:
        """Carry out one turn."""
        raise NotImplementedError

    def _begin_turns(self, at_s: float = 0.0) -> None:
        def turn() -> None:
            self._turn()
            self._begin_turns(at_s + self._turn_s)

        self._run.at(at_s, turn)

    def _most(self, name: str, value: float) -> None:
        self._seen[name] = max(self._seen[name], value)


def most_in(times: list[float], window_s: float) -> int:
    """Return the greatest number of times that lie within a window."""
    return max((sum(1 for other in times if at <= other < at + window_s) for at in times), default=0)
