"""Worlds drawn by seeds, with faults and liars: what must hold does. `make test` runs a few seeds, `make test-long` IN_CI, `make test-soak` the
others up to SEEDS, half of them here and half in test_further_trials.py."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from eventing.sim.checkers.check_failed import CheckFailed
from eventing.sim.checkers.liveness import SPREAD_S
from eventing.sim.run import SimulationRun
from eventing.sim.trials import CHECK_S, DOMAINS, LIARS, REPAIR_S, TROUBLE_S, trial, trial_run
from tests.sim.trying import SEEDS, tried

IN_CI = 30
"""Seeds below which worlds are tried by `make test-long`."""


@pytest.mark.parametrize("seed", range(1000, 1006))
def test_a_small_world_holds(seed: int) -> None:
    tried(seed, 60)


@pytest.mark.long
@pytest.mark.parametrize(
    "seed", [seed if seed < IN_CI else pytest.param(seed, marks=pytest.mark.soak) for seed in range(0, SEEDS, 2)]
)
def test_a_world_holds(seed: int) -> None:
    tried(seed, DOMAINS)


def test_seeds_draw_all_liars_and_each_kind_of_fault() -> None:
    drawn = [trial(seed, Random) for seed in range(200)]
    assert {role["kind"] for one in drawn for role in one.roles} == {liar["kind"] for liar in LIARS}
    faults = {fault["kind"] for one in drawn for fault in one.faults}
    assert faults == {"crash", "restart", "pause", "partition", "one-way", "throttle", "loss", "heal"}


def test_a_failure_names_seed_time_and_domain() -> None:
    scenario = trial(3, Random, 20)
    cut = {"kind": "partition", "at_s": TROUBLE_S + 10, "shares": [0.3, 0.3]}
    run = SimulationRun(msgspec.structs.replace(scenario, faults=(cut,), roles=()), 3, Random)
    with pytest.raises(
        CheckFailed, match=r"seed 3, \d+\.\d s, domain \d+: \d+ of 20 honest domains are not in the largest"
    ):
        run.go()


def test_a_world_ends_once_all_holds_twice_and_not_before_the_last_record_is_everywhere() -> None:
    run = trial_run(3, Random, 20)
    assert TROUBLE_S + SPREAD_S + CHECK_S <= run.time < TROUBLE_S + REPAIR_S
