"""The report runs what is lacking, keeps it, and makes one page of all that was kept."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from random import Random

import msgspec
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from eventing.sim.recorded_runs import RecordedRun, keep, kept, runs_of
from eventing.sim.remaining_time import RemainingTime, duration_text
from eventing.sim.results import ExpectationOutcome, RunResult, as_json, from_json
from eventing.sim.results_page import page
from eventing.sim.run import SimulationRun
from eventing.sim.scenario import scenario_parse, scenario_path, scenario_read


def report(into: Path, *args: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("simulation_results", *args, "--into", str(into), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


@pytest.mark.long
def test_a_report_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    _, first = report(tmp_path, "joining", "--domains", "20", "--seeds", "1")
    assert "joining, 20 domains, seed 1" in first
    _, second = report(tmp_path, "joining", "--domains", "20", "--seeds", "2")
    assert "seed 1" not in second
    assert "seed 2" in second
    text = (tmp_path / "results.md").read_text()
    assert "| [joining](#joining) | 20 | 1, 2 | yes |" in text
    assert "components.largest ≥ 1 by 120 s" in text
    plots = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert plots == ["joining-components.svg", "joining-degree.svg", "joining-directories.svg"]
    assert all(f"(plots/{name})" in text for name in plots)


def test_a_result_of_another_text_of_the_scenario_is_not_used(tmp_path: Path) -> None:
    run = RecordedRun("joining", 10, 1)
    scenario = msgspec.structs.replace(
        scenario_read(scenario_path("joining")), domains=10, expectations=(), duration_s=5
    )
    result = SimulationRun(scenario, 1, Random).go()
    keep(run, result, tmp_path)
    again = kept(run, tmp_path)
    assert again is not None
    assert again.summaries.keys() == result.summaries.keys()
    (tmp_path / run.path).write_bytes(as_json([result]).replace(result.scenario_digest.encode(), b"0" * 16))
    assert kept(run, tmp_path) is None
    (tmp_path / run.path).write_bytes(b"[{")
    assert kept(run, tmp_path) is None


def test_sizes_of_a_scenario_are_run_up_to_the_largest_that_is_wanted() -> None:
    assert [run.domains for run in runs_of(["steady"], None, [1])] == [100, 300, 1000, 3000, 10_000]
    assert [(run.domains, run.seed) for run in runs_of(["steady"], 300, [1, 2])] == [
        (100, 1),
        (300, 1),
        (100, 2),
        (300, 2),
    ]


@pytest.mark.long
def test_a_run_that_fails_stops_no_other_and_is_named_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenarios = tmp_path / "scenarios"
    scenarios.mkdir()
    (scenarios / "joining.toml").write_bytes(scenario_path("joining").read_bytes())
    (scenarios / "absent.toml").write_text('title = "The process that runs it does not find it"\nduration_s = 5\n')
    monkeypatch.setattr("eventing.sim.scenario.BUNDLED", scenarios)
    with pytest.raises(CommandError, match="Could not be run: absent-10-1"):
        report(tmp_path, "absent", "joining", "--domains", "10", "--seeds", "1")
    assert "| [joining](#joining) | 10 | 1 | yes |" in (tmp_path / "results.md").read_text()


def result(domains: int, seed: int, value: float, holds: bool, wall_s: float = 0.0) -> RunResult:
    outcomes = [ExpectationOutcome("components.largest ≥ 1 by 120 s", holds, value, 70.0)]
    return RunResult(
        scenario="joining", title="t", seed=seed, domains=domains, duration_s=240, events=1, messages=1,
        summaries={}, series={}, outcomes=outcomes, wall_s=wall_s,
    )  # fmt: skip


def test_the_page_shows_the_worst_seed_and_whether_any_failed() -> None:
    rows = page([result(30, 1, 1.0, True), result(30, 2, 0.9, False), result(30, 3, 1.0, True)], {}).splitlines()
    assert "| [joining](#joining) | 30 | 1, 2, 3 | 2 of 3 | 0 | 0 | 0.00 |" in rows
    assert "| components.largest ≥ 1 by 120 s | **0.9 at 70 s** |" in rows


def test_the_remaining_time_follows_what_similar_runs_took_and_the_speed_of_this_machine() -> None:
    left = [RecordedRun("joining", 30, 2), RecordedRun("joining", 60, 1)]
    remaining = RemainingTime(left, [result(30, 1, 1.0, True, wall_s=10.0)])
    assert 30 < remaining.left_s() < 35
    remaining.done(left[0], result(30, 2, 1.0, True, wall_s=20.0), 20.0)
    assert 40 < remaining.left_s() < 50
    assert [duration_text(one) for one in (9.6, 200, 9000)] == ["10 s", "3 min", "2 h 30 min"]


def test_what_was_not_measured_survives_as_json() -> None:
    text = 'title = "t"\ndomains = 10\nduration_s = 20\n[[measurements]]\nkind = "failures"\n'
    result = SimulationRun(scenario_parse(text, "s", "s"), 1, Random).go()
    (again,) = from_json(as_json([result]))
    value = again.summaries["failures"]["found_p99_s"]
    assert value != value
    assert again.series["failures"].at_s == result.series["failures"].at_s


def test_the_page_shows_what_failed(tmp_path: Path) -> None:
    scenario = scenario_read(scenario_path("joining"))
    short = msgspec.structs.replace(scenario, domains=30, duration_s=70, expectations=scenario.expectations[:1])
    short = msgspec.structs.replace(
        short, expectations=(msgspec.structs.replace(short.expectations[0], at_least=2.0, by_s=65.0),)
    )
    text = page([SimulationRun(short, 1, Random).go()], {})
    assert "| 0 of 1 |" in text
    assert " at 65 s** |" in text


def test_wrong_numbers_are_refused(tmp_path: Path) -> None:
    for args in (["--seeds", "0"], ["--domains", "1"], ["no-such-scenario"]):
        with pytest.raises(CommandError):
            report(tmp_path, *args)
