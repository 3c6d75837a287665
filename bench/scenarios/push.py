"""Push: signed webhooks to endpoints that keep their connections, events of 128 bytes, all processes of the domain on one core.

| rows | what is measured |
|---|---|
| `100 endpoints` | deliveries per CPU-second of all processes, each ordered; the same in batches of 100; by WS-Eventing |
| `one event to 10,000` | all delivered, and the growth of the deliverer meanwhile |
| `10 idle endpoints` | from the publish to the first byte at the endpoint |
| `1,000 dead` | the delay of 100 good endpoints beside none, beside 1,000 that hang, and while those begin to hang all at once |
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from bench.measure import Bench, BenchMeasurement, per
from bench.peers.base import BenchServer
from bench.peers.herald import Herald
from bench.scenarios.push_domain import WS_EVENTING, PushDomain, PushEndpoints, TakenEvents

GOOD, DEAD, MANY, IDLE = 100, 1000, 10_000, 10
EVENTS, BATCHED_EVENTS, IDLE_EVENTS = 300, 10_000, 200
BATCH = 100
PACE_S = 0.3  # between two events for the good endpoints beside dead ones
BESIDE_EVENTS = 40
SETTLED_S = 60.0  # after the dead ones began to hang: each has failed, and its owner has been told


def run(bench: Bench, server: BenchServer) -> Iterator[BenchMeasurement]:
    """Yield a row per case; none for other servers."""
    if not isinstance(server, Herald):
        return
    with ExitStack() as stack:
        endpoints = stack.enter_context(PushEndpoints(GOOD, DEAD))
        domain = stack.enter_context(PushDomain(server.folder))
        yield _throughput(domain, endpoints, "one by one", EVENTS)
        yield _throughput(domain, endpoints, f"batches of {BATCH}", BATCHED_EVENTS, format="batch", batch=BATCH)
        yield _throughput(domain, endpoints, "WS-Eventing", EVENTS, mode=WS_EVENTING)
        yield _one_to_many(domain, endpoints)
        yield _idle(domain, endpoints)
        yield from _dead(domain, endpoints)


def _throughput(
    domain: PushDomain, endpoints: PushEndpoints, what: str, events: int, **deliver: object
) -> BenchMeasurement:
    rp = domain.rp_with(GOOD, endpoints, **deliver)
    cpu_s, began_ns = domain.cpu_s(), time.monotonic_ns()
    for begin in range(0, events, 1000):
        domain.publish(rp, min(1000, events - begin))
    taken = domain.await_taken(endpoints, events * GOOD, 120)
    used_s, elapsed_s = domain.cpu_s() - cpu_s, (taken.ended_ns - began_ns) / 1e9
    values = {
        "requests_per_cpu_s": per(taken.requests, used_s),
        "events_per_cpu_s": per(taken.events, used_s),
        "events_per_s": taken.events / elapsed_s,
    }
    return _row(f"{GOOD} endpoints, {what}", values, taken)


def _one_to_many(domain: PushDomain, endpoints: PushEndpoints) -> BenchMeasurement:
    before = domain.deliverer_bytes()
    rp = domain.rp_with(MANY, endpoints)
    idle = most = domain.deliverer_bytes()
    ended = threading.Event()

    def watch() -> None:
        nonlocal most
        while not ended.wait(0.02):
            most = max(most, domain.deliverer_bytes())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        began_ns = time.monotonic_ns()
        domain.publish(rp)
        taken = domain.await_taken(endpoints, MANY, 120)
    finally:
        ended.set()
        watching.join()
    values = {
        "all_ms": (taken.ended_ns - began_ns) / 1e6,
        "growth_mib": (most - idle) / 2**20,
        "subscriptions_mib": (idle - before) / 2**20,
    }
    return _row(f"one event to {MANY:,}", values, taken)


def _idle(domain: PushDomain, endpoints: PushEndpoints) -> BenchMeasurement:
    rp = domain.rp_with(IDLE, endpoints)
    for _ in range(IDLE_EVENTS):
        time.sleep(0.05)
        domain.publish(rp)
    taken = domain.await_taken(endpoints, IDLE_EVENTS * IDLE)
    return _row(f"{IDLE} idle endpoints", _delays(taken), taken)


def _dead(domain: PushDomain, endpoints: PushEndpoints) -> Iterator[BenchMeasurement]:
    rp = domain.rp_with(GOOD, endpoints)
    alone = _paced(domain, endpoints, rp)
    yield _row(f"{GOOD} endpoints, none dead", _delays(alone), alone)
    domain.subscribe(rp, DEAD, endpoints.dead)
    began = time.monotonic()
    while time.monotonic() - began < 1:  # the deliverer has read them; the next event has them all begin to hang
        time.sleep(0.1)
    onset = _paced(domain, endpoints, rp)
    yield _row(f"{DEAD:,} begin to hang at once", _delays(onset, alone), onset)
    while time.monotonic() - began < SETTLED_S:
        time.sleep(0.1)
    beside = _paced(domain, endpoints, rp)
    yield _row(f"{GOOD} endpoints, {DEAD:,} dead", _delays(beside, alone), beside)


def _paced(domain: PushDomain, endpoints: PushEndpoints, rp: str) -> TakenEvents:
    began = time.monotonic()
    for number in range(BESIDE_EVENTS):
        time.sleep(max(0.0, began + number * PACE_S - time.monotonic()))
        domain.publish(rp)
    return domain.await_taken(endpoints, BESIDE_EVENTS * GOOD)


def _delays(taken: TakenEvents, alone: TakenEvents | None = None) -> dict[str, float]:
    values = {"p50_ms": _share(taken.delays_ms, 0.5), "p99_ms": _share(taken.delays_ms, 0.99)}
    if alone is not None:
        values["ratio"] = values["p99_ms"] / _share(alone.delays_ms, 0.99)
    return values


def _share(delays_ms: Sequence[float], share: float) -> float:
    ordered = sorted(delays_ms)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _row(case: str, values: dict[str, float], taken: TakenEvents) -> BenchMeasurement:
    flaws = [f"{count:,} {what}" for count, what in ((taken.repeated, "repeated"), (taken.skipped, "skipped")) if count]
    return BenchMeasurement("push", case, "herald", values, tuple(flaws))
