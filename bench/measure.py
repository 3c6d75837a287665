"""Shared parts of scenarios: options, measurements, and one run of the load generator against one server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.load import Load, LoadOutcome, LoadPlan
from bench.peers.base import BenchServer

GENERATOR_BUSY_MAX = 0.9  # share of its core; above it the load generator may be the bottleneck


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Amounts to run.

    Attributes:
        rates: events per second of the fan-out.
        seconds: length of each rate (twice for a low one), and of each publishing case.
        sessions: subscribers of the fan-out.
        idle_sessions: number of idle sessions, if the file limit allows.
        rps: rendezvous points of the many-RPs scenario.
        many_rates: events per second there.
        stored_events: length of the log in the catch-up scenario.
    """

    rates: tuple[float, ...] = (20, 60, 150, 300, 1000)
    seconds: float = 5.0
    sessions: int = 1000
    idle_sessions: int = 10_000
    rps: int = 8000
    many_rates: tuple[float, ...] = (1000, 4000)
    stored_events: int = 100_000


@dataclass(frozen=True, slots=True)
class BenchMeasurement:
    """One row.

    Attributes:
        scenario, case: what was measured; `case` distinguishes rows of a scenario and server.
        server: its name.
        values: numbers by name; the name ends with the unit.
        flaws: what a correct server would not have done (see LoadOutcome.flaws).
        notes: remarks for the reader of the number.
    """

    scenario: str
    case: str
    server: str
    values: Mapping[str, float]
    flaws: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return asdict(self)


Scenario = Callable[["Bench", BenchServer], Iterator[BenchMeasurement]]


@dataclass(frozen=True, slots=True)
class Bench:
    """The environment of a run: the compiled load generator, a folder for its plans, the options."""

    program: Path
    folder: Path
    options: Options = field(default_factory=Options)

    def load(self, plan: LoadPlan) -> Load:
        """Return the load generator for `plan`, to be entered."""
        return Load(self.program, plan, self.folder / f"plan-{os.getpid()}")

    def run(self, server: BenchServer, plan: LoadPlan) -> tuple[LoadOutcome, float]:
        """Run all stages of `plan`; return its outcome, and the CPU seconds of the server from the first publish to the
        last delivery.
        """
        with self.load(plan) as load:
            load.open()
            if not plan.expect:  # then all of it is part of the run
                load.ready()
            before = server.processes.cpu_s()
            outcome = load.run()
            return outcome, server.processes.cpu_s() - before


def generator_notes(outcome: LoadOutcome) -> tuple[str, ...]:
    """Return a note if the load generator, not the server, may have been the bottleneck."""
    busy = outcome.cpu_s / outcome.elapsed_s if outcome.elapsed_s else 0.0
    return (f"load generator busy {busy:.0%}",) if busy > GENERATOR_BUSY_MAX else ()


def per(amount: float, cpu_s: float) -> float:
    """Return `amount` per CPU-second; the clock ticks are 10 ms, so less than one counts as one."""
    return amount / max(cpu_s, 0.01)
