"""The scenarios, in the order in which they run. Each module's head says what is measured and why so."""

from __future__ import annotations

from bench.measure import Scenario
from bench.scenarios import batches, catchup, fanout, idle, many_rps, publish

SCENARIOS: dict[str, Scenario] = {
    "fanout": fanout.run,
    "publish": publish.run,
    "batches": batches.run,
    "idle": idle.run,
    "many-rps": many_rps.run,
    "catchup": catchup.run,
}
