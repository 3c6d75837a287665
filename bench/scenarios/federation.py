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

from bench.load import LoadError, LoadOutcome, LoadPlan
from bench.measure import Bench, BenchMeasurement, generator_notes
from bench.peers.base import BenchServer, Route
from bench.peers.domain import BenchDomain
from bench.peers.herald import Herald
from bench.processes import CannotStart, resident_of

RPS = 1000
RPS_PER_SESSION = 8
HISTORY_EVENTS = 1000
HISTORY_ONE_EVENTS = 200_000
RATE = 2000.0
STEPS = (3000.0, 4000.0, 5000.0, 6000.0, 8000.0)  # tried in turn until one is not carried
LAG_MS_MAX = 2000.0  # p99; a queue that grows for the whole of a run would be beyond it
DELAY_RATE = 100.0
CATCHUP_EVENTS = 100_000
WINDOW = 1024
DRAIN_S = 10.0
WARM_S = 2.0
RING = "abcde"
RING_RATE = 10.0  # at each of the five: their thirty processes share two cores
REST_S = 20.0  # for the links to prune duplicates
HELD_WITHIN_S = 120.0


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
    _peered(a, b)
    a.prepare(1, HISTORY_ONE_EVENTS)
    b.join(a)
    one, many = range(1), range(1, 1 + RPS)
    bench.run(a, _plan(bench, a, b, one, DELAY_RATE, WARM_S))
    yield _delay(bench, a, b)
    single = yield from _sustained(bench, a, b, one, "1 RP", 0.0)
    yield _catchup(bench, a, b)
    a.prepare(RPS, HISTORY_EVENTS)
    b.rps.clear()
    b.join(a)
    _await_held(b, many, 0)
    bench.run(a, _plan(bench, a, b, many, DELAY_RATE * 5, WARM_S))
    yield from _sustained(bench, a, b, many, f"{RPS:,} RPs", single)


def _peered(one: BenchDomain, other: BenchDomain) -> None:
    one.add_peer(other)
    other.add_peer(one)
    one.await_peer(other)
    other.await_peer(one)


# -- two domains ----------------------------------------------------------------------------------------------------


def _plan(bench: Bench, a: BenchDomain, b: BenchDomain, streams: range, rate: float, seconds: float) -> LoadPlan:
    """Return a plan with a publisher at `a` and sessions at `b`, each event read once."""
    answers = a.routes[Route.WEBSOCKET]
    each = min(RPS_PER_SESSION, len(streams))
    return LoadPlan(
        port=a.port,
        sessions_port=b.port,
        sessions=[b.reader(streams[at : at + each]) for at in range(0, len(streams), each)],
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
        streams=streams.stop,
        by_stream=True,
        deliveries_per_event=1,
        drain_s=DRAIN_S,
    )


def _measured(
    bench: Bench, a: BenchDomain, b: BenchDomain, streams: range, rate: float, seconds: float
) -> BenchMeasurement:
    """Measure one paced run, as a row without a name."""
    held, taken = b.held(streams), b.traffic(a)
    began = time.monotonic()
    outcome, _ = bench.run(a, _plan(bench, a, b, streams, rate, seconds))
    elapsed_s = time.monotonic() - began
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
            "requests_per_s": (now["requests"] - taken["requests"]) / elapsed_s,
        },
        tuple(flaws),
        (*generator_notes(outcome), *_pace_note(outcome, rate * seconds)),
    )


def _pace_note(outcome: LoadOutcome, wanted: float) -> tuple[str, ...]:
    reached = outcome.published / wanted
    return (f"took {reached:.0%} of the pace",) if reached < 0.99 else ()


def _delay(bench: Bench, a: BenchDomain, b: BenchDomain) -> BenchMeasurement:
    row = _measured(bench, a, b, range(1), DELAY_RATE, 2 * bench.options.seconds)
    return replace(row, case="delay, 1 RP, 100 events/s")


def _sustained(
    bench: Bench, a: BenchDomain, b: BenchDomain, streams: range, name: str, against: float
) -> Generator[BenchMeasurement, None, float]:
    """Measure the target's rate, then higher ones until one is not sustained. Returns the events per second of the
    first.
    """
    row = _measured(bench, a, b, streams, RATE, 4 * bench.options.seconds)  # long, for the last events' delay counts
    ratio = {"ratio": row.values["events_per_s"] / against} if against else {}
    yield replace(row, case=f"sustained, {name}", values={**row.values, **ratio})
    most = row if _carried(row) else None
    for rate in STEPS if most is not None else ():
        more = _measured(bench, a, b, streams, rate, bench.options.seconds)
        if not _carried(more):
            break
        most = more
    if most is not None:
        yield replace(most, case=f"most, {name}")
    return row.values["events_per_s"]


def _carried(row: BenchMeasurement) -> bool:
    values = row.values
    return not row.flaws and values["p99_ms"] <= LAG_MS_MAX and values["events_per_s"] >= 0.95 * values["rate_per_s"]


def _await_held(domain: BenchDomain, streams: Sequence[int], events: int, within_s: float = HELD_WITHIN_S) -> None:
    deadline = time.monotonic() + within_s
    while domain.held(streams) < events:
        if time.monotonic() > deadline:
            raise CannotStart(f"{domain.domain} held {domain.held(streams):,} of {events:,} events in the end")
        time.sleep(0.05)


def _catchup(bench: Bench, a: BenchDomain, b: BenchDomain) -> BenchMeasurement:
    """Stop B while A accepts events; measure from the first that arrives after B's restart to the last."""
    before = b.held([0])
    b.processes.stop()
    _fill(bench, a, CATCHUP_EVENTS)
    memory = _Resident(a.pid_of("forwarder"))
    with memory:
        b.start()
        _await_held(b, [0], before + 1)
        began = time.monotonic()
        missed = b.held([0]) - before
        _await_held(b, [0], before + CATCHUP_EVENTS)
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
        _peered(one, other)
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
            _await_held(domain, [0], held + published)
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
