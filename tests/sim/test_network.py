"""The network of simulations has the round-trip times that it states."""

from __future__ import annotations

from random import Random

import pytest

from eventing.sim.network import SimulatedNetwork


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_round_trip_times_are_those_between_planetlab_hosts(seed: int) -> None:
    chance = Random(seed)
    network = SimulatedNetwork(10_000, chance)
    times = sorted(2000 * network.base_s(*chance.sample(range(10_000), 2)) for _ in range(20_000))
    assert times[10_000] == pytest.approx(135, rel=0.05)
    assert times[18_000] == pytest.approx(291, rel=0.05)
    assert times[-20] > 500


def test_a_time_is_the_same_in_both_directions_and_each_time() -> None:
    network = SimulatedNetwork(50, Random(1))
    assert all(network.base_s(a, b) == network.base_s(b, a) > 0 for a in range(50) for b in range(50))


def test_loss_partitions_and_one_way_failures_are_told_apart() -> None:
    network = SimulatedNetwork(4, Random(1))
    network.conditions.loss = 0.2
    assert 1700 < sum(network.loses() for _ in range(10_000)) < 2300
    network.conditions.sides = bytearray([0, 0, 1, 1])
    network.conditions.one_way = frozenset({(0, 1)})
    assert [(a, b) for a in range(4) for b in range(a) if network.reaches(b, a)] == [(3, 2)]
    assert network.reaches(1, 0)
