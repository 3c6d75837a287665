"""Many RPs: events rotating over 8,000 of them, against the same rate at one.

1,000 sessions read eight RPs each, so that every event has one reader in both cases, and both run against the same
process with the same RPs and sessions. The difference is the cost of many RPs. One WebSocket connection
publishes at a fixed pace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.load import LoadPlan
from bench.measure import Bench, BenchMeasurement, generator_notes, per
from bench.peers.base import BenchServer, Route

RPS_PER_SESSION = 8
WINDOW = 1024
HISTORY_EVENTS = 100
ROUNDS = 2


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield one row per rate, or none where a connection cannot read many RPs."""
    if Route.WEBSOCKET not in server.routes:
        return
    streams = bench.options.rps // RPS_PER_SESSION * RPS_PER_SESSION
    server.prepare(streams, HISTORY_EVENTS)
    for rate in bench.options.many_rates:
        yield _compare(bench, server, streams, rate)


def _compare(bench: Bench, server: BenchServer, streams: int, rate: float) -> BenchMeasurement:
    one, many = _Sum(), _Sum()
    for _ in range(ROUNDS):  # by turns, so that neither is always the one that warms the other up
        one.add(bench, server, _plan(bench, server, streams, range(1), rate))
        many.add(bench, server, _plan(bench, server, streams, range(streams), rate))
    return BenchMeasurement(
        "many-rps",
        f"{streams:,} RPs, {rate:g} events/s",
        server.name,
        {
            "one_events_per_cpu_s": one.per_cpu_s,
            "many_events_per_cpu_s": many.per_cpu_s,
            "ratio": many.per_cpu_s / one.per_cpu_s if one.events else 0.0,
            "one_p99_ms": one.p99_ms,
            "many_p99_ms": many.p99_ms,
        },
        (*one.flaws, *many.flaws),
        (*one.notes, *many.notes),
    )


@dataclass
class _Sum:
    """One of the two cases, over its rounds."""

    events: int = 0
    cpu_s: float = 0.0
    p99_ms: float = 0.0
    flaws: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def per_cpu_s(self) -> float:
        return per(self.events, self.cpu_s)

    def add(self, bench: Bench, server: BenchServer, plan: LoadPlan) -> None:
        """Add one round."""
        outcome, cpu_s = bench.run(server, plan)
        self.events += outcome.deliveries
        self.cpu_s += cpu_s
        self.p99_ms = max(self.p99_ms, outcome.p99_ms)
        self.flaws += outcome.flaws
        self.notes += generator_notes(outcome)
        reached = outcome.published / (plan.rate * plan.seconds)
        if reached < 0.99:
            self.notes.append(f"took {reached:.0%} of the pace")


def _plan(bench: Bench, server: BenchServer, streams: int, published: range, rate: float) -> LoadPlan:
    answers = server.routes[Route.WEBSOCKET]
    return LoadPlan(
        port=server.port,
        sessions=[server.reader(range(start, start + RPS_PER_SESSION)) for start in range(0, streams, RPS_PER_SESSION)],
        publishers=[server.publisher(Route.WEBSOCKET)],
        templates=[server.request(Route.WEBSOCKET, stream) for stream in published],
        ready=server.ready,
        ready_count=RPS_PER_SESSION if server.ready_each else 1,
        publisher_ready=answers.publisher_ready,
        good=answers.good,
        bad=answers.bad,
        offset=server.offset,
        rate=rate,
        seconds=bench.options.seconds,
        window=WINDOW,
        streams=streams,
        by_stream=True,
        deliveries_per_event=1,
    )
