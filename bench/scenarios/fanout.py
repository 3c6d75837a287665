"""Fan-out: one publisher, many WebSocket sessions on one RP, at several rates.

Deliveries per server CPU-second, and the delay from the moment of sending to the moment at which a session's bytes are
read. Every frame of every session is checked. The publisher keeps its pace as long as fewer than 64 requests are
unanswered; a server that cannot keep it is offered less, which the row shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.load import LoadPlan
from bench.measure import Bench, BenchMeasurement, generator_notes, per
from bench.peers.base import BenchServer

WINDOW = 64
LOW_RATE = 100.0  # up to this rate the measurement is twice as long: there is less to count
HOPELESS = 0.5  # below this share of the asked pace, or of deliveries, higher rates are not tried


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield one row per rate."""
    options = bench.options
    server.prepare(1)
    answers = server.routes[server.fanout_route]
    for rate in sorted(options.rates):
        seconds = options.seconds * (2 if rate <= LOW_RATE else 1)
        plan = LoadPlan(
            port=server.port,
            sessions=[server.reader([0])] * options.sessions,
            publishers=[server.publisher(server.fanout_route)],
            templates=[server.request(server.fanout_route, 0)],
            ready=server.ready,
            publisher_ready=answers.publisher_ready,
            good=answers.good,
            bad=answers.bad,
            offset=server.offset,
            rate=rate,
            seconds=seconds,
            window=WINDOW,
            deliveries_per_event=options.sessions,
        )
        outcome, cpu_s = bench.run(server, plan)
        reached = outcome.published / (rate * seconds)
        yield BenchMeasurement(
            "fanout",
            f"{rate:g} events/s",
            server.name,
            {
                "rate_per_s": rate,
                "published_per_s": outcome.published / seconds,
                "deliveries_per_cpu_s": per(outcome.deliveries, cpu_s),
                "deliveries": outcome.deliveries,
                "lost": outcome.lost,
                "p50_ms": outcome.p50_ms,
                "p99_ms": outcome.p99_ms,
                "server_cpu_s": cpu_s,
                "generator_cpu_s": outcome.cpu_s,
            },
            tuple(outcome.flaws),
            generator_notes(outcome) + ((f"took {reached:.0%} of the pace",) if reached < 0.99 else ()),
        )
        if reached < HOPELESS or outcome.deliveries < HOPELESS * outcome.published * options.sessions:
            return
