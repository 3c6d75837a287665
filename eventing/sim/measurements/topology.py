"""Shape of the overlay: components of the links between running domains, and how many links each has."""

from __future__ import annotations

from typing import ClassVar

from eventing.sim.context import SimulationContext
from eventing.sim.federation import component_sizes
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values, percentile


class Components(Measurement, frozen=True, kw_only=True):
    """Components of the graph of links.

    Values: `running` domains, `components`, `largest` (share of the running domains), `isolated` domains without any link.
    """

    kind: ClassVar[str] = "components"

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return _ComponentsProbe(run)


class _ComponentsProbe:
    def __init__(self, run: SimulationContext) -> None:
        self._run = run
        self._least = 1.0

    def sample(self) -> Values:
        running = self._run.running
        links = {domain: self._run.population.links(domain) for domain in running}
        sizes = component_sizes(links)
        largest = sizes[0] / len(running) if running else 0.0
        self._least = min(self._least, largest) if self._run.time > 0.0 else self._least
        return {
            "running": len(running),
            "components": len(sizes),
            "largest": largest,
            "isolated": sum(1 for view in links.values() if not view),
        }

    def summary(self) -> Values:
        return {"least": self._least, **self.sample()}


class Degree(Measurement, frozen=True, kw_only=True):
    """Links of each running domain, counted at the other ends.

    Values: `in_mean`, `in_min`, `in_p1`, `in_p50`, `in_p99`, `in_max`; `one_sided`: share of links that stand on one side only.
    """

    kind: ClassVar[str] = "degree"

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return _DegreeProbe(run)


class _DegreeProbe:
    def __init__(self, run: SimulationContext) -> None:
        self._run = run

    def sample(self) -> Values:
        run = self._run
        degrees = dict.fromkeys(run.running, 0)
        links = one_sided = 0
        for domain in degrees:
            for peer in run.population.links(domain):
                if peer in degrees:
                    degrees[peer] += 1
                    links += 1
                    one_sided += domain not in run.population.links(peer)
        ordered = sorted(map(float, degrees.values()))
        return {
            "in_mean": links / len(ordered) if ordered else 0.0,
            "in_min": ordered[0] if ordered else 0.0,
            "in_p1": percentile(ordered, 0.01),
            "in_p50": percentile(ordered, 0.5),
            "in_p99": percentile(ordered, 0.99),
            "in_max": ordered[-1] if ordered else 0.0,
            "one_sided": one_sided / links if links else 0.0,
        }

    def summary(self) -> Values:
        return self.sample()
