"""The scenarios, in the order in which they run. Each module's head states what is measured and why so."""

from __future__ import annotations

from bench.measure import Scenario
from bench.scenarios import (
    batches,
    catchup,
    console,
    fanout,
    federation,
    forwarded_many,
    gateways,
    idle,
    idle_domain,
    many_rps,
    publish,
    push,
)

SCENARIOS: dict[str, Scenario] = {
    "fanout": fanout.run,
    "publish": publish.run,
    "batches": batches.run,
    "idle": idle.run,
    "many-rps": many_rps.run,
    "catchup": catchup.run,
    "federation": federation.run,
    "forwarded-many": forwarded_many.run,
    "console": console.run,
    "push": push.run,
    "idle-domain": idle_domain.run,
    "gateways": gateways.run,
}
LONG = frozenset({"federation", "forwarded-many", "console", "push", "idle-domain", "gateways"})
"""Scenarios that run only on request: they take some minutes, and start domains of their own."""

APART = frozenset({"console", "forwarded-many", "push", "idle-domain", "gateways"})
"""Scenarios with result files of their own when run alone with the default options."""
