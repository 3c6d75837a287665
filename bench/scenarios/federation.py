"""Federation: whole domains that carry each other's rendezvous points, all on this machine and both its cores.

Two domains: a publisher at A, sessions at B, paced. The delay from A's publisher to B's session at 100 events/s; 2,000
events/s at one RP and over 1,000, and the highest rate without loss and with a bounded delay; the requests that B
counts meanwhile; and A's memory with 100,000 events while B is stopped, until B has them. Then five domains in a ring
with a chord, a publisher at each: how many duplicate events arrive once the links have settled. What B holds is
compared with what A acknowledged, at every row.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bench.load import LoadError, LoadPlan
from bench.measure import Bench, BenchMeasurement
from bench.peers.base import BenchServer, Route
from bench.peers.domain import BenchDomain
from bench.peers.herald import Herald
from bench.processes import resident_of
from bench.scenarios.two_domains import await_held, carried, measured, peered, plan

RPS = 1000
HISTORY_EVENTS = 1000
HISTORY_ONE_EVENTS = 200_000
RATE = 2000.0
STEPS = (3000.0, 4000.0, 5000.0, 6000.0, 8000.0)  # tried in turn until one is not carried
DELAY_RATE = 100.0
CATCHUP_EVENTS = 100_000
WARM_S = 2.0
RING = "abcde"
RING_RATE = 10.0  # at each of the five: their thirty processes share two cores
REST_S = 20.0  # for the links to prune duplicates


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield rows of two domains, then of five; none for other servers."""
    if not isinstance(server, Herald):
        return
    with ExitStack() as stack:
        a, b = (stack.enter_context(BenchDomain(server.folder, name)) for name in ("one", "two"))
        yield from _two(bench, a, b)
    folder = server.folder / "ring"
    folder.mkdir()
    with ExitStack() as stack:
        yield _ring(bench, _started(folder, stack))


def _two(bench: Bench, a: BenchDomain, b: BenchDomain) -> Iterator[BenchMeasurement]:
    peered(a, b)
    a.prepare(1, HISTORY_ONE_EVENTS)
    b.join(a)
    one, many = range(1), range(1, 1 + RPS)
    bench.run(a, plan(a, b, one, DELAY_RATE, WARM_S))
    yield _delay(bench, a, b)
    single = yield from _sustained(bench, a, b, one, "1 RP", 0.0)
    yield _catchup(bench, a, b)
    a.prepare(RPS, HISTORY_EVENTS)
    b.rps.clear()
    b.join(a)
    await_held(b, many, 0)
    bench.run(a, plan(a, b, many, DELAY_RATE * 5, WARM_S))
    yield from _sustained(bench, a, b, many, f"{RPS:,} RPs", single)


# -- two domains ----------------------------------------------------------------------------------------------------


def _delay(bench: Bench, a: BenchDomain, b: BenchDomain) -> BenchMeasurement:
    row = measured(bench, a, b, range(1), DELAY_RATE, 2 * bench.options.seconds)
    return replace(row, case="delay, 1 RP, 100 events/s")


def _sustained(
    bench: Bench, a: BenchDomain, b: BenchDomain, streams: range, name: str, against: float
) -> Generator[BenchMeasurement, None, float]:
    """Measure the target's rate, then higher ones until one is not sustained. Returns the events per second of the
    first.
    """
    row = measured(bench, a, b, streams, RATE, 4 * bench.options.seconds)  # long, for the last events' delay counts
    ratio = {"ratio": row.values["events_per_s"] / against} if against else {}
    yield replace(row, case=f"sustained, {name}", values={**row.values, **ratio})
    most = row if carried(row) else None
    for rate in STEPS if most is not None else ():
        more = measured(bench, a, b, streams, rate, bench.options.seconds)
        if not carried(more):
            break
        most = more
    if most is not None:
        yield replace(most, case=f"most, {name}")
    return row.values["events_per_s"]


def _catchup(bench: Bench, a: BenchDomain, b: BenchDomain) -> BenchMeasurement:
    """Stop B while A accepts events; measure from the first that arrives after B's restart to the last."""
    before = b.held([0])
    b.processes.stop()
    _fill(bench, a, CATCHUP_EVENTS)
    memory = _Resident(a.pid_of("forwarder"))
    with memory:
        b.start()
        await_held(b, [0], before + 1)
        began = time.monotonic()
        missed = b.held([0]) - before
        await_held(b, [0], before + CATCHUP_EVENTS)
        elapsed_s = time.monotonic() - began
    held = b.held([0]) - before
    return BenchMeasurement(
        "federation",
        f"catch-up, {CATCHUP_EVENTS:,} events",
        "herald",
        {
            "events_per_s": (CATCHUP_EVENTS - missed) / elapsed_s,
            "resident_mib": memory.first / 2**20,
            "resident_most_mib": memory.most / 2**20,
        },
        () if held == CATCHUP_EVENTS else (f"{held - CATCHUP_EVENTS:,} too many held",),
    )


