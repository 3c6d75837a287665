"""One trial as a test: a world that a seed draws, run to its end. A failure names the seed and the command that runs it again."""

from __future__ import annotations

from random import Random

import pytest

from eventing.sim.checkers.check_failed import CheckFailed
from eventing.sim.trials import replay_command, trial_run

SEEDS = 200
"""Of `make test-long` and `make test-soak` together, in two files, so that two workers share them."""


def tried(seed: int, domains: int) -> None:
    """Run a world; fail where a check does."""
    try:
        trial_run(seed, Random, domains)
    except CheckFailed as error:
        pytest.fail(f"{error}\nRun it again: {replay_command(seed, domains)}")
