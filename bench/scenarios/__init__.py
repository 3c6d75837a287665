"""The scenarios, in the order in which they run. Each module's head says what is measured and why so."""

from __future__ import annotations

from bench.measure import Scenario
from bench.scenarios import batches, catchup, console, fanout, federation, idle, many_rps, publish

SCENARIOS: dict[str, Scenario] = {
    "fanout": fanout.run,
    "publish": publish.run,
    "batches": batches.run,
    "idle": idle.run,
    "many-rps": many_rps.run,
    "catchup": catchup.run,
    "federation": federation.run,
    "console": console.run,
}
LONG = frozenset({"federation", "console"})
"""What is run only when asked for: it takes some minutes, and starts domains of its own."""

APART = frozenset({"console"})
"""What is kept in files of its own when it is run alone with the default options."""
