"""Page of results: the recorded runs of all scenarios as Markdown, with a table for each scenario."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from eventing.sim.results import ExpectationOutcome, RunResult, number
from eventing.sim.scenario import Expectation, Scenario, scenario_path, scenario_read

HEAD = """# Results of simulations

Written by `make sim-report`; [README.md](README.md) explains how to run and read it. A value is the one that decided the
expectation, of the worst seed where seeds differ. Values without an expectation are the mean of the seeds, with the least and the
most. Runs are kept in [results](results) and replayed by their seeds.

| scenario | domains | seeds | holds | CPU s | events per CPU second | GB |
|---|--:|---|---|--:|--:|--:|"""


def page(results: Sequence[RunResult], plots: dict[str, list[Path]]) -> str:
    """The report in Markdown.

    Args:
        results: of one scenario together, and in it of one size together.
        plots: by scenario, paths relative to the page.
    """
    lines = [HEAD]
    groups = [(key, list(of)) for key, of in groupby(results, lambda one: (one.scenario, one.domains))]
    lines += [_overview(name, domains, of) for (name, domains), of in groups]
    for name, of_name in groupby(groups, lambda item: item[0][0]):
        scenario = scenario_read(scenario_path(name))
        sized = [of for _, of in of_name]
        lines += ["", f"## {name}", "", f"{scenario.title}. {scenario.description.strip()}"]
        lines += ["", *_table(scenario, sized)]
        lines += [f"\n![{path.stem}]({path.as_posix()})" for path in plots.get(name, [])]
    return "\n".join(lines) + "\n"


def _overview(name: str, domains: int, of: Sequence[RunResult]) -> str:
    """One row of the first table: cost of the most expensive seed."""
    held = sum(one.holds for one in of)
    return (
        f"| [{name}](#{name}) | {domains:,} | {', '.join(str(one.seed) for one in of)} "
        f"| {'yes' if held == len(of) else f'{held} of {len(of)}'} | {max(one.cpu_s for one in of):.0f} "
        f"| {min(one.events_per_s for one in of):,.0f} | {max(one.memory_bytes for one in of) / 1e9:.2f} |"
    )


def _table(scenario: Scenario, sizes: Sequence[Sequence[RunResult]]) -> list[str]:
    """One row for each expectation and each shown value, one column for each size."""
    heads = [f"{of[0].domains:,} domains" for of in sizes]
    lines = ["| expected | " + " | ".join(heads) + " |", "|---|" + "--:|" * len(heads)]
    for at, outcome in enumerate(sizes[0][0].outcomes):
        expectation = scenario.expectations[at]
        cells = [_cell(expectation, [one.outcomes[at] for one in of if at < len(one.outcomes)]) for of in sizes]
        lines.append(f"| {outcome.expectation} | " + " | ".join(cells) + " |")
    for value in scenario.shown:
        lines.append(f"| {value} | " + " | ".join(_shown(value, of) for of in sizes) + " |")
    return lines


def _cell(expectation: Expectation, outcomes: Sequence[ExpectationOutcome]) -> str:
    """The outcome of the worst seed: a failure, else the nearest to a bound, or the latest."""
    measured = [one for one in outcomes if one.value is not None]
    if not measured or len(measured) < len(outcomes):
        return "**not measured**"
    failed = [one for one in measured if not one.holds]
    worst = min(failed or measured, key=lambda one: _merit(expectation, one))
    text = number(worst.value or 0.0) + (f" at {worst.at_s:g} s" if worst.at_s is not None else "")
    return f"**{text}**" if failed else text


def _merit(expectation: Expectation, outcome: ExpectationOutcome) -> tuple[float, float]:
    margin = expectation.margin(outcome.value or 0.0)
    return (-(outcome.at_s or 0.0), margin) if expectation.by_s is not None else (margin, 0.0)


def _shown(value: str, of: Sequence[RunResult]) -> str:
    """The mean of a value over the seeds, with its range."""
    measurement, _, name = value.partition(".")
    values = [one.summaries.get(measurement, {}).get(name, float("nan")) for one in of]
    known = [one for one in values if one == one]
    if not known:
        return "-"
    mean, least, most = sum(known) / len(known), min(known), max(known)
    return number(mean) if least == most else f"{number(mean)} ({number(least)} to {number(most)})"
