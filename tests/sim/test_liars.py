"""Liars of each family in small worlds: nothing that must hold is violated, and what bounds or detects each lie does so."""

from __future__ import annotations

from random import Random
from statistics import mean

import pytest

from eventing.overlay.directory_records import QUOTA_PER_DAY
from eventing.sim.results import RunResult
from eventing.sim.run import SimulationRun
from eventing.sim.scenario import scenario_parse

MEASURED = """
[[measurements]]
kind = "safety"
[[measurements]]
kind = "liveness"
due_s = {duration}
[[measurements]]
kind = "liars"
[[measurements]]
kind = "caught"
"""


def run_of(role: str, *, domains: int = 60, duration: int = 90, seed: int = 1, more: str = "") -> SimulationRun:
    text = f"""
        title = "liars"
        domains = {domains}
        duration_s = {duration}
        settle_s = 30
        {more}
        [[roles]]
        {role}
        """ + MEASURED.format(duration=duration)
    return SimulationRun(scenario_parse(text, "s", "s.toml"), seed, Random)


def result_of(role: str, **arguments: int) -> RunResult:
    return run_of(role, **arguments).go()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "role",
    [
        'kind = "asker"\nshare = 0.05',
        'kind = "babbler"\nshare = 0.05',
        'kind = "flapper"\nshare = 0.1',
        'kind = "future-versions"\nshare = 0.1',
        'kind = "mute"\nshare = 0.2',
        'kind = "replayer"\nshare = 0.1',
        'kind = "slow-reader"\nshare = 0.2',
        'kind = "shuffle-poisoner"\nshare = 0.2',
        'kind = "colluder"\nshare = 0.2\nrefuse = true',
        'kind = "flooder"\nshare = 0.1\nvictims = 2\nat_s = 10',
    ],
)
def test_honest_domains_stay_whole_whatever_a_family_of_liars_does(role: str) -> None:
    result = result_of(role)  # the checkers raise
    assert result.summaries["safety"]["checks"] > 300


@pytest.mark.parametrize("grab", [0.0, 60.0])
def test_colluders_get_about_their_share_of_the_links_that_honest_domains_choose(grab: float) -> None:
    result = result_of(f'kind = "colluder"\nshare = 0.2\ngrab = {grab}', domains=100)
    sampled, chosen = (mean(result.series["liars"].values[name]) for name in ("sampled", "chosen"))
    assert 0.1 < sampled <= 0.2 + 0.06  # few links: the share varies by chance
    assert 0.1 < chosen <= 0.2 + 0.1
    assert result.summaries["liars"]["without_s"] == 0.0


def test_two_records_of_one_version_convict_their_domain_everywhere_within_seconds() -> None:
    caught = result_of('kind = "equivocator"\nshare = 0.02\nbegin_s = 60').summaries["caught"]
    assert caught["lies"] == caught["convicted"] == 1
    assert caught["proof_99_s"] < 10.0


@pytest.mark.parametrize("way", ["numbers", "repeated", "chain"])
def test_a_burst_of_false_domains_is_no_larger_than_the_quota(way: str) -> None:
    role = f'kind = "sybil-sponsor"\nshare = 0.02\nids = 300\nwithin_s = 30\nway = "{way}"'
    run = run_of(role, duration=60)
    (liar,) = run.role_of
    given = run.population.member(liar).directory.record(liar).sponsorship  # type: ignore[attr-defined]
    caught = run.go().summaries["caught"]
    assert given is not None
    assert 0 < caught["false_ids"] <= QUOTA_PER_DAY * (20_000 - given.day + 1)
    if way == "repeated":
        assert caught["convicted"] == 1


def test_with_the_papers_parameters_shuffle_poisoners_fill_the_passive_views() -> None:
    text = """
        title = "poisoned"
        domains = 120
        duration_s = 300
        settle_s = 90
        parameters = "paper"
        [[roles]]
        kind = "shuffle-poisoner"
        share = 0.2
        every_s = 2
        [[measurements]]
        kind = "liars"
        """
    result = SimulationRun(scenario_parse(text, "s", "s.toml"), 1, Random).go()
    assert result.summaries["liars"]["passive"] > 0.5


def test_liars_that_stop_are_honest_again() -> None:
    run = run_of('kind = "colluder"\nshare = 0.2\nrefuse = true\nuntil_s = 20')
    run.go()
    links = [run.population.links(liar) for liar in run.role_of]
    assert sum(any(peer not in run.role_of for peer in view) for view in links) > len(links) / 2
