"""Remaining time of a report, estimated from the runs that are kept and corrected by those that were made meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from eventing.sim.recorded_runs import RecordedRun
from eventing.sim.results import RunResult
from eventing.sim.scenario import scenario_path, scenario_read

DOMAIN_SECOND_S = 1e-4
"""Time of a simulated second of one domain in a scenario that was never run (measured: 0.5 to 1.6 * 10**-4 with 10,000 to 3,000 domains)."""
GROWTH = 1.15
"""Power of the number of domains with which the time grows (measured between 1,000 and 10,000 domains)."""


class RemainingTime:
    """The time that the rest of a report takes.

    Args:
        left: runs to be made, in their order.
        made: results that are kept.
    """

    def __init__(self, left: Sequence[RecordedRun], made: Sequence[RunResult]) -> None:
        self._left = list(left)
        self._made = list(made)
        self._expected_s = self._taken_s = 0.0

    def done(self, run: RecordedRun, result: RunResult | None, taken_s: float) -> None:
        """Note a run that has ended; None: it failed."""
        self._expected_s += self._run_s(run)
        self._taken_s += taken_s
        self._left.remove(run)
        if result is not None:
            self._made.append(result)

    def left_s(self) -> float:
        """Seconds until all runs are made."""
        slower = self._taken_s / self._expected_s if self._expected_s else 1.0
        return slower * sum(map(self._run_s, self._left))

    def _run_s(self, run: RecordedRun) -> float:
        """Time of one run, from the result of its scenario that is nearest in size."""
        similar = [one for one in self._made if one.scenario == run.name and one.wall_s]
        if similar:
            nearest = min(similar, key=lambda one: abs(one.domains - run.domains))
            return float(nearest.wall_s * (run.domains / nearest.domains) ** GROWTH)
        scenario = scenario_read(scenario_path(run.name))
        return DOMAIN_SECOND_S * run.domains * (scenario.settle_s + scenario.duration_s)


def duration_text(seconds: float) -> str:
    """A time for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
