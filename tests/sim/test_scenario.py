"""Scenario files: what is written wrongly is refused with its place; what is expected is judged by what was measured."""

from __future__ import annotations

from pathlib import Path
from random import Random

import msgspec
import pytest

from eventing.sim.catalogue import FAULTS, MEASUREMENTS, ROLES
from eventing.sim.errors import ScenarioError
from eventing.sim.expectations import judge
from eventing.sim.results import Series
from eventing.sim.run import Plan, SimulationRun
from eventing.sim.scenario import (
    Expectation,
    NetworkPlan,
    Scenario,
    bundled_names,
    scenario_parse,
    scenario_path,
    scenario_read,
)

SOAK = {
    "balancing-sawtooth",
    "broadcast-crash-50",
    "broadcast-crash-80",
    "crash-70",
    "crash-80",
    "liars-asking",
    "liars-babbling",
    "liars-colluding-10",
    "liars-colluding-20",
    "liars-colluding-30",
    "liars-equivocating",
    "liars-flapping",
    "liars-flooding-a-restart",
    "liars-future-versions",
    "liars-grabbing",
    "liars-mute",
    "liars-replaying",
    "liars-shuffle-poisoning",
    "liars-silent-10",
    "liars-silent-20",
    "liars-slow-readers",
    "liars-sybil-burst",
    "paper-broadcast-crash-80",
    "partition-hour",
    "steady-still",
    "unsteady",
}
"""Of these, those that differ from another one in a number or the course of a load only, and those whose liars or pauses test_liars.py and
test_suspicion.py have too, in a smaller world."""
LONG = {
    "broadcast-all",
    "broadcast-crash-50",
    "broadcast-crash-70",
    "broadcast-crash-80",
    "broadcast-loss",
    "broadcast-one",
    "broadcast-random",
    "broadcast-rounds",
    "crash-70",
    "crash-80",
    "join-crowd",
    "joining",
    "liars-accusing",
    "liars-asking",
    "liars-babbling",
    "liars-boasting",
    "liars-colluding-10",
    "liars-colluding-20",
    "liars-colluding-30",
    "liars-equivocating",
    "liars-flapping",
    "liars-flooding-a-restart",
    "liars-future-versions",
    "liars-good-and-mute",
    "liars-grabbing",
    "liars-graft-flapping",
    "liars-half-detached",
    "liars-inventing-paths",
    "liars-mute",
    "liars-mute-replicas",
    "liars-one-number",
    "liars-replaying",
    "liars-shuffle-poisoning",
    "liars-silent-10",
    "liars-silent-20",
    "liars-silent-30",
    "liars-slow-readers",
    "liars-slow-replicas",
    "liars-sybil-burst",
    "one-way",
    "paper-broadcast",
    "paper-broadcast-crash-80",
    "paper-broadcast-crash-95",
    "paper-crash",
    "partition",
    "partition-flapping",
    "partition-hour",
    "steady",
    "steady-still",
    "balancing-fame",
    "balancing-sawtooth",
    "placement-circles",
    "placement-clocks",
    "placement-contradictory-policies",
    "placement-fame",
    "placement-fame-liars",
    "placement-home-cut-off",
    "placement-invitation-storm",
    "placement-killed-planner",
    "placement-partition",
    "placement-sawtooth",
    "placement-stale",
    "placement-steady",
    "restart-all",
    "routes-data-dropped",
    "succession-partitions",
    "throttled",
    "unsteady",
    "vanish",
}
"""Bundled scenarios that take a second or more even with few domains."""
HEAD = 'title = "t"\nduration_s = 100\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("title = ", "not TOML"),
        ('title = "t"', "duration_s"),
        (HEAD + "domain = 5", "unknown field `domain`"),
        (HEAD + "domains = 0", "$.domains"),
        (HEAD + 'domains = "many"', "$.domains"),
        (HEAD + 'parameters = "nice"', "$.parameters"),
        (HEAD + "[network]\nloss = 1.5", "$.network.loss"),
        (HEAD + "[network]\nlatency_scale = nan", "$.network.latency_scale"),
        (HEAD + 'parameters = "paper"\nstart = "apart"', "need directories"),
        (HEAD + '[[expectations]]\nvalue = "x"\nat_least = 1', "MEASUREMENT.VALUE"),
        (HEAD + '[[expectations]]\nvalue = "x.y"', "'at_least' or 'at_most'"),
        (HEAD + '[[expectations]]\nvalue = "x.y"\nat_least = 1\nat_s = 5\nby_s = 6', "exclude each other"),
        (HEAD + '[[expectations]]\nvalue = "x.y"\nat_least = 1', "'x' is not measured"),
        (
            HEAD
            + '[[measurements]]\nkind = "degree"\n[[expectations]]\nvalue = "degree.in_min"\nat_least = 1\nat_s = 101',
            "101 s is after the end",
        ),
        (HEAD + "[[faults]]\nat_s = 1", "faults[0]: 'kind' is missing"),
        (HEAD + '[[faults]]\nkind = "crush"', "did you mean 'crash'"),
        (HEAD + '[[faults]]\nkind = "crash"', "either 'share' or 'count'"),
        (
            HEAD + '[[faults]]\nkind = "crash"\nshare = 0.5\nsilent = true',
            "faults[0] (crash): Object contains unknown field",
        ),
        (HEAD + '[[faults]]\nkind = "loss"\nshare = -1', "faults[0] (loss)"),
        (HEAD + '[[measurements]]\nkind = "degree"\n[[measurements]]\nkind = "degree"', "give it a 'name'"),
        (HEAD + 'shown = ["traffic"]', "$.shown[0]"),
        (HEAD + 'shown = ["traffic.out_bytes_s"]', "shown[0]: 'traffic.out_bytes_s' is not measured"),
        (HEAD + '[[roles]]\nkind = "angel"', "no role 'angel'"),
        (HEAD + 'domains = 10\n[[faults]]\nkind = "join"\nshare = 1.0', "none is there to be asked"),
    ],
)
def test_a_mistake_is_refused_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        Plan(scenario_parse(text, "s", "s.toml"))
    assert complaint in str(refused.value)
    assert str(refused.value).startswith("s")


