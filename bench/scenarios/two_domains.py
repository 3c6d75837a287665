"""Two domains as processes: a publisher at one, sessions at the other, and what reached them. Shared by scenarios."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.load import LoadOutcome, LoadPlan
from bench.measure import Bench, BenchMeasurement, generator_notes, per
from bench.peers.base import Route
from bench.peers.domain import BenchDomain
from bench.processes import CannotStart

RPS_PER_SESSION = 8
LAG_MS_MAX = 2000.0  # p99; a queue that grows for the whole of a run would be beyond it
WINDOW = 1024
DRAIN_S = 10.0
HELD_WITHIN_S = 120.0


def peered(one: BenchDomain, other: BenchDomain) -> None:
    """Make the two peers, and wait until both sides hold each other for active."""
    one.add_peer(other)
    other.add_peer(one)
    one.await_peer(other)
    other.await_peer(one)


def plan(
    a: BenchDomain, b: BenchDomain, streams: range, rate: float, seconds: float, readers: range | None = None
) -> LoadPlan:
    """Return a plan with a publisher at `a` and sessions at `b`, each event read once.

    Args:
        streams: indices of the RPs that are published at.
        rate: events per second.
        readers: indices of the RPs that are read, `streams` among them; None: `streams`.
    """
    answers = a.routes[Route.WEBSOCKET]
    readers = streams if readers is None else readers
    each = min(RPS_PER_SESSION, len(readers))
    return LoadPlan(
        port=a.port,
        sessions_port=b.port,
        sessions=[b.reader(readers[at : at + each]) for at in range(0, len(readers), each)],
        publishers=[a.publisher(Route.WEBSOCKET)],
        templates=[a.request(Route.WEBSOCKET, stream) for stream in streams],
        ready=b.ready,
        ready_count=each,
        publisher_ready=answers.publisher_ready,
        good=answers.good,
        bad=answers.bad,
        offset=b.offset,
        rate=rate,
        seconds=seconds,
        window=WINDOW,
        streams=readers.stop,
        by_stream=True,
        deliveries_per_event=1,
        drain_s=DRAIN_S,
    )


def measured(
    bench: Bench,
    a: BenchDomain,
    b: BenchDomain,
    streams: range,
    rate: float,
    seconds: float,
    readers: range | None = None,
) -> BenchMeasurement:
    """Measure one paced run, as a row without a name; arguments as of `plan`."""
    held, taken = b.held(streams), b.traffic(a)
    with bench.load(plan(a, b, streams, rate, seconds, readers)) as load:
        load.open()
        load.ready()
        began, cpu_s = time.monotonic(), _cpu_s(a, b)
        outcome = load.run()
        elapsed_s, used_s = time.monotonic() - began, _cpu_s(a, b) - cpu_s
    now = b.traffic(a)
    here = b.held(streams) - held
    flaws = [*outcome.flaws, *([] if here == outcome.published else [f"{outcome.published - here:,} not held"])]
    return BenchMeasurement(
        "federation",
        "",
        "herald",
        {
            "rate_per_s": rate,
            "events_per_s": outcome.deliveries / max(outcome.received_s, seconds, 1e-6),
            "p50_ms": outcome.p50_ms,
            "p99_ms": outcome.p99_ms,
            "events_per_cpu_s": per(outcome.deliveries, used_s),
            "requests_per_s": (now["requests"] - taken["requests"]) / elapsed_s,
        },
        tuple(flaws),
        (*generator_notes(outcome), *_pace_note(outcome, rate * seconds)),
    )


def _cpu_s(a: BenchDomain, b: BenchDomain) -> float:
    """CPU seconds of all processes of both domains since their start."""
    return a.processes.everything_cpu_s() + b.processes.everything_cpu_s()


def _pace_note(outcome: LoadOutcome, wanted: float) -> tuple[str, ...]:
    reached = outcome.published / wanted
    return (f"took {reached:.0%} of the pace",) if reached < 0.99 else ()


def carried(row: BenchMeasurement) -> bool:
    """Return whether the rate of a measured run was sustained: nothing lost, a bounded delay, almost all of the pace."""
    values = row.values
    return not row.flaws and values["p99_ms"] <= LAG_MS_MAX and values["events_per_s"] >= 0.95 * values["rate_per_s"]


def await_held(domain: BenchDomain, streams: Sequence[int], events: int, within_s: float = HELD_WITHIN_S) -> None:
    """Wait until a domain holds so many events of these RPs."""
    deadline = time.monotonic() + within_s
    while domain.held(streams) < events:
        if time.monotonic() > deadline:
            raise CannotStart(f"{domain.domain} held {domain.held(streams):,} of {events:,} events in the end")
        time.sleep(0.05)
