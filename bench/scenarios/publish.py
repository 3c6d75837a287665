"""Single-event publishes: 16 kept connections, each sending the next event when the last is answered.

Events per server CPU-second, and the delay to the answer. Nobody subscribes. Over HTTP; nats-server has no HTTP publish
and is asked over 16 WebSocket connections instead.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.load import Plan
from bench.measure import Bench, Measurement, generator_notes, per
from bench.peers.base import Route, Server

CONNECTIONS = 16


def run(bench: Bench, server: Server) -> Iterator[Measurement]:
    """One row."""
    server.prepare(1)
    route = Route.HTTP if Route.HTTP in server.routes else Route.WEBSOCKET
    yield publish_case(bench, server, "publish", f"single, {CONNECTIONS} connections", route, CONNECTIONS, 1, 1)


def publish_case(
    bench: Bench, server: Server, scenario: str, case: str, route: Route, connections: int, window: int, events: int
) -> Measurement:
    """Publish to stream 0 as fast as it is answered, with `window` requests of `events` events in flight per connection."""
    answers = server.routes[route]
    plan = Plan(
        port=server.port,
        publishers=[server.publisher(route)] * connections,
        templates=[server.request(route, 0, events)],
        events_per_request=events,
        publisher_ready=answers.publisher_ready,
        good=answers.good,
        bad=answers.bad,
        seconds=bench.options.seconds,
        window=window,
    )
    stored_before = server.stored(0)
    outcome, cpu_s = bench.run(server, plan)
    stored_after = server.stored(0)
    flaws = outcome.flaws
    if stored_before is not None and stored_after is not None and stored_after - stored_before != outcome.published:
        flaws.append(f"{outcome.published - (stored_after - stored_before):,} answered but not in the log")
    answered = outcome.good * events
    return Measurement(
        scenario,
        case,
        server.name,
        {
            "events_per_cpu_s": per(answered, cpu_s),
            "events_per_s": answered / outcome.answered_s if outcome.answered_s else 0.0,
            "answer_p50_ms": outcome.answer_p50_ms,
            "answer_p99_ms": outcome.answer_p99_ms,
            "server_cpu_s": cpu_s,
            "generator_cpu_s": outcome.cpu_s,
        },
        tuple(flaws),
        (f"{route.value}; {server.durability}", *generator_notes(outcome)),
    )
