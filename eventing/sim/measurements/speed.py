"""Speed of the simulator itself, where the caller has a clock. The only values that differ between two runs with one seed."""

from __future__ import annotations

from typing import ClassVar

from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values


class Speed(Measurement, frozen=True, kw_only=True):
    """Cost of the simulation.

    Values: `events_per_s`: inputs handled per second of processor time; `memory_bytes`: most memory of the process.
    """

    kind: ClassVar[str] = "speed"

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return _SpeedProbe(run)


class _SpeedProbe:
    def __init__(self, run: SimulationContext) -> None:
        self._run = run
        self._from = (0, run.gauges.cpu_s()) if run.gauges is not None else (0, 0.0)
        self._before = self._from

    def sample(self) -> Values:
        values = self._since(self._before)
        if self._run.gauges is not None:
            self._before = self._run.world.handled, self._run.gauges.cpu_s()
        return values

    def _since(self, before: tuple[int, float]) -> Values:
        gauges = self._run.gauges
        if gauges is None:
            return {}
        cpu_s = gauges.cpu_s() - before[1]
        return {
            "events_per_s": (self._run.world.handled - before[0]) / cpu_s if cpu_s else 0.0,
            "memory_bytes": gauges.memory_bytes(),
        }

    def summary(self) -> Values:
        return self._since(self._from)
