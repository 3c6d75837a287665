"""The other half of the worlds of test_trials.py, for another worker."""

from __future__ import annotations

import pytest

from eventing.sim.trials import DOMAINS
from tests.sim.trying import SEEDS, tried


@pytest.mark.long
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, SEEDS, 2))
def test_a_world_holds(seed: int) -> None:
    tried(seed, DOMAINS)
