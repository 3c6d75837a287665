"""Report over recorded simulation runs (`make sim-report`): the runs it needs, the file of each, and the page made from them.

A run is kept under the name of its scenario, its number of domains and its seed, with a digest of the scenario's text: a report that was
interrupted continues where it stopped, and a scenario that was changed is run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from eventing.sim.results import RunResult, as_json, from_json
from eventing.sim.scenario import scenario_path, scenario_read


class RecordedRun(msgspec.Struct, frozen=True):
    """One run of a report.

    Attributes:
        name: of the scenario.
        path: where its result is kept, below the report's directory.
    """

    name: str
    domains: int
    seed: int

    @property
    def path(self) -> Path:
        """The path of the result."""
        return Path("results") / f"{self.name}-{self.domains}-{self.seed}.json"


def scenario_digest(name: str) -> str:
    """Digest of a scenario's text."""
    return sha256(scenario_path(name).read_bytes()).hexdigest()[:16]


def runs_of(names: Iterable[str], domains_max: int | None, seeds: Sequence[int]) -> list[RecordedRun]:
    """All runs of a report: each scenario with each of its sizes and each seed.

    Every scenario is run with the first seed before any with the second, so that a report which is interrupted has something of each.

    Args:
        domains_max: larger sizes are replaced by this one; None: as the scenarios state.
    """
    sized = []
    for name in names:
        scenario = scenario_read(scenario_path(name))
        sizes = dict.fromkeys(min(size, domains_max or size) for size in (*scenario.sizes, scenario.domains))
        sized += [(name, size) for size in sorted(sizes)]
    return [RecordedRun(name, size, seed) for seed in seeds for name, size in sized]


def kept(run: RecordedRun, into: Path) -> RunResult | None:
    """The result of a run, if it was kept and the scenario is still the same."""
    path = into / run.path
    if not path.is_file():
        return None
    try:
        (result,) = from_json(path.read_bytes())
    except ValueError:
        return None
    return result if result.scenario_digest == scenario_digest(run.name) else None


def keep(run: RecordedRun, result: RunResult, into: Path) -> None:
    """Keep a result, with numbers of six digits."""
    path = into / run.path
    path.parent.mkdir(parents=True, exist_ok=True)
    result.scenario_digest = scenario_digest(run.name)
    for series in result.series.values():
        for name, values in series.values.items():
            series.values[name] = [_short(value) for value in values]
    part = path.with_suffix(".part")
    part.write_bytes(as_json([result]))
    part.replace(path)  # a report that is killed leaves whole results only


def _short(value: float) -> float:
    return float(f"{value:.6g}")
