"""Targets of Herald's numbers, and their evaluation, as data.

Absolute numbers hold for a 2-core machine with servers and load generator on a core each, and 128-byte data. The
comparisons hold on any machine, because both sides ran on it within minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.measure import BenchMeasurement

FANOUT_AT_LEAST = {20.0: 80_000, 60.0: 110_000, 150.0: 250_000, 300.0: 500_000, 1000.0: 1_200_000}
FANOUT_PEERS = ("nchan", "nats")
P99_RATE = 60.0
P99_MS_MAX = 50.0
TICK_MS = 25.0  # HERALD_TICK_MAX_MS: gathering time of frames where sending is expensive, as it is with 1,000 sessions
PUBLISH_AT_LEAST = 4_000
PUBLISH_WRK_AT_LEAST = 10_000  # by wrk, each way in which users publish
BULK_AT_LEAST = 30_000
RESIDENT_KIB_MAX = 20.0
ACCEPTS_AT_LEAST = 1_500
MANY_RATIO_AT_LEAST = 0.9
CATCHUP_AT_LEAST = 50_000
FEDERATED_AT_LEAST = 2_000  # events/s between two domains, and these share the machine with the load generator
FEDERATED_REACHED = 0.99  # share of that pace, the most that a paced run can show
FEDERATED_MANY_RATIO = 0.9
FORWARDED_MANY_RATIO = 0.95  # of the throughput, 8,000 RPs against one
FEDERATED_P99_MS_MAX = 300.0
FEDERATED_CATCHUP_AT_LEAST = 5_000
FEDERATED_MEMORY_MIB_MAX = 16.0  # growth of the sender with 100,000 events to send: the size of some requests
REDUNDANT_MAX = 0.05
CHANGE_P99_MS_MAX = 1000.0  # from a change's answer to the screen
FIRST_LOAD_KIB_MAX = 300.0
USABLE_MS_MAX = 2000.0
CONSOLES_CPU_PERCENT_MAX = 5.0  # of the gateway's core, by ten consoles
HEAP_GROWTH_MIB_MAX = 1.0  # in an hour of live updates
LIST_MS_MAX = 500.0  # of the server, for a page of 100,000 rows
NAMES_MEMORY_MIB_MAX = 16.0  # growth of the gateway while it exports 100,000 names

PUSHED_AT_LEAST = 1_500  # signed webhooks of 128 bytes per CPU-second of all processes
PUSHED_BATCHED_AT_LEAST = 30_000  # events, in batches of 100
NOTIFIED_AT_LEAST = 700  # notifications of WS-Eventing
PUSH_GROWTH_MIB_MAX = 64.0  # of the deliverer, by one event to 10,000 endpoints
PUSH_DEAD_RATIO_MAX = 1.5  # p99 of 100 good endpoints beside 1,000 dead ones, against none dead
PUSH_IDLE_P99_MS_MAX = 150.0

SMALL_PSS_MIB_MAX = 150.0  # a whole domain with Redis in the profile small, in which nothing happens
SMALL_IDLE_MS_MAX = 10.0  # of processor time a second
SMALL_PUBLISH_MS_MAX = 20.0  # the first one after a minute
START_S_MAX = 3.0


@dataclass(frozen=True, slots=True)
class Check:
    """A target and its result."""

    what: str
    wanted: str
    measured: str
    passed: bool


def checks(measurements: Sequence[BenchMeasurement]) -> list[Check]:
    """Return all targets that `measurements` allow to be judged."""
    found = [*_fanout(measurements), *_delay(measurements)]
    for measurement in measurements:
        if measurement.server == "herald":
            found += _own(measurement)
    flawed = [m for m in measurements if m.server == "herald" and m.flaws]
    if any(m.server == "herald" for m in measurements):
        measured = "; ".join(f"{m.scenario} {m.case}: {', '.join(m.flaws)}" for m in flawed) or "none"
        found.append(Check("lost, repeated, out of order, refused", "none", measured, not flawed))
    return found


def _at_least(what: str, value: float, least: float) -> Check:
    return Check(what, f">= {least:,g}", f"{value:,.3g}" if least < 10 else f"{value:,.0f}", value >= least)


def _at_most(what: str, value: float, most: float, unit: str) -> Check:
    return Check(what, f"<= {most:,.4g} {unit}", f"{value:,.4g} {unit}", value <= most)


def _fanout(measurements: Sequence[BenchMeasurement]) -> Iterator[Check]:
    rows = {(m.server, m.values["rate_per_s"]): m for m in measurements if m.scenario == "fanout"}
    for (server, rate), row in rows.items():
        if server != "herald":
            continue
        ours = row.values["deliveries_per_cpu_s"]
        if rate in FANOUT_AT_LEAST:
            yield _at_least(f"fan-out at {rate:g}/s: deliveries per CPU-s", ours, FANOUT_AT_LEAST[rate])
        for peer in FANOUT_PEERS:
            if (peer, rate) in rows:
                ratio = ours / rows[peer, rate].values["deliveries_per_cpu_s"]
                yield Check(f"fan-out at {rate:g}/s: against {peer}", "> 1", f"{ratio:.2f}", ratio > 1)


def _delay(measurements: Sequence[BenchMeasurement]) -> Iterator[Check]:
    rows = {m.server: m for m in measurements if m.scenario == "fanout" and m.values["rate_per_s"] == P99_RATE}
    if "herald" not in rows:
        return
    ours = rows["herald"].values["p99_ms"]
    yield _at_most(f"p99 delay at {P99_RATE:g}/s", ours, P99_MS_MAX, "ms")
    if "nchan" in rows:
        most = rows["nchan"].values["p99_ms"] + TICK_MS
        yield _at_most(f"p99 delay at {P99_RATE:g}/s: nchan's and the tick", ours, most, "ms")


def _own(row: BenchMeasurement) -> Iterator[Check]:
    values = row.values
    if row.scenario == "publish":
        least = PUBLISH_WRK_AT_LEAST if row.case.startswith("wrk") else PUBLISH_AT_LEAST
        yield _at_least(f"publish {row.case}: events per CPU-s", values["events_per_cpu_s"], least)
    elif row.scenario == "batches":
        yield _at_least(f"publish {row.case}: events per CPU-s", values["events_per_cpu_s"], BULK_AT_LEAST)
    elif row.scenario == "idle":
        yield _at_most(f"idle, {row.case}: resident each", values["resident_kib_each"], RESIDENT_KIB_MAX, "KiB")
        yield _at_least(f"idle, {row.case}: accepts per CPU-s", values["accepts_per_cpu_s"], ACCEPTS_AT_LEAST)
    elif row.scenario == "many-rps":
        yield _at_least(f"{row.case}: against one RP", values["ratio"], MANY_RATIO_AT_LEAST)
    elif row.scenario == "catchup":
        yield _at_least(f"catching up, {row.case}: events/s", values["events_per_s"], CATCHUP_AT_LEAST)
    elif row.scenario == "federation":
        yield from _federation(row)
    elif row.scenario == "forwarded-many":
        yield _at_least(f"forwarded, {row.case}: against one RP", values["ratio"], FORWARDED_MANY_RATIO)
    elif row.scenario == "console":
        yield from _console(row)
    elif row.scenario == "push":
        yield from _push(row)
    elif row.scenario == "idle-domain":
        yield from _idle_domain(row)


def _federation(row: BenchMeasurement) -> Iterator[Check]:
    values, what = row.values, f"domains, {row.case}"
    if row.case.startswith("delay"):
        yield _at_most(f"{what}: p99 delay", values["p99_ms"], FEDERATED_P99_MS_MAX, "ms")
    elif "ratio" in values:
        yield _at_least(f"{what}: against one RP", values["ratio"], FEDERATED_MANY_RATIO)
    elif row.case.startswith("sustained"):
        yield _at_least(f"{what}: events/s", values["events_per_s"], FEDERATED_AT_LEAST * FEDERATED_REACHED)
    elif row.case.startswith("catch-up"):
        yield _at_least(f"{what}: events/s", values["events_per_s"], FEDERATED_CATCHUP_AT_LEAST)
        growth = values["resident_most_mib"] - values["resident_mib"]
        yield _at_most(f"{what}: growth of the sender", growth, FEDERATED_MEMORY_MIB_MAX, "MiB")
    elif "redundant_per_event" in values:
        yield _at_most(f"{what}: redundant copies per event", values["redundant_per_event"], REDUNDANT_MAX, "")


def _push(row: BenchMeasurement) -> Iterator[Check]:
    values, what = row.values, f"push, {row.case}"
    if "batches" in row.case:
        yield _at_least(f"{what}: events per CPU-s", values["events_per_cpu_s"], PUSHED_BATCHED_AT_LEAST)
    elif row.case.endswith("WS-Eventing"):
        yield _at_least(f"{what}: notifications per CPU-s", values["requests_per_cpu_s"], NOTIFIED_AT_LEAST)
    elif "requests_per_cpu_s" in values:
        yield _at_least(f"{what}: deliveries per CPU-s", values["requests_per_cpu_s"], PUSHED_AT_LEAST)
    elif "growth_mib" in values:
        yield _at_most(f"{what}: growth of the deliverer", values["growth_mib"], PUSH_GROWTH_MIB_MAX, "MiB")
    elif "ratio" in values and row.case.endswith(
        "dead"
    ):  # not while they begin to hang: that is a turn of 1,000 connections
        yield _at_most(f"{what}: p99 against none dead", values["ratio"], PUSH_DEAD_RATIO_MAX, "times")
    elif "idle" in row.case:
        yield _at_most(f"{what}: p99 to the first byte", values["p99_ms"], PUSH_IDLE_P99_MS_MAX, "ms")


def _idle_domain(row: BenchMeasurement) -> Iterator[Check]:
    values, what = row.values, f"idle domain, {row.case}"
    if row.case.endswith("small"):
        yield _at_most(f"{what}: memory", values["pss_mib"], SMALL_PSS_MIB_MAX, "MiB")
        yield _at_most(f"{what}: processor time", values["cpu_ms_per_s"], SMALL_IDLE_MS_MAX, "ms/s")
        yield _at_most(f"{what}: first publish", values["first_publish_ms"], SMALL_PUBLISH_MS_MAX, "ms")
        yield _at_most(f"{what}: start to ready", values["start_s"], START_S_MAX, "s")


def _console(row: BenchMeasurement) -> Iterator[Check]:
    values, what = row.values, row.case
    if "p99_ms" in values:
        yield _at_most(f"{what}: p99", values["p99_ms"], CHANGE_P99_MS_MAX, "ms")
    if "kib" in values:
        yield _at_most(f"{what}: first load", values["kib"], FIRST_LOAD_KIB_MAX, "KiB")
    for name in ("cold_ms", "warm_ms"):
        if name in values:
            which = {"cold_ms": "usable", "warm_ms": "usable again" if "kib" in values else "usable"}[name]
            yield _at_most(f"{what}: {which}", values[name], USABLE_MS_MAX, "ms")
    if "cost_percent" in values:
        yield _at_most(f"{what}: of the gateway's core", values["cost_percent"], CONSOLES_CPU_PERCENT_MAX, "%")
    if "heap_growth_mib" in values:
        yield _at_most(f"{what}: growth of the heap", values["heap_growth_mib"], HEAP_GROWTH_MIB_MAX, "MiB")
    if "growth_mib" in values:
        yield _at_most(f"{what}: growth of the gateway", values["growth_mib"], NAMES_MEMORY_MIB_MAX, "MiB")
    elif "server_ms" in values:
        yield _at_most(f"{what}: server", values["server_ms"], LIST_MS_MAX, "ms")
