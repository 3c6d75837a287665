"""Report over recorded simulation runs (`make sim-report`): the runs it needs, the file of each, and the page made from them.

A run is kept under the name of its scenario, its number of domains and its seed, with a digest of the scenario's text: a report that was
interrupted continues where it stopped, and a scenario that was changed is run again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import msgspec

from eventing.sim.results import Outcome, RunResult, as_json, from_json, number
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
    """All runs of a report: each scenario with each of its sizes and each seed, the small ones first.

    Args:
        domains_max: larger sizes are replaced by this one; None: as the scenarios state.
    """
    made = []
    for name in names:
        scenario = scenario_read(scenario_path(name))
        sizes = dict.fromkeys(min(size, domains_max or size) for size in (*scenario.sizes, scenario.domains))
        made += [RecordedRun(name, size, seed) for size in sorted(sizes) for seed in seeds]
    return made


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
    path.write_bytes(as_json([result]))


def _short(value: float) -> float:
    return float(f"{value:.6g}")


def page(results: Sequence[RunResult], plots: dict[str, list[Path]]) -> str:
    """The report in Markdown.

    Args:
        results: of one scenario together, and in it of one size together.
        plots: by scenario, paths relative to the page.
    """
    lines = [
        "# Results of simulations",
        "",
        "Written by `make sim-report`; [README.md](README.md) explains how to run and read it. A value is the one that decided the",
        "expectation, of the worst seed where seeds differ. Runs are kept in [results](results) and replayed by their seeds.",
        "",
        "| scenario | domains | seeds | holds | CPU s | events per CPU second | GB |",
        "|---|--:|---|---|--:|--:|--:|",
    ]
    groups = [(key, list(of)) for key, of in groupby(results, lambda one: (one.scenario, one.domains))]
    for (name, domains), of in groups:
        held = sum(one.holds for one in of)
        lines.append(
            f"| [{name}](#{name}) | {domains:,} | {_seeds(of)} | {'yes' if held == len(of) else f'{held} of {len(of)}'} "
            f"| {max(one.cpu_s for one in of):.0f} | {min(one.events_per_s for one in of):,.0f} "
            f"| {max(one.memory_bytes for one in of) / 1e9:.2f} |"
        )
    for name, of_name in groupby(groups, lambda item: item[0][0]):
        scenario = scenario_read(scenario_path(name))
        lines += ["", f"## {name}", "", f"{scenario.title}. {scenario.description.strip()}"]
        sized = list(of_name)
        lines += ["", *_table([of for _, of in sized])]
        lines += [f"\n![{path.stem}]({path.as_posix()})" for path in plots.get(name, [])]
    return "\n".join(lines) + "\n"


def _table(sizes: Sequence[Sequence[RunResult]]) -> list[str]:
    """One row for each expectation, one column for each size."""
    heads = [f"{of[0].domains:,} domains" for of in sizes]
    lines = ["| expected | " + " | ".join(heads) + " |", "|---|" + "--:|" * len(heads)]
    for at, outcome in enumerate(sizes[0][0].outcomes):
        cells = [_cell([one.outcomes[at] for one in of if at < len(one.outcomes)]) for of in sizes]
        lines.append(f"| {outcome.expectation} | " + " | ".join(cells) + " |")
    return lines


def _cell(outcomes: Sequence[Outcome]) -> str:
    failed = [one for one in outcomes if not one.holds]
    worst = (failed or list(outcomes))[-1:]
    if not worst or worst[0].value is None:
        return "**not measured**"
    text = number(worst[0].value) + (f" at {worst[0].at_s:g} s" if worst[0].at_s is not None else "")
    return f"**{text}**" if failed else text


def _seeds(of: Sequence[RunResult]) -> str:
    return ", ".join(str(one.seed) for one in of)
