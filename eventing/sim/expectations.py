"""Expectations of scenarios, judged by what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eventing.sim.errors import ScenarioError
from eventing.sim.results import ExpectationOutcome, Series
from eventing.sim.scenario import Expectation, Scenario


def names_check(scenario: Scenario, measurements: Iterable[str]) -> None:
    """Raise ScenarioError where an expectation or a shown value names no measurement of the scenario, or a time after its end."""
    names = sorted(measurements)
    for at, value in enumerate(scenario.shown):
        if value.split(".")[0] not in names:
            raise ScenarioError(
                f"{scenario.name}: shown[{at}]: {value!r} is not measured; measured: {', '.join(names)}"
            )
    for at, one in enumerate(scenario.expectations):
        where = f"{scenario.name}: expectations[{at}]"
        name = one.value.split(".")[0]
        if name not in names:
            known = ", ".join(names) or "none"
            raise ScenarioError(f"{where}: {name!r} is not measured; measured: {known}")
        if one.latest_s > scenario.duration_s:
            raise ScenarioError(f"{where}: {one.latest_s:g} s is after the end ({scenario.duration_s:g} s)")


def judge(
    expectations: Sequence[Expectation], series: Mapping[str, Series], summaries: Mapping[str, Mapping[str, float]]
) -> list[ExpectationOutcome]:
    """Judge all. An expectation about a value that was never measured fails."""
    return [_judged(one, series, summaries) for one in expectations]


def _judged(
    one: Expectation, series: Mapping[str, Series], summaries: Mapping[str, Mapping[str, float]]
) -> ExpectationOutcome:
    measurement, _, name = one.value.partition(".")
    of = series[measurement]
    samples = [(at_s, value) for at_s, value in zip(of.at_s, of.values.get(name, ()), strict=False) if value == value]
    if one.at_s is not None:
        chosen = [sample for sample in samples if sample[0] >= one.at_s][:1]
    elif one.by_s is not None:
        within = [sample for sample in samples if one.from_s <= sample[0] <= one.by_s]
        chosen = [sample for sample in within if one.holds(sample[1])][:1] or within[-1:]
    elif one.always:
        until_s = one.until_s if one.until_s is not None else float("inf")
        within = [sample for sample in samples if one.from_s <= sample[0] <= until_s]
        failed = [sample for sample in within if not one.holds(sample[1])]
        chosen = failed[:1] or sorted(within, key=lambda sample: one.margin(sample[1]))[:1]
    else:
        value = summaries[measurement].get(name)
        if value is None and samples:
            value = samples[-1][1]
        return ExpectationOutcome(one.text(), value is not None and one.holds(value), value, None)
    if not chosen:
        return ExpectationOutcome(one.text(), False, None, None)
    at_s, value = chosen[0]
    return ExpectationOutcome(one.text(), one.holds(value), value, at_s)
