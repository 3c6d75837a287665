"""Homes that domains accept, by term: never two in one term, and one for all once the network is whole."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values
from eventing.sim.succession.elector import ElectorDomain, HomeAccepted


class HomesMeasured(Measurement, frozen=True, kw_only=True):
    """A table `[[measurements]]` of kind homes."""

    kind: ClassVar[str] = "homes"

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return HomesProbe(run)


class HomesProbe:
    """Accepted homes of one run."""

    def __init__(self, run: SimulationContext) -> None:
        self._run = run
        self._accepted: dict[int, dict[int, None]] = {}
        run.on((HomeAccepted,), self._accepts)

    def sample(self) -> Values:
        """Values now."""
        members = self._run.population.members
        held = [one.stored for one in (members[at] for at in self._run.running) if isinstance(one, ElectorDomain)]
        agreed = Counter((one.home, one.term) for one in held)
        return {
            "terms": float(len(self._accepted)),
            "two_homes": float(sum(1 for homes in self._accepted.values() if len(homes) > 1)),
            "term": float(max((one.term for one in held), default=0)),
            "agreed": max(agreed.values(), default=0) / max(1, len(held)),
        }

    def summary(self) -> Values:
        """Values at the end."""
        return self.sample()

    def _accepts(self, _: int, event: HomeAccepted, __: float) -> None:
        self._accepted.setdefault(event.term, {})[event.home] = None
