"""What Herald's numbers should be, and whether they are: the table of the issue that founded this benchmark, as data.

Absolute numbers hold for a 2-core machine with servers and load generator on a core each, and 128-byte data. The
comparisons hold on any machine, because both sides ran on it within minutes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.measure import Measurement

FANOUT_AT_LEAST = {20.0: 80_000, 60.0: 110_000, 150.0: 250_000, 300.0: 500_000, 1000.0: 1_200_000}
FANOUT_PEERS = ("nchan", "nats")
P99_RATE = 60.0
P99_MS_MAX = 50.0
TICK_MS = 25.0  # HERALD_TICK_MAX_MS: what frames are gathered for where sending is dear, as it is with 1,000 sessions
PUBLISH_AT_LEAST = 4_000
BULK_AT_LEAST = 30_000
RESIDENT_KIB_MAX = 20.0
ACCEPTS_AT_LEAST = 1_500
MANY_RATIO_AT_LEAST = 0.9
CATCHUP_AT_LEAST = 50_000


@dataclass(frozen=True, slots=True)
class Check:
    """One target and how it came out."""

    what: str
    wanted: str
    measured: str
    passed: bool


def checks(measurements: Sequence[Measurement]) -> list[Check]:
    """All targets that `measurements` allow to be judged."""
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


def _fanout(measurements: Sequence[Measurement]) -> Iterator[Check]:
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


def _delay(measurements: Sequence[Measurement]) -> Iterator[Check]:
    rows = {m.server: m for m in measurements if m.scenario == "fanout" and m.values["rate_per_s"] == P99_RATE}
    if "herald" not in rows:
        return
    ours = rows["herald"].values["p99_ms"]
    yield _at_most(f"p99 delay at {P99_RATE:g}/s", ours, P99_MS_MAX, "ms")
    if "nchan" in rows:
        most = rows["nchan"].values["p99_ms"] + TICK_MS
        yield _at_most(f"p99 delay at {P99_RATE:g}/s: nchan's and the tick", ours, most, "ms")


def _own(row: Measurement) -> Iterator[Check]:
    values = row.values
    if row.scenario == "publish":
        yield _at_least(f"publish {row.case}: events per CPU-s", values["events_per_cpu_s"], PUBLISH_AT_LEAST)
    elif row.scenario == "batches":
        yield _at_least(f"publish {row.case}: events per CPU-s", values["events_per_cpu_s"], BULK_AT_LEAST)
    elif row.scenario == "idle":
        yield _at_most(f"idle, {row.case}: resident each", values["resident_kib_each"], RESIDENT_KIB_MAX, "KiB")
        yield _at_least(f"idle, {row.case}: accepts per CPU-s", values["accepts_per_cpu_s"], ACCEPTS_AT_LEAST)
    elif row.scenario == "many-rps":
        yield _at_least(f"{row.case}: against one RP", values["ratio"], MANY_RATIO_AT_LEAST)
    elif row.scenario == "catchup":
        yield _at_least(f"catching up, {row.case}: events/s", values["events_per_s"], CATCHUP_AT_LEAST)
