"""`manage.py simulation_results`: run bundled scenarios with recorded seeds, each in a process of its own, and write the page of results."""

from __future__ import annotations

import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from eventing.sim.errors import ScenarioError
from eventing.sim.plots import plots_write
from eventing.sim.recorded_runs import RecordedRun, keep, kept, runs_of
from eventing.sim.remaining_time import RemainingTime, duration_text
from eventing.sim.results import RunResult, from_json
from eventing.sim.results_page import page
from eventing.sim.scenario import DOMAINS_MAX, bundled_names, scenario_path, scenario_read

ROOT = Path(__file__).parents[3]
SEEDS_MAX = 100  # bound: seeds of one report; more are refused


class Command(BaseCommand):
    """Write docs/simulation/results.md. What was run before with the same scenario, size and seed is not run again."""

    help = "Run bundled scenarios with several seeds and write the page of results with plots. Goes on where it was interrupted."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("scenarios", nargs="*", help="names of bundled scenarios; all if absent")
        parser.add_argument("--domains", type=int, help="no run has more domains than this")
        parser.add_argument("--seeds", type=int, default=5, help="number of seeds, from 1 on (5)")
        parser.add_argument("--into", type=Path, default=ROOT / "docs" / "simulation", metavar="DIR")
        parser.add_argument("--again", action="store_true", help="run also what was run before")
        parser.add_argument(
            "--only-write", action="store_true", help="run nothing: write the page of what was run before"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run what is lacking and write the page."""
        if not 1 <= options["seeds"] <= SEEDS_MAX:
            raise CommandError(f"--seeds: from 1 to {SEEDS_MAX}", returncode=2)
        if options["domains"] is not None and not 2 <= options["domains"] <= DOMAINS_MAX:
            raise CommandError(f"--domains: from 2 to {DOMAINS_MAX:,}", returncode=2)
        into: Path = options["into"]
        failed: list[RecordedRun] = []
        try:
            names = [scenario_read(scenario_path(name)).name for name in options["scenarios"] or bundled_names()]
            if not options["only_write"]:
                wanted = runs_of(names, options["domains"], range(1, options["seeds"] + 1))
                failed = self._run_all(wanted, into, again=options["again"])
            self._write(into)
        except ScenarioError as error:
            raise CommandError(str(error), returncode=2) from None
        except KeyboardInterrupt:
            self._write(into)
            raise CommandError("Interrupted. The same command goes on with what is lacking.", returncode=130) from None
        if failed:
            raise CommandError("Could not be run: " + ", ".join(run.path.stem for run in failed))

    def _run_all(self, wanted: list[RecordedRun], into: Path, *, again: bool) -> list[RecordedRun]:
        """Make the runs that are lacking; return those that failed, which the others do not wait for."""
        held = {run: None if again else kept(run, into) for run in wanted}
        left = [run for run, result in held.items() if result is None]
        remaining = RemainingTime(left, [result for result in held.values() if result is not None])
        failed = []
        if len(left) < len(wanted):
            self.stderr.write(f"{len(wanted) - len(left)} of {len(wanted)} runs are kept from before.")
        for number, run in enumerate(left, 1):
            self.stderr.write(
                f"Run {number} of {len(left)}: {run.name}, {run.domains:,} domains, seed {run.seed}; "
                f"about {duration_text(remaining.left_s())} left for all"
            )
            began_s = time.monotonic()
            result = self._run(run, into)
            remaining.done(run, result, time.monotonic() - began_s)
            if result is None:
                failed.append(run)
                self.stderr.write(f"{run.path.stem} could not be run.")
        return failed

    def _run(self, run: RecordedRun, into: Path) -> RunResult | None:
        """Make one run in a process of its own and keep its result; None: it failed."""
        command = [sys.executable, str(ROOT / "manage.py"), "simulate", run.name, "--json", "-"]
        command += ["--domains", str(run.domains), "--seed", str(run.seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if done.returncode not in (0, 1):
            return None
        try:
            (result,) = from_json(done.stdout)
        except ValueError:  # code 1 without a result: a check of the scenario failed, and its message is shown
            return None
        keep(run, result, into)
        return result

    def _write(self, into: Path) -> None:
        """Write the page of all results that are kept and still those of their scenarios."""
        results: list[RunResult] = []
        plots: dict[str, list[Path]] = {}
        for name in bundled_names():
            found = [
                run for path in (into / "results").glob(f"{name}-*-*.json") if (run := _run_of(name, path)) is not None
            ]
            of = [
                result for run in sorted(found, key=lambda one: (one.domains, one.seed)) if (result := kept(run, into))
            ]
            results += of
            if of:
                largest = [one for one in of if one.domains == of[-1].domains]
                drawn = plots_write(scenario_read(scenario_path(name)), largest, into / "plots")
                plots[name] = [path.relative_to(into) for path in drawn]
        (into / "results.md").write_text(page(results, plots), encoding="utf-8")
        self.stdout.write(f"{len(results)} runs: {into / 'results.md'}")


def _run_of(name: str, path: Path) -> RecordedRun | None:
    domains, _, seed = path.stem.removeprefix(f"{name}-").partition("-")
    return RecordedRun(name, int(domains), int(seed)) if domains.isdigit() and seed.isdigit() else None
