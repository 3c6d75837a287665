"""`manage.py simulate`: run a scenario of domains in this process. docs/simulation/README.md explains scenarios and results."""

from __future__ import annotations

import gc
import resource
import sys
import time
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from eventing.management.maelstrom_node import WORKLOADS, maelstrom_node_run
from eventing.sim.digest import EventDigest
from eventing.sim.errors import ScenarioError
from eventing.sim.plots import plots_write
from eventing.sim.progress import SimulationProgress
from eventing.sim.results import RunResult, as_json, as_text
from eventing.sim.run import SimulationRun
from eventing.sim.scenario import DOMAINS_MAX, DURATION_S_MAX, Scenario, bundled_names, scenario_path, scenario_read
from eventing.sim.trials import trial

NODE = "node"


@dataclass
class ProcessGauges:
    """Processor time and memory of this process."""

    def cpu_s(self) -> float:
        """Seconds of processor time so far."""
        return time.process_time()

    def memory_bytes(self) -> int:
        """Most memory so far."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


class Command(BaseCommand):
    """Run a scenario. Exit code 1 if an expectation of the scenario is not fulfilled, 2 if the scenario cannot be run."""

    help = (
        "Simulate a federation: a scenario file or the name of a bundled scenario. Without one, list the bundled ones."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument(
            "scenario",
            nargs="?",
            help="name of a bundled scenario, or path of a .toml file; node: be a node of Maelstrom",
        )
        parser.add_argument("--trial", action="store_true", help="draw a scenario with faults and liars from the seed")
        parser.add_argument("--domains", type=int, help="number of domains; the scenario's if absent")
        parser.add_argument(
            "--duration",
            type=float,
            metavar="S",
            help="simulated seconds; expectations about later moments are left out",
        )
        parser.add_argument("--seed", type=int, default=1, help="draws all that is left to chance; replays a run")
        parser.add_argument("--json", metavar="FILE", help="write the result as JSON; - for standard output")
        parser.add_argument("--plot", metavar="DIR", help="draw the values over time into this directory")
        parser.add_argument("--plot-format", choices=("svg", "png"), default="svg")
        parser.add_argument("--digest", action="store_true", help="hash all messages and events, to compare two runs")
        parser.add_argument("--workload", choices=WORKLOADS, help="of a node of Maelstrom; found out if absent")
        parser.add_argument("--quiet", action="store_true", help="no progress on standard error")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run and print."""
        if not options["scenario"] and not options["trial"]:
            self._list()
            return
        if options["scenario"] == NODE:
            maelstrom_node_run(sys.stdin.buffer, sys.stdout.buffer, seed=options["seed"], workload=options["workload"])
            return
        try:
            scenario = self._scenario(options)
            result = self._run(scenario, options)
            if options["plot"]:
                for path in plots_write(scenario, [result], Path(options["plot"]), options["plot_format"]):
                    self.stderr.write(str(path))
        except ScenarioError as error:
            raise CommandError(str(error), returncode=2) from None
        if options["json"] == "-":
            self.stdout.write(as_json([result]).decode())
        else:
            self.stdout.write(as_text(result))
            if options["json"]:
                Path(options["json"]).write_bytes(as_json([result]))
        if not result.holds:
            raise CommandError("Not all expectations were fulfilled.")

    def _list(self) -> None:
        for name in bundled_names():
            scenario = scenario_read(scenario_path(name))
            self.stdout.write(f"{name:<24} {scenario.domains:>7,} domains  {scenario.title}")

    def _scenario(self, options: dict[str, Any]) -> Scenario:
        if options["trial"]:
            scenario = trial(options["seed"], Random)
        else:
            scenario = scenario_read(scenario_path(options["scenario"]))
        if options["domains"] is not None:
            if not 2 <= options["domains"] <= DOMAINS_MAX:
                raise ScenarioError(f"--domains: from 2 to {DOMAINS_MAX:,}")
            scenario = msgspec.structs.replace(scenario, domains=options["domains"])
        if options["duration"] is not None:
            if not 0 < options["duration"] <= DURATION_S_MAX:
                raise ScenarioError(f"--duration: from 0 to {DURATION_S_MAX:,.0f} s")
            within = tuple(one for one in scenario.expectations if one.latest_s <= options["duration"])
            scenario = msgspec.structs.replace(scenario, duration_s=options["duration"], expectations=within)
        return scenario

    def _run(self, scenario: Scenario, options: dict[str, Any]) -> RunResult:
        gauges = ProcessGauges()
        began_s, cpu_s = time.monotonic(), gauges.cpu_s()
        run = SimulationRun(scenario, options["seed"], Random, gauges)
        digest = EventDigest(run.world) if options["digest"] else None
        gc.freeze()
        gc.disable()  # what a run makes has no cycles
        try:
            result = run.go(None if options["quiet"] else self._progress())
        finally:
            gc.enable()
        result.wall_s = round(time.monotonic() - began_s, 2)
        result.cpu_s = round(gauges.cpu_s() - cpu_s, 2)
        result.events_per_s = round(result.events / max(result.cpu_s, 0.01))
        result.memory_bytes = gauges.memory_bytes()
        result.digest = digest.hexdigest() if digest is not None else ""
        return result

    def _progress(self) -> SimulationProgress:
        shown = self.stderr.isatty()

        def write(line: str) -> None:
            self.stderr.write(f"\r{line}\x1b[K" if shown else line, ending="" if shown else "\n", style_func=str)
            self.stderr.flush()

        return SimulationProgress(time.monotonic, write, 0.5 if shown else 10.0)
