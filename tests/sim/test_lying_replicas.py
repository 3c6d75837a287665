"""Replicas and monitors that lie: every event reaches the honest in time, liars are found by their neighbours, and nobody honest is taken for one."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from eventing.sim.errors import ScenarioError
from eventing.sim.results import RunResult
from eventing.sim.run import SimulationRun
from eventing.sim.scenario import Scenario, scenario_parse, scenario_path, scenario_read


def bundled(name: str, **changes: object) -> Scenario:
    scenario = scenario_read(scenario_path(name))
    return msgspec.structs.replace(scenario, domains=scenario.quick_domains, **changes)


def ran(scenario: Scenario) -> RunResult:
    return SimulationRun(scenario, 1, Random).go()


def test_a_flapping_replica_is_dropped_by_its_neighbours_and_no_honest_one_is_scored() -> None:
    text = """
        title = "flapping"
        domains = 24
        duration_s = 40
        settle_s = 30
        renew_records = false
        [[roles]]
        kind = "graft-flapper"
        share = 0.1
        [[measurements]]
        kind = "broadcasts"
        scores = true
        rounds = 12
        [[measurements]]
        kind = "scored"
        """
    summaries = ran(scenario_parse(text, "s", "s.toml")).summaries
    assert summaries["broadcasts"]["in_time"] == 1.0
    assert summaries["scored"]["dropped"] == 1.0
    assert summaries["scored"]["for_flapping"] == sum(
        value for name, value in summaries["scored"].items() if name.startswith("for_")
    )
    assert summaries["scored"]["wrongly_demoted"] == summaries["scored"]["wrongly_dropped"] == 0


def test_events_of_two_rendezvous_points_do_not_mix() -> None:
    text = """
        title = "two"
        domains = 12
        duration_s = 20
        settle_s = 20
        renew_records = false
        [[measurements]]
        kind = "broadcasts"
        name = "a"
        rp = "a"
        rounds = 5
        [[measurements]]
        kind = "broadcasts"
        name = "b"
        rp = "b"
        rounds = 3
        """
    summaries = ran(scenario_parse(text, "s", "s.toml")).summaries
    assert (summaries["a"]["events"], summaries["b"]["events"]) == (5, 3)
    assert summaries["a"]["missed"] == summaries["b"]["missed"] == 0
    assert summaries["a"]["in_time"] == summaries["b"]["in_time"] == 1.0


def test_monitors_cannot_lie_in_a_world_without_suspicion() -> None:
    with pytest.raises(ScenarioError, match="needs suspicion = true"):
        SimulationRun(bundled("liars-accusing", suspicion=False, measurements=(), expectations=()), 1, Random)
