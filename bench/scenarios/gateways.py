"""Gateways: what two gateway processes of one domain cost against one, for fan-out and for publishes.

Two gateways on two cores serve twice as much as one on one core, if each delivery and each publish costs as much CPU time as with
one: so CPU time of gateways and Redis is measured, which a busy machine, or one with two cores of which the load generator has one,
distorts little. `ratio` is what two cores would serve with two gateways against one core with one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.measure import Bench, BenchMeasurement
from bench.peers.base import BenchServer, Route
from bench.peers.herald import Herald
from bench.scenarios import fanout
from bench.scenarios.publish import publish_case

COUNTS = (1, 2)
CONNECTIONS = 16
RATES = (100.0,)  # events/s of the fan-out
COSTS = ("deliveries_per_cpu_s", "events_per_cpu_s")


class Gateways(Herald):
    """A domain with so many gateways."""

    def __init__(self, folder: Path, count: int) -> None:
        super().__init__(folder / f"gateways-{count}")
        self.folder.mkdir()
        self._count = count
        self.processes.folder = self.folder

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {"HERALD_GATEWAYS": str(self._count)}


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield the rows of each number of gateways; none for other servers."""
    if not isinstance(server, Herald):
        return
    one: dict[str, BenchMeasurement] = {}
    few = Bench(bench.program, bench.folder, replace(bench.options, rates=RATES))
    for count in COUNTS:
        with Gateways(server.folder, count) as domain:
            rows = list(fanout.run(few, domain))
            rows.append(publish_case(few, domain, "publish", "publishes", Route.HTTP, CONNECTIONS, 1, 1))
        for row in rows:
            before = one.setdefault(row.case, row)
            cost = next(name for name in COSTS if name in row.values)
            served = {"ratio": count * row.values[cost] / before.values[cost]} if before.values[cost] else {}
            notes = (*row.notes, f"load {os.getloadavg()[0]:.0f}")
            case = f"{count} gateway{'s' * (count > 1)}: {row.case}"
            yield replace(row, scenario="gateways", case=case, values={**row.values, **served}, notes=notes)