def test_a_scenario_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(ScenarioError, match="crash-half"):
        scenario_path("crash-all")


@pytest.mark.parametrize("name", bundled_names())
def test_every_bundled_scenario_is_understood_and_expects_something(name: str) -> None:
    scenario = scenario_read(scenario_path(name))
    Plan(scenario)
    assert scenario.description
    assert scenario.expectations
    assert scenario.quick_domains <= scenario.domains


def series(*values: float) -> dict[str, Series]:
    made = Series()
    for at, value in enumerate(values):
        made.add(10.0 * at, {"v": value})
    return {"m": made}


@pytest.mark.parametrize(
    ("expectation", "holds", "value", "at_s"),
    [
        (Expectation(value="m.v", at_least=3, at_s=20), True, 3, 20),
        (Expectation(value="m.v", at_least=3, at_s=10), False, 2, 10),
        (Expectation(value="m.v", at_least=2, by_s=40), True, 2, 10),
        (Expectation(value="m.v", at_least=2, by_s=40, from_s=20), True, 3, 20),
        (Expectation(value="m.v", at_least=9, by_s=30), False, 1, 30),
        (Expectation(value="m.v", at_most=2, always=True), False, 3, 20),
        (Expectation(value="m.v", at_most=2, always=True, until_s=15), True, 2, 10),
        (Expectation(value="m.v", at_most=5, always=True), True, 3, 20),
        (Expectation(value="m.v", at_least=0, always=True, from_s=10), True, 1, 30),
        (Expectation(value="m.v", at_least=1, at_most=1), True, 1, None),
        (Expectation(value="m.sum", at_least=6), True, 7, None),
        (Expectation(value="m.other", at_least=0), False, None, None),
        (Expectation(value="m.v", at_most=5, at_s=90), False, None, None),
    ],
)
def test_expectations_are_judged_by_samples_and_at_the_end_by_summaries(
    expectation: Expectation, holds: bool, value: float | None, at_s: float | None
) -> None:
    (outcome,) = judge([expectation], series(1, 2, 3, 1), {"m": {"sum": 7.0}})
    assert (outcome.holds, outcome.value, outcome.at_s) == (holds, value, at_s)


def test_a_value_that_is_not_a_number_fulfils_nothing() -> None:
    (outcome,) = judge([Expectation(value="m.v", at_most=5)], series(float("nan")), {"m": {}})
    assert not outcome.holds


@pytest.mark.parametrize("name", sorted(set(bundled_names()) - LONG))
def test_bundled_scenarios_hold_with_few_domains(name: str) -> None:
    quick_holds(name)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if name in SOAK else name for name in sorted(LONG)]
)
def test_long_bundled_scenarios_hold_with_few_domains(name: str) -> None:
    quick_holds(name)


def quick_holds(name: str) -> None:
    scenario = scenario_read(scenario_path(name))
    result = SimulationRun(msgspec.structs.replace(scenario, domains=scenario.quick_domains), 1, Random).go()
    failed = [
        f"{one.expectation}: {one.value}"
        for one in result.outcomes
        if not one.holds and "speed." not in one.expectation
    ]
    assert not failed


def test_the_guide_explains_every_kind_and_field() -> None:
    guide = (Path(__file__).parents[2] / "docs/simulation/README.md").read_text()
    names = [*Scenario.__struct_fields__, *NetworkPlan.__struct_fields__, *Expectation.__struct_fields__]
    names = [name for name in names if name not in ("network", "faults", "roles", "measurements", "expectations")]
    for registry in (FAULTS, MEASUREMENTS, ROLES):
        for kind, of in registry:
            names += [kind, *of.__struct_fields__]
    missing = [name for name in names if f"`{name}`" not in guide and f"`{name} = " not in guide]
    assert not missing


def test_the_example_of_the_guide_runs() -> None:
    guide = (Path(__file__).parents[2] / "docs/simulation/README.md").read_text()
    scenario = scenario_parse(guide.partition("```toml\n")[2].partition("```")[0], "example", "README.md")
    assert SimulationRun(msgspec.structs.replace(scenario, domains=100), 1, Random).go().holds
