"""The report runs what is lacking, keeps it, and makes one page of all that was kept."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from random import Random

import msgspec
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from eventing.sim.recorded_runs import RecordedRun, keep, kept, page, runs_of
from eventing.sim.results import as_json, from_json
from eventing.sim.run import SimulationRun
from eventing.sim.scenario import scenario_parse, scenario_path, scenario_read


def report(into: Path, *args: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("simulation_results", *args, "--into", str(into), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


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
    assert [run.domains for run in runs_of(["steady"], None, [1])] == [100, 1000, 10_000]
    assert [(run.domains, run.seed) for run in runs_of(["steady"], 300, [1, 2])] == [
        (100, 1),
        (100, 2),
        (300, 1),
        (300, 2),
    ]


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
