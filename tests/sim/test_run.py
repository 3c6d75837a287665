"""Runs of scenarios: faults happen when and to whom they should, and a seed replays all of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eventing.sim.run import SimulationRun
from eventing.sim.scenario import scenario_parse

ROOT = Path(__file__).parents[2]
STORY = """
title = "A little of everything"
domains = 40
duration_s = 60
settle_s = 40
[network]
loss = 0.01
only_outbound = 0.1
[[faults]]
kind = "crash"
at_s = 5
share = 0.2
[[faults]]
kind = "pause"
at_s = 6
count = 3
for_s = 4
[[faults]]
kind = "partition"
at_s = 10
[[faults]]
kind = "restart"
at_s = 20
share = 0.2
within_s = 5
[[faults]]
kind = "heal"
at_s = 30
[[faults]]
kind = "throttle"
at_s = 31
share = 0.1
[[faults]]
kind = "one-way"
at_s = 35
count = 1
[[faults]]
kind = "join"
at_s = 40
count = 5
[[measurements]]
kind = "components"
[[measurements]]
kind = "failures"
[[measurements]]
kind = "traffic"
[[measurements]]
kind = "directories"
"""


def run_of(text: str, seed: int = 1) -> SimulationRun:
    return SimulationRun(scenario_parse(text, "s", "s.toml"), seed, Random)


def result_of(*args: str, hash_seed: str = "0") -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "manage.py", "simulate", *args, "--json", "-", "--quiet", "--digest"],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)
    return dict(result)


def test_two_processes_with_other_hash_seeds_see_the_same_events(tmp_path: Path) -> None:
    path = tmp_path / "story.toml"
    path.write_text(STORY)
    one, other, third = (
        result_of(str(path), "--seed", seed, hash_seed=h) for seed, h in (("7", "1"), ("7", "2"), ("8", "1"))
    )
    assert one["digest"] == other["digest"] != third["digest"]
    assert one["summaries"] == other["summaries"]
    assert one["events"] > 5000


def test_a_further_measurement_changes_nothing_in_the_world() -> None:
    handled = []
    for text in (STORY, STORY + '[[measurements]]\nkind = "degree"\nevery_s = 1\n'):
        run = run_of(text)
        run.go()
        handled.append((run.world.handled, run.world.sent))
    assert handled[0] == handled[1]


def test_faults_happen_at_their_time_to_their_number() -> None:
    run = run_of(STORY)
    running: dict[str, Any] = {}
    run.at(4.9, lambda: running.update(before=len(run.running)))
    run.at(5.1, lambda: running.update(crashed=len(run.running)))
    run.at(12.0, lambda: running.update(sides=sum(run.network.conditions.sides or b"")))
    run.at(26.0, lambda: running.update(restarted=len(run.running)))
    run.at(
        32.0, lambda: running.update(healed=run.network.conditions.sides is None, slow=len(run.network.conditions.slow))
    )
    run.at(45.0, lambda: running.update(joined=len(run.running)))
    run.go()
    assert running == {
        "before": 35, "crashed": 27, "sides": 20, "restarted": 35, "healed": True, "slow": 4, "joined": 40
    }  # fmt: skip


def test_a_settled_world_has_full_directories_links_and_one_component() -> None:
    run = run_of('title = "t"\ndomains = 200\nduration_s = 1\n')
    run.go()
    members = run.population.members
    assert {member.directory.count for member in members} == {200}
    assert {len(member.links.chosen) for member in members} == {6}


def test_renewals_reach_all_and_without_them_directories_stand_still() -> None:
    text = 'title = "t"\ndomains = 60\nduration_s = 300\n[[measurements]]\nkind = "directories"\nevery_s = 1\n'
    renewing = run_of(text).go()
    assert renewing.summaries["directories"]["current"] == 1.0
    assert max(renewing.series["directories"].values["different"]) > 1
    quiet = run_of("renew_records = false\n" + text).go()
    assert set(quiet.series["directories"].values["different"]) == {1}


def test_after_an_hour_apart_directories_differ_until_the_network_is_whole() -> None:
    text = """
title = "t"
domains = 60
start = "apart"
renew_records = false
duration_s = 300
[[faults]]
kind = "heal"
at_s = 50
[[measurements]]
kind = "components"
[[measurements]]
kind = "directories"
"""
    result = run_of(text).go()
    assert result.series["components"].values["largest"][3] == 0.5
    assert result.series["directories"].values["different"][3] == 2
    assert result.summaries["components"]["largest"] == 1.0
    assert result.summaries["directories"]["same"] == 1.0


def test_newcomers_are_unknown_until_they_join_and_known_to_all_soon_after() -> None:
    text = """
title = "t"
domains = 60
duration_s = 200
[[faults]]
kind = "join"
at_s = 10
count = 20
contact = 3
[[measurements]]
kind = "directories"
"""
    records = run_of(text).go().series["directories"].values
    assert records["records_mean"][0] == 40
    assert records["records_min"][-1] == 60


@pytest.mark.parametrize(("silently", "within_s"), [("false", 12.0), ("true", 15.0)])
def test_links_of_crashed_domains_end_at_all_peers(silently: str, within_s: float) -> None:
    text = f"""
title = "t"
domains = 60
duration_s = 60
[[faults]]
kind = "crash"
at_s = 10
count = 4
silently = {silently}
[[measurements]]
kind = "failures"
"""
    summary = run_of(text).go().summaries["failures"]
    assert summary["found"] >= 24
    assert summary["not_found"] == 0
    assert summary["found_max_s"] <= within_s
    assert summary["false"] == summary["removed"] == 0


def test_a_scenario_that_fails_ends_with_code_1_and_a_wrong_one_with_code_2(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    wrong = tmp_path / "wrong.toml"
    path.write_text(
        'title = "t"\ndomains = 20\nduration_s = 5\n[[measurements]]\nkind = "components"\n'
        '[[expectations]]\nvalue = "components.largest"\nat_most = 0.5\n'
    )
    wrong.write_text("domains = 3")
    command = [sys.executable, "manage.py", "simulate", "--quiet"]
    runs = [
        subprocess.run([*command, str(one)], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
        for one in (path, wrong)
    ]
    assert [one.returncode for one in runs] == [1, 2]
    assert "FAIL components.largest ≤ 0.5" in runs[0].stdout
    assert "title" in runs[1].stderr
    assert "Traceback" not in runs[1].stderr


def test_a_shorter_run_leaves_out_what_is_expected_later() -> None:
    result = result_of("joining", "--domains", "10", "--duration", "30")
    assert result["outcomes"] == []
    assert result["duration_s"] == 30
