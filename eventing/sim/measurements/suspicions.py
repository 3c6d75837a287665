"""Suspicions: when all know of a failed domain, and whether anybody suspects one that runs."""

from __future__ import annotations

from array import array
from typing import ClassVar

from eventing.overlay.suspicion import AccusesNobody, Rebutted, Suspected
from eventing.sim.context import SimulationContext
from eventing.sim.errors import ScenarioError
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values, percentile
from eventing.sim.world import DOWN


class Suspicions(Measurement, frozen=True, kw_only=True):
    """Suspicions of crashed domains, and false ones.

    Values: `known`: share of the pairs of a crashed domain and a running one in which the latter suspects the former; `known_p50_s`,
    `known_p99_s`: times from crash to suspicion over these pairs. `false`: suspicions of running honest domains, counted at each domain that has one;
    `of_liars`: those of running domains with a role; `rebuttals` of domains that were accused; `doubts`: times that a monitor suspected itself and stopped accusing.
    """

    kind: ClassVar[str] = "suspicions"

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        if not run.scenario.suspicion:
            raise ScenarioError(f"{run.scenario.name}: 'suspicions' cannot be measured without suspicion = true")
        return _SuspicionsProbe(run)


class _SuspicionsProbe:
    def __init__(self, run: SimulationContext) -> None:
        self._run = run
        self._crashed_at: dict[int, float] = {}
        self._known_s = array("f")
        self._false = self._of_liars = self._rebuttals = self._doubts = 0
        run.on_crash(self._crashed)
        run.on([Suspected], self._suspected)
        run.on([Rebutted], self._rebutted)
        run.on([AccusesNobody], self._doubted)

    def _crashed(self, domain: int, silently: bool) -> None:
        self._crashed_at[domain] = self._run.world.now

    def _suspected(self, domain: int, event: Suspected, now: float) -> None:
        if self._run.world.up[event.domain] != DOWN:
            if event.domain in self._run.role_of:
                self._of_liars += 1
            else:
                self._false += 1
        elif event.domain in self._crashed_at:
            self._known_s.append(now - self._crashed_at[event.domain])

    def _rebutted(self, domain: int, event: Rebutted, now: float) -> None:
        self._rebuttals += 1

    def _doubted(self, domain: int, event: AccusesNobody, now: float) -> None:
        self._doubts += 1

    def sample(self) -> Values:
        down = sum(1 for domain in self._crashed_at if self._run.world.up[domain] == DOWN)
        pairs = down * len(self._run.running)
        ordered = sorted(self._known_s)
        return {
            "known": min(1.0, len(ordered) / pairs) if pairs else 0.0,
            "known_p50_s": percentile(ordered, 0.5),
            "known_p99_s": percentile(ordered, 0.99),
            "false": self._false,
            "of_liars": self._of_liars,
            "rebuttals": self._rebuttals,
            "doubts": self._doubts,
        }

    def summary(self) -> Values:
        return self.sample()
