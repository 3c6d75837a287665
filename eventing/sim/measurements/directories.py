"""Directories: how far those of the domains are from each other and from the truth."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from eventing.sim.context import SimulationContext
from eventing.sim.errors import ScenarioError
from eventing.sim.federation import STARTED_S
from eventing.sim.measurements.base import Measurement, MeasurementProbe, Values


class Directories(Measurement, frozen=True, kw_only=True):
    """Divergence of directories.

    Values: `different` fingerprints among the running domains; `same`: share of them with the most frequent one; `records_min`,
    `records_mean`. Over a sample of domains: `behind_mean`, `behind_max`: records that they lack or hold in an older version than
    their issuer, renewals of the last `grace_s` seconds aside; `current`: share of the sample that is behind in nothing.

    Attributes:
        compared: domains of the sample.
        grace_s: seconds that a renewal may take.
    """

    kind: ClassVar[str] = "directories"
    compared: Annotated[int, msgspec.Meta(ge=1)] = 100
    grace_s: Annotated[float, msgspec.Meta(ge=0.0)] = 60.0

    def begin(self, run: SimulationContext) -> MeasurementProbe:
        """Attach to a run."""
        if run.scenario.parameters == "paper":
            raise ScenarioError(f"{run.scenario.name}: 'directories' cannot be measured: the paper's domains have none")
        return _DirectoriesProbe(run, self)


class _DirectoriesProbe:
    def __init__(self, run: SimulationContext, parameters: Directories) -> None:
        self._run = run
        self._parameters = parameters
        self._chance = run.make_chance(f"{run.seed} directories")

    def sample(self) -> Values:
        run = self._run
        running = run.running
        if not running:
            return {}
        of: list[Any] = [run.population.members[domain].directory for domain in running]
        prints: dict[int, int] = {}
        for directory in of:
            prints[directory.fingerprint()] = prints.get(directory.fingerprint(), 0) + 1
        counts = [directory.count for directory in of]
        behind = self._behind(running, of)
        return {
            "different": len(prints),
            "same": max(prints.values()) / len(of),
            "records_min": min(counts),
            "records_mean": sum(counts) / len(counts),
            "behind_mean": sum(behind) / len(behind),
            "behind_max": max(behind),
            "current": sum(1 for one in behind if not one) / len(behind),
        }

    def _behind(self, running: list[int], of: list[Any]) -> list[int]:
        settled_s = STARTED_S + self._run.world.now - self._parameters.grace_s
        truth = []
        for domain, directory in zip(running, of, strict=True):
            own = directory.record(domain)
            if own is not None and own.issued_s <= settled_s:
                truth.append((domain, own.version))
        compared = of
        if len(of) > self._parameters.compared:
            compared = self._chance.sample(of, self._parameters.compared)
        return [sum(1 for domain, version in truth if directory.version(domain) < version) for directory in compared]

    def summary(self) -> Values:
        return self.sample()
