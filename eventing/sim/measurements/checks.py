"""Checkers as measurements: a run ends with an error at the first violation."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from eventing.overlay.member import OverlayMember
from eventing.sim.checkers.check_failed import CheckFailed
from eventing.sim.checkers.liveness import LivenessChecker
from eventing.sim.checkers.safety import SafetyChecker
from eventing.sim.context import SimulationContext
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values
from eventing.sim.scenario import Seconds
from eventing.sim.world import UP


def honest_members(run: SimulationContext) -> dict[int, OverlayMember]:
    """The honest domains that run and draw their links from the directory."""
    members = run.population.members
    up = run.world.up
    return {
        domain: member
        for domain, member in enumerate(members)
        if up[domain] == UP and domain not in run.role_of and isinstance(member, OverlayMember)
    }


class SafetyChecked(Measurement, frozen=True, kw_only=True):
    """Safety: conditions of every honest domain at every moment (`checkers/safety.py`). A violation ends the run.

    Values: `checks` of domains so far.

    Attributes:
        domains: honest domains checked at each sample, in turns.
    """

    kind: ClassVar[str] = "safety"
    domains: Annotated[int, msgspec.Meta(ge=1)] = 200

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return _SafetyProbe(run, self.domains)


class _SafetyProbe:
    def __init__(self, run: SimulationContext, domains: int) -> None:
        self._run = run
        self._domains = domains
        self._next = 0
        self._checks = 0

    def sample(self) -> Values:
        run = self._run
        count = run.scenario.domains
        checker = SafetyChecker(run.seed, (domain for domain in range(count) if domain not in run.role_of))
        members = honest_members(run)
        turns = [(self._next + at) % count for at in range(min(self._domains, count))]
        self._next = (turns[-1] + 1) % count
        chosen = {domain: members[domain] for domain in turns if domain in members}
        found = checker.check(chosen, run.world.now)
        if found:
            raise CheckFailed(found)
        self._checks += len(chosen)
        return {"checks": self._checks}

    def summary(self) -> Values:
        return self.sample()


class LivenessChecked(Measurement, frozen=True, kw_only=True):
    """Liveness: conditions once the faults are over (`checkers/liveness.py`).

    Values: `violations` now; with `due_s`, one at the end of the run is an error.

    Attributes:
        due_s: when everything must hold; absent: never.
        ends_from_s: nothing is checked before, and from then on the run ends at the second sample in a row without a violation;
            absent: it does not end early.
    """

    kind: ClassVar[str] = "liveness"
    due_s: Seconds | None = None
    ends_from_s: Seconds | None = None

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        return _LivenessProbe(run, self.due_s, self.ends_from_s)


class _LivenessProbe:
    def __init__(self, run: SimulationContext, due_s: float | None, ends_from_s: float | None) -> None:
        self._run = run
        self._due_s = due_s
        self._ends_from_s = ends_from_s
        self._held = False

    def sample(self) -> Values:
        run = self._run
        if self._ends_from_s is not None and run.time < self._ends_from_s:
            return {}
        found = LivenessChecker(run.seed).check(honest_members(run), run.world.now)
        if found and self._due_s is not None and run.time >= self._due_s:
            raise CheckFailed(found)
        if self._ends_from_s is not None:
            run.over = self._held and not found
            self._held = not found
        return {"violations": len(found)}

    def summary(self) -> Values:
        return self.sample()
