"""Catching up: a full log is replayed to one new WebSocket session.

Events per second of wall time and per server CPU-second, from subscribing to the last event; three sessions one after
the other. Only servers that store events can do it: Herald from its log, nchan from its message buffer.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.load import LoadError, LoadPlan
from bench.measure import Bench, BenchMeasurement, generator_notes, per
from bench.peers.base import BenchServer

REPEATS = 3
BATCH_EVENTS = 100
IN_FLIGHT = 16
FILLING_S_MAX = 120.0
FILLING_PER_S = 20_000  # nchan numbers the messages of one second with 16 bits


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield one row, or none if nothing is stored."""
    events = min(bench.options.stored_events, server.replay_events_max)
    if not events:
        return
    server.prepare(1, events)
    _fill(bench, server, events)
    plan = LoadPlan(
        port=server.port, sessions=[server.reader([0], from_start=True)], offset=server.offset, expect=events
    )
    wall_s = cpu_s = 0.0
    flaws: list[str] = []
    notes: tuple[str, ...] = ()
    for _ in range(REPEATS):
        outcome, used_s = bench.run(server, plan)
        wall_s += outcome.received_s
        cpu_s += used_s
        flaws += outcome.flaws
        notes = notes or generator_notes(outcome)
    total = REPEATS * events
    yield BenchMeasurement(
        "catchup",
        f"{events:,} events",
        server.name,
        {"events_per_s": total / max(wall_s, 1e-6), "events_per_cpu_s": per(total, cpu_s)},
        tuple(flaws),
        notes,
    )


def _fill(bench: Bench, server: BenchServer, events: int) -> None:
    batch = BATCH_EVENTS if server.batches else 1
    answers = server.routes[server.fanout_route]
    plan = LoadPlan(
        port=server.port,
        publishers=[server.publisher(server.fanout_route)],
        templates=[server.request(server.fanout_route, 0, batch)],
        events_per_request=batch,
        publisher_ready=answers.publisher_ready,
        good=answers.good,
        bad=answers.bad,
        rate=FILLING_PER_S,
        seconds=FILLING_S_MAX,
        count=events,
        window=IN_FLIGHT,
    )
    outcome, _ = bench.run(server, plan)
    if outcome.published != events or outcome.flaws:
        raise LoadError(f"The log could not be filled: {outcome.published} of {events} events. {outcome.flaws}")
