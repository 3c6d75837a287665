"""`manage.py simulation_results`: run bundled scenarios with recorded seeds, each in a process of its own, and write the page of results."""

from __future__ import annotations

import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from eventing.sim.errors import ScenarioError
from eventing.sim.plots import plots_write
from eventing.sim.recorded_runs import RecordedRun, keep, kept, page, runs_of
from eventing.sim.results import RunResult, from_json
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
        try:
            names = [scenario_read(scenario_path(name)).name for name in options["scenarios"] or bundled_names()]
            if not options["only_write"]:
                for run in runs_of(names, options["domains"], range(1, options["seeds"] + 1)):
                    if options["again"] or kept(run, into) is None:
                        self._run(run, into)
            self._write(into)
        except ScenarioError as error:
            raise CommandError(str(error), returncode=2) from None

    def _run(self, run: RecordedRun, into: Path) -> None:
        self.stderr.write(f"{run.name}, {run.domains:,} domains, seed {run.seed}")
        command = [sys.executable, str(ROOT / "manage.py"), "simulate", run.name, "--json", "-"]
        command += ["--domains", str(run.domains), "--seed", str(run.seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        if done.returncode not in (0, 1):
            raise CommandError(f"{run.name} could not be run.")
        (result,) = from_json(done.stdout)
        keep(run, result, into)

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
