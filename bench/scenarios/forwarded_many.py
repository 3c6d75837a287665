"""Forwarded many: events over 8,000 RPs that two domains share, against the same rate at one of them.

A publisher at A, 1,000 sessions at B that read eight RPs each, so that every event has one reader in both cases; both run between the
same two domains, by turns, with the same RPs, links and sessions. The difference is the cost of forwarding over many RPs: of
seals, which are one per RP and request, however few events it covers. All processes of both domains count, on both cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from statistics import fmean

from bench.measure import Bench, BenchMeasurement
from bench.peers.base import BenchServer
from bench.peers.domain import BenchDomain
from bench.peers.herald import Herald
from bench.scenarios.two_domains import RPS_PER_SESSION, await_held, measured, peered, plan

HISTORY_EVENTS = 100
HISTORY_ONE_EVENTS = 200_000  # what one RP is published in a run must not leave its history before it is forwarded
RATES = (500.0, 1000.0, 2000.0)
WARM_RATE = 500.0
ROUNDS = 2


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield one row per rate; none for other servers."""
    if not isinstance(server, Herald):
        return
    count = bench.options.rps // RPS_PER_SESSION * RPS_PER_SESSION
    one, many = range(1), range(count)
    with ExitStack() as stack:
        a, b = (stack.enter_context(BenchDomain(server.folder, name)) for name in ("one", "two"))
        peered(a, b)
        a.prepare(1, HISTORY_ONE_EVENTS)
        a.prepare(count - 1, HISTORY_EVENTS)
        b.join(a)
        bench.run(a, plan(a, b, many, WARM_RATE, 2 * count / WARM_RATE))  # the first seal of each RP, and its tree
        await_held(b, one, 1)
        for rate in RATES:
            seconds = 2 * bench.options.seconds
            rows = [
                [measured(bench, a, b, streams, rate, seconds, many) for streams in (one, many)] for _ in range(ROUNDS)
            ]
            yield _compared(f"{count:,} RPs, {rate:g} events/s", rate, rows)


def _compared(case: str, rate: float, rounds: Sequence[Sequence[BenchMeasurement]]) -> BenchMeasurement:
    """Make one row of rounds of two runs, at one RP and at many."""
    singles, manies = ([round_[at] for round_ in rounds] for at in range(2))

    def mean(rows: Sequence[BenchMeasurement], name: str) -> float:
        return fmean(row.values[name] for row in rows)

    return BenchMeasurement(
        "forwarded-many",
        case,
        "herald",
        {
            "rate_per_s": rate,
            "one_events_per_s": mean(singles, "events_per_s"),
            "many_events_per_s": mean(manies, "events_per_s"),
            "ratio": mean(manies, "events_per_s") / mean(singles, "events_per_s"),
            "one_events_per_cpu_s": mean(singles, "events_per_cpu_s"),
            "many_events_per_cpu_s": mean(manies, "events_per_cpu_s"),
            "cpu_ratio": mean(manies, "events_per_cpu_s") / mean(singles, "events_per_cpu_s"),
            "one_p99_ms": max(row.values["p99_ms"] for row in singles),
            "many_p99_ms": max(row.values["p99_ms"] for row in manies),
        },
        tuple(flaw for row in (*singles, *manies) for flaw in row.flaws),
        tuple(note for row in (*singles, *manies) for note in row.notes),
    )
