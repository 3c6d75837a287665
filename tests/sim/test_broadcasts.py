"""Broadcasts over simulated federations reach everybody, and leave a tree."""

from __future__ import annotations

from random import Random

import pytest

from eventing.sim.results import RunResult
from eventing.sim.run import SimulationRun
from eventing.sim.scenario import scenario_parse


def ran(text: str, seed: int = 1) -> RunResult:
    scenario = scenario_parse(f'title = "test"\nrenew_records = false\n{text}', "test", "test")
    return SimulationRun(scenario, seed, Random).go()


@pytest.mark.parametrize("parameters", ["suspicious", "paper"])
def test_events_of_one_origin_reach_all_and_leave_a_tree(parameters: str) -> None:
    result = ran(
        f"""
        domains = 60
        duration_s = 80
        parameters = "{parameters}"
        settle_s = 120
        [[measurements]]
        kind = "broadcasts"
        rounds = 30
        gap_s = 2
        """
    )
    values = result.summaries["broadcasts"]
    assert values["missed"] == 0
    assert values["reached"] == 1.0
    assert values["cold_rmr"] > 1.5, "all links are eager at first"
    assert values["warm_rmr"] <= 0.1


def test_lost_messages_delay_events_and_lose_none() -> None:
    result = ran(
        """
        domains = 60
        duration_s = 60
        network.loss = 0.2
        [[measurements]]
        kind = "broadcasts"
        origins = "random"
        rounds = 15
        gap_s = 2
        """
    )
    values = result.summaries["broadcasts"]
    assert values["missed"] == 0
    assert values["events"] == 15


def test_events_published_after_half_crashed_reach_the_others() -> None:
    result = ran(
        """
        domains = 80
        duration_s = 60
        [[faults]]
        kind = "crash"
        at_s = 10
        share = 0.5
        [[measurements]]
        kind = "broadcasts"
        rounds = 10
        from_s = 5
        gap_s = 2
        """
    )
    assert result.summaries["broadcasts"]["missed"] == 0


def test_without_times_between_domains_the_first_event_takes_the_hops_of_flooding() -> None:
    """As in the papers, whose simulations count rounds."""
    values = ran(
        """
        domains = 60
        duration_s = 80
        parameters = "paper"
        network.latency_scale = 0
        settle_s = 120
        [[measurements]]
        kind = "broadcasts"
        rounds = 30
        gap_s = 2
        """
    ).summaries["broadcasts"]
    assert values["missed"] == 0
    assert values["cold_hops"] == values["cold_last_hop"] == values["flooding_hops"]
    assert values["over_flooding"] <= 1
