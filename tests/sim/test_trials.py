"""Worlds drawn by seeds, with faults and liars: what must hold does. `make test` runs a few seeds, `make test-long` SEEDS.

A failure names the seed and the command that runs it again.
"""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from eventing.sim.checkers.check_failed import CheckFailed
from eventing.sim.run import SimulationRun
from eventing.sim.trials import DOMAINS, LIARS, TROUBLE_S, replay_command, trial, trial_run

SEEDS = 40
"""A world takes 2 to 4 s."""


def tried(seed: int, domains: int) -> None:
    try:
        trial_run(seed, Random, domains)
    except CheckFailed as error:
        pytest.fail(f"{error}\nRun it again: {replay_command(seed, domains)}")


@pytest.mark.parametrize("seed", range(1000, 1006))
def test_a_small_world_holds(seed: int) -> None:
    tried(seed, 60)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEEDS))
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