def _fill(bench: Bench, a: BenchDomain, events: int) -> None:
    answers = a.routes[Route.WEBSOCKET]
    plan = LoadPlan(
        port=a.port,
        publishers=[a.publisher(Route.WEBSOCKET)],
        templates=[a.request(Route.WEBSOCKET, 0, 100)],
        events_per_request=100,
        publisher_ready=answers.publisher_ready,
        good=answers.good,
        bad=answers.bad,
        rate=20_000,
        seconds=120,
        count=events,
        window=16,
    )
    outcome, _ = bench.run(a, plan)
    if outcome.published != events or outcome.flaws:
        raise LoadError(f"{outcome.published} of {events} events could be published. {outcome.flaws}")


class _Resident:
    """Resident memory of a process while the block runs: `first` and `most`, in bytes."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.first = self.most = resident_of(pid)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.05):
            self.most = max(self.most, resident_of(self._pid))


# -- five domains in a ring with a chord ----------------------------------------------------------------------------


def _started(folder: Path, stack: ExitStack) -> list[BenchDomain]:
    domains = [BenchDomain(folder, name) for name in RING]
    for domain in domains:
        stack.callback(domain.processes.stop)
        domain.spawn()
    for domain in domains:
        domain.wait_up()
    return domains


def _ring(bench: Bench, domains: list[BenchDomain]) -> BenchMeasurement:
    pairs = [*zip(domains, [*domains[1:], domains[0]], strict=True), (domains[0], domains[2])]
    for one, other in pairs:
        peered(one, other)
    home = domains[0]
    home.prepare(1, HISTORY_ONE_EVENTS)
    joined = [home]
    for domain in domains[1:]:
        via = next(one for one in joined if {one, domain} in [set(pair) for pair in pairs])
        domain.join(via)
        joined.append(domain)
    rounds = []
    for seconds in (REST_S, 2 * bench.options.seconds):
        before = _copies(pairs)
        held = home.held([0])
        published = _publish_everywhere(bench, domains, seconds)
        for domain in domains:
            await_held(domain, [0], held + published)
        time.sleep(WARM_S)  # for the last copies
        after = _copies(pairs)
        rounds.append((published, after[0] - before[0], after[1] - before[1]))
    (first, _, restless), (published, events, copies) = rounds
    flaws = [f"{d.domain} holds {d.held([0]):,}" for d in domains if d.held([0]) != held + published]
    return BenchMeasurement(
        "federation",
        "ring of five with a chord",
        "herald",
        {
            "events_per_s": published / (2 * bench.options.seconds),
            "payloads_per_receiver": (events + copies) / (published * (len(domains) - 1)),
            "redundant_per_event": copies / published,
            "redundant_before_rest": restless / first,
        },
        tuple(flaws),
    )


def _copies(pairs: Sequence[tuple[BenchDomain, BenchDomain]]) -> tuple[int, int]:
    """Return the numbers of new events and of duplicates, over all links."""
    counts = [at.traffic(of) for one, other in pairs for at, of in ((one, other), (other, one))]
    return sum(count["events"] for count in counts), sum(count["copies"] for count in counts)


def _publish_everywhere(bench: Bench, domains: list[BenchDomain], seconds: float) -> int:
    """Run a paced publisher at each domain concurrently; return how many events were accepted."""
    published: list[int] = []

    def publish(domain: BenchDomain) -> None:
        answers = domain.routes[Route.WEBSOCKET]
        plan = LoadPlan(
            port=domain.port,
            publishers=[domain.publisher(Route.WEBSOCKET)],
            templates=[domain.request(Route.WEBSOCKET, 0)],
            publisher_ready=answers.publisher_ready,
            good=answers.good,
            bad=answers.bad,
            rate=RING_RATE,
            seconds=seconds,
            window=64,
        )
        own = replace(bench, folder=domain.folder)
        outcome, _ = own.run(domain, plan)
        published.append(outcome.good)

    threads = [threading.Thread(target=publish, args=(domain,)) for domain in domains]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(published)
