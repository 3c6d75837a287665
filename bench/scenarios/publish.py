"""Single-event publishes: 16 kept connections, each sending the next event when the last is answered.

Events per server CPU-second, and the delay to the answer. Nobody subscribes. Over HTTP, by wrk where it is installed,
each way in which users of the server publish; and by the load generator of this benchmark, which checks every answer.
nats-server has no HTTP publish and is asked over 16 WebSocket connections instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bench import wrk
from bench.load import LoadPlan
from bench.measure import GENERATOR_BUSY_MAX, Bench, BenchMeasurement, generator_notes, per
from bench.peers.base import BenchServer, Route

CONNECTIONS = 16
WRK = f"wrk -t1 -c{CONNECTIONS},"


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield one row for each way to publish by wrk, and one by the load generator of this benchmark."""
    server.prepare(1)
    program = wrk.find()
    for post in server.posts(0):
        if program is None:
            break
        yield wrk_case(bench, server, program, post)
    missing = () if program or not server.posts(0) else (wrk.MISSING,)
    route = Route.HTTP if Route.HTTP in server.routes else Route.WEBSOCKET
    own = publish_case(bench, server, "publish", f"single, {CONNECTIONS} connections", route, CONNECTIONS, 1, 1)
    yield replace(own, notes=(*own.notes, *missing))


def wrk_case(bench: Bench, server: BenchServer, program: str, post: wrk.Post) -> BenchMeasurement:
    """Publish to stream 0 with wrk, as fast as it is answered."""
    stored_before = server.stored(0)
    before, beside = server.processes.cpu_s(), server.beside_cpu_s()
    outcome = wrk.run(program, server.folder, server.port, post, CONNECTIONS, bench.options.seconds)
    cpu_s = server.processes.cpu_s() - before
    beside = server.beside_cpu_s() - beside
    stored_after = server.stored(0)
    answered = outcome.requests - outcome.refused
    flaws = [f"{count:,} {what}" for count, what in ((outcome.refused, "refused"), (outcome.failed, "failed")) if count]
    if stored_before is not None and stored_after is not None:
        surplus = stored_after - stored_before - answered  # wrk ends with requests on their way
        if not 0 <= surplus <= CONNECTIONS:
            flaws.append(f"{-surplus:,} answered but not in the log")
    busy = outcome.cpu_s / outcome.seconds if outcome.seconds else 0.0
    notes = [server.durability]
    if busy > GENERATOR_BUSY_MAX:
        notes.append(f"wrk busy {busy:.0%}")
    if beside:
        notes.append(f"the domain's other processes: {beside / outcome.seconds:.1%} of a core")
    return BenchMeasurement(
        "publish",
        f"{WRK} {post.case}",
        server.name,
        {
            "events_per_cpu_s": per(answered, cpu_s),
            "events_per_s": answered / outcome.seconds if outcome.seconds else 0.0,
            "answer_p50_ms": outcome.p50_ms,
            "answer_p99_ms": outcome.p99_ms,
            "server_cpu_s": cpu_s,
            "generator_cpu_s": outcome.cpu_s,
        },
        tuple(flaws),
        tuple(notes),
    )


def publish_case(
    bench: Bench,
    server: BenchServer,
    scenario: str,
    case: str,
    route: Route,
    connections: int,
    window: int,
    events: int,
) -> BenchMeasurement:
    """Publish to stream 0 as fast as it is answered, with `window` requests of `events` events in flight per connection."""
    answers = server.routes[route]
    plan = LoadPlan(
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
    return BenchMeasurement(
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
