"""Generated access records of a large domain with known totals: for trials of reports, and for measurements.

Everything follows from the seed. Records are spread evenly over time but for a daily wave; principals and operations
are skewed; each principal reads and publishes within one region of REGION_RPS rendezvous points; every tenth is from
one of three partner domains, which also exchange as peers. Segments are written as gateways write them, by as many
threads as there are cores; the expected totals of each are counted while it is made, by other means than the reports
count them.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from spark import schemas
from spark.jobs.compaction import writer_options
from spark.locations import Location
from spark.problems import JobProblem
from spark.progress import ProgressReporter

ANSWER = "answer.json"
SEGMENT_RECORDS = 50_000  # as gateways cut them
REGION_RPS = 5
FOREIGN_OF = 10  # every tenth principal is foreign
PARTNERS = ("partner-a.example", "partner-b.example", "partner-c.example")
GATEWAYS = ("generated-20260101t000000z-aaaaaaaa", "generated-20260101t000000z-bbbbbbbb")
WAVE = 0.6  # the busiest hour has 1.6 times the mean, the quietest 0.4
OPERATIONS = (  # of 1,000 records: operation, client, share, smallest latency in microseconds
    ("publish", "herald.v1", 420, 150),
    ("publish", "http", 130, 400),
    ("deliver", "herald.v1", 300, 0),
    ("history", "pull", 50, 700),
    ("subscribe", "herald.v1", 30, 90),
    ("unsubscribe", "herald.v1", 25, 0),
    ("subscription.ack", "herald.v1", 20, 120),
    ("federation.exchange", "domain", 25, 900),
)
_SHARES = [share for _, _, share, _ in OPERATIONS]
_US = 1_000_000


@dataclass(frozen=True, slots=True)
class GenerationPlan:
    """Parameters of the generated records.

    Attributes:
        begin: the first hour.
        domain: whose principals are not foreign.
    """

    records: int
    days: int = 1
    rps: int = 1_000
    principals: int = 10_000
    seed: int = 1
    begin: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    domain: str = "localhost"

    def check(self) -> None:
        """Raise Problem if a number is out of range."""
        bounds = (("records", 10**10), ("days", 3660), ("rps", 10**6), ("principals", 10**6))
        for name, most in bounds:
            if not 1 <= getattr(self, name) <= most:
                raise JobProblem(f"--{name} must be from 1 to {most:,}.")


@dataclass(slots=True)
class ExpectedReports:
    """The expected totals of reports; `add` sums those of segments."""

    counts: Counter[str] = field(default_factory=Counter)
    operations: Counter[tuple[str, str]] = field(default_factory=Counter)
    hours: Counter[str] = field(default_factory=Counter)
    rps: Counter[int] = field(default_factory=Counter)
    latencies: Counter[int] = field(default_factory=Counter)
    principals: set[int] = field(default_factory=set)
    readings: set[int] = field(default_factory=set)
    partners: Counter[str] = field(default_factory=Counter)

    def add(self, other: ExpectedReports) -> None:
        """Add another segment's numbers."""
        for name in ("counts", "operations", "hours", "rps", "latencies", "partners"):
            getattr(self, name).update(getattr(other, name))
        self.principals |= other.principals
        self.readings |= other.readings


def run(plan: GenerationPlan, output: Location, progress: ProgressReporter) -> dict[str, Any]:
    """Write segments and `answer.json` into `output`; return the expected totals.

    Raises:
        Problem: the plan makes no sense, or there are segments in the folder already.
        OSError: the disk is full.
    """
    import pyarrow as pa

    plan.check()
    if any(entry.name.startswith("date=") for entry in output.entries(output.root)):
        raise JobProblem(f"{output.address} has records already. Give an empty folder.")
    cores = os.cpu_count() or 1
    pa.set_cpu_count(1)  # the threads below are enough
    world = _World(plan)
    parts = list(_parts(plan))
    whole, done = ExpectedReports(), 0
    rest = iter(parts)
    with ThreadPoolExecutor(cores) as threads:
        running: list[Future[ExpectedReports]] = [
            threads.submit(_segment, world, output, part) for part in islice(rest, 2 * cores)
        ]
        while running:
            whole.add(running.pop(0).result())
            running += [threads.submit(_segment, world, output, part) for part in islice(rest, 1)]
            done += 1
            progress.say("generate", "write segments", done, len(parts))
    answer = _answer(plan, whole)
    output.write(output.path(ANSWER), (json.dumps(answer, indent=1) + "\n").encode())
    return answer


@dataclass(frozen=True, slots=True)
class _Part:
    """One segment: number `index`, with `records` records from `begin` on, in `span_us` microseconds; `first` of its
    gateway.
    """

    index: int
    begin: datetime
    span_us: int
    records: int
    first: int


class _World:
    """The names in the records, made once."""

    def __init__(self, plan: GenerationPlan) -> None:
        import pyarrow as pa

        self.plan = plan
        self.regions = max(1, plan.rps // REGION_RPS)
        # The first entry of each dictionary is the empty name.
        foreign = [self.partner(number) for number in range(plan.principals)]
        names = [f"{at}#reader-{n:06d}" if at else f"principal-{n:06d}" for n, at in enumerate(foreign)]
        self.principals = pa.array(["", *names])
        self.issuers = pa.array(["", plan.domain, *PARTNERS])
        self.issuer_of = pa.array([PARTNERS.index(at) + 2 if at else 1 for at in foreign], pa.int32())
        self.peers = pa.array(["", *PARTNERS])
        self.rps = pa.array(["", *(rp_id(number) for number in range(plan.rps))])
        self.slots = pa.array([n for n, share in enumerate(_SHARES) for _ in range(share)], pa.int32())

    @staticmethod
    def partner(number: int) -> str:
        return PARTNERS[number // FOREIGN_OF % len(PARTNERS)] if number % FOREIGN_OF == 0 else ""


def rp_id(number: int) -> str:
    """Return the id of a generated RP, in the form of real ids."""
    digits = "abcdefghijklmnopqrstuvwxyz234567"
    text = ""
    for _ in range(6):
        number, digit = divmod(number, 32)
        text = digits[digit] + text
    return "generated" + "a" * 11 + text


def _parts(plan: GenerationPlan) -> Iterator[_Part]:
    """Yield the segments: each hour's share of the records by the daily wave, cut where gateways cut."""
    weights = [1 + WAVE * math.sin(2 * math.pi * (hour % 24 - 9) / 24) for hour in range(plan.days * 24)]
    total, reached, made, index = sum(weights), 0.0, 0, 0
    firsts = [1] * len(GATEWAYS)
    for hour, weight in enumerate(weights):
        reached += weight
        until = round(plan.records * reached / total)
        here, at = until - made, 0
        segments = max(1, math.ceil(here / SEGMENT_RECORDS)) if here else 0
        for number in range(segments):
            records = here * (number + 1) // segments - here * number // segments
            begin_us, end_us = (3600 * _US * place // segments for place in (number, number + 1))
            begin = plan.begin + timedelta(hours=hour, microseconds=begin_us)
            gateway = index % len(GATEWAYS)
            yield _Part(index, begin, end_us - begin_us, records, firsts[gateway])
            firsts[gateway] += records
            at += records
            index += 1
        made = until


def _segment(world: _World, output: Location, part: _Part) -> ExpectedReports:
    """Make and write one segment."""
    import pyarrow.parquet as pq

    table, answer = _table(world, part)
    folder = output.path(f"date={part.begin:%Y-%m-%d}", f"hour={part.begin:%H}")
    output.filesystem.create_dir(folder, recursive=True)
    path = f"{folder}/{GATEWAYS[part.index % len(GATEWAYS)]}-{part.index:06d}.parquet"
    with (
        output.filesystem.open_output_stream(path) as stream,
        pq.ParquetWriter(stream, table.schema, **writer_options()) as writer,
    ):
        writer.write_table(table)
        writer.add_key_value_metadata({schemas.INPUT_VERSION_KEY.decode(): str(schemas.INPUT_VERSION)})
    return answer


def _table(world: _World, part: _Part) -> tuple[Any, ExpectedReports]:
    """Return the records of one segment, and their part of the expected totals."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count, plan = part.records, world.plan
    seeds = iter(range((plan.seed * 1_000_003 + part.index) * 16, 2**62))

    def chance() -> Any:
        return pc.random(count, initializer=next(seeds))

    def whole(values: Any, kind: Any = None) -> Any:
        return pc.cast(pc.floor(values), kind or pa.int64())

    def below(most: int) -> Any:
        return whole(pc.multiply(chance(), float(most)))

    def where(mask: Any, one: Any, other: Any) -> Any:
        return pc.if_else(mask, one, other)

    zero = pa.scalar(0, pa.int64())
    slot = world.slots.take(below(len(world.slots)))
    name = pa.array([operation for operation, *_ in OPERATIONS]).take(slot)
    is_ = {
        operation: pc.equal(name, operation) for operation in ("publish", "deliver", "history", "federation.exchange")
    }
    federated, delivered = is_["federation.exchange"], is_["deliver"]

    # Who: few principals do most. Where: one of the RPs of the principal's region.
    skewed = chance()
    person = whole(pc.multiply(pc.multiply(skewed, skewed), float(plan.principals)))
    region = pc.subtract(person, pc.multiply(pc.divide(person, world.regions), world.regions))
    rp = pc.min_element_wise(pc.add(pc.multiply(region, REGION_RPS), below(REGION_RPS)), plan.rps - 1)
    partner = below(len(PARTNERS))
    issuer = where(federated, pa.scalar(0, pa.int32()), world.issuer_of.take(person))

    # Outcomes: deliveries and leavings always succeed.
    luck = chance()
    may_fail = pc.invert(pc.is_in(name, value_set=pa.array(["deliver", "unsubscribe"])))
    failed = pc.and_(may_fail, pc.less(luck, 0.001))
    refused = pc.and_(pc.and_(may_fail, pc.invert(failed)), pc.less(luck, 0.02))
    good = pc.invert(pc.or_(failed, refused))
    outcome = where(good, pa.scalar(0, pa.int32()), where(refused, pa.scalar(1, pa.int32()), pa.scalar(2, pa.int32())))

    # Amounts.
    moves = pc.or_(pc.or_(is_["publish"], is_["history"]), delivered)
    some = where(is_["publish"], below(3), below(60))
    events = where(pc.and_(moves, good), pc.add(some, 1), zero)
    size = pc.add(below(300), 100)
    content = pc.multiply(events, size)
    bytes_in = where(is_["publish"], content, where(federated, pc.multiply(size, 20), zero))
    bytes_out = where(pc.or_(is_["history"], delivered), content, where(federated, size, zero))
    sessions = where(delivered, pc.add(below(4), 1), zero)
    together = where(
        pc.and_(pc.and_(is_["publish"], good), pc.less(chance(), 0.2)), pc.add(below(4), 1), pa.scalar(1, pa.int64())
    )
    least = pa.array([float(low) for *_, low in OPERATIONS]).take(slot)
    spread = chance()
    latency = whole(pc.multiply(least, pc.power(2.0, pc.multiply(pc.multiply(spread, spread), 7.0))))

    # Times: evenly, in order; deliveries at the begin of their minute.
    begin_us = int(part.begin.timestamp()) * _US + part.begin.microsecond
    place = pc.divide(pc.multiply(_range(count), part.span_us), count)
    at = pc.add(place, begin_us)
    minute = pc.multiply(pc.divide(at, 60 * _US), 60 * _US)
    time = where(delivered, minute, at)

    def names(indices: Any, dictionary: Any) -> Any:
        return pa.DictionaryArray.from_arrays(pc.cast(indices, pa.int32()), dictionary)

    one = pa.array([0], pa.int32())
    columns = {
        "time": pc.cast(time, pa.timestamp("us", tz="UTC")),
        "gateway": names(one.take(pc.multiply(slot, 0)), pa.array([GATEWAYS[part.index % len(GATEWAYS)]])),
        "number": pc.add(_range(count), part.first),
        "operation": names(slot, pa.array([operation for operation, *_ in OPERATIONS])),
        "outcome": names(outcome, pa.array(["ok", "refused", "failed"])),
        "reason": names(outcome, pa.array(["", "forbidden", "internal"])),
        "principal": names(where(federated, zero, pc.add(person, 1)), world.principals),
        "issuer": names(issuer, world.issuers),
        "peer": names(where(federated, pc.add(partner, 1), zero), world.peers),
        "client": names(slot, pa.array([client for _, client, *_ in OPERATIONS])),
        "session": pc.multiply(person, 0),
        "rp": names(where(federated, zero, pc.add(rp, 1)), world.rps),
        "events": events,
        "bytes_in": bytes_in,
        "bytes_out": bytes_out,
        "latency_us": latency,
        "sessions": sessions,
        "count": together,
    }
    table = pa.table(columns)
    fields = [pa.field(field.name, field.type, nullable=False) for field in table.schema]
    answer = _count(part, columns, person, rp, name, good, refused, failed, federated, plan)
    return table.cast(pa.schema(fields)), answer


def _range(count: int) -> Any:
    """Return 0, 1, ... without a Python object for each."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), count)), 1)


def _count(
    part: _Part,
    columns: dict[str, Any],
    person: Any,
    rp: Any,
    name: Any,
    good: Any,
    refused: Any,
    failed: Any,
    federated: Any,
    plan: GenerationPlan,
) -> ExpectedReports:
    """Return a segment's part of the expected totals."""
    import pyarrow as pa
    import pyarrow.compute as pc

    made = ExpectedReports()
    count, events, bytes_in, bytes_out = (columns[n] for n in ("count", "events", "bytes_in", "bytes_out"))

    def sum_of(values: Any, mask: Any = None) -> int:
        found = pc.sum(values if mask is None else values.filter(mask)).as_py()
        return int(found or 0)

    published = pc.and_(pc.equal(name, "publish"), good)
    read = pc.and_(pc.is_in(name, value_set=pa.array(["deliver", "history"])), good)
    made.counts.update(
        {
            "records": part.records,
            "operations": sum_of(count),
            "refused": sum_of(count, refused),
            "failed": sum_of(count, failed),
            "events": sum_of(events),
            "bytes_in": sum_of(bytes_in),
            "bytes_out": sum_of(bytes_out),
            "publishes": sum_of(count, published),
            "events_in": sum_of(events, published),
            "publish_bytes_in": sum_of(bytes_in, published),
            "deliveries": sum_of(events, read),
            "delivery_bytes_out": sum_of(bytes_out, read),
        }
    )
    by_name = pa.table({"name": name, "client": columns["client"].cast(pa.string()), "count": count})
    for row in by_name.group_by(["name", "client"]).aggregate([("count", "sum")]).to_pylist():
        made.operations[row["name"], row["client"]] += row["count_sum"]
    made.hours[f"{part.begin:%Y-%m-%dT%H:00:00Z}"] += sum_of(count)
    client = pc.invert(federated)
    made.principals.update(pc.unique(person.filter(client)).to_pylist())
    moved = pc.or_(published, read)
    hot = (
        pa.table({"rp": rp.filter(moved), "events": events.filter(moved)}).group_by("rp").aggregate([("events", "sum")])
    )
    made.rps.update({row["rp"]: row["events_sum"] for row in hot.to_pylist()})
    begun = pc.and_(pc.is_in(name, value_set=pa.array(["deliver", "history", "subscribe"])), good)
    pairs = pc.add(pc.multiply(rp.filter(begun), plan.principals), person.filter(begun))
    made.readings.update(pc.unique(pairs).to_pylist())
    timed = pa.table({"latency": columns["latency_us"].filter(published), "count": count.filter(published)})
    for row in timed.group_by("latency").aggregate([("count", "sum")]).to_pylist():
        made.latencies[row["latency"]] += row["count_sum"]
    foreign = pc.and_(read, pc.greater(pc.cast(columns["issuer"].indices, pa.int64()), 1))
    table = pa.table(
        {"issuer": columns["issuer"].cast(pa.string()).filter(foreign), "bytes": bytes_out.filter(foreign)}
    )
    for row in table.group_by("issuer").aggregate([("bytes", "sum")]).to_pylist():
        made.partners[f"bytes/{row['issuer']}"] += row["bytes_sum"]
    asked = pa.table({"peer": columns["peer"].cast(pa.string()).filter(federated), "count": count.filter(federated)})
    for row in asked.group_by("peer").aggregate([("count", "sum")]).to_pylist():
        made.partners[f"asked/{row['peer']}"] += row["count_sum"]
    return made


def _answer(plan: GenerationPlan, whole: ExpectedReports) -> dict[str, Any]:
    counts = whole.counts
    peak = max(whole.hours.items(), key=lambda item: (item[1], item[0]), default=(None, 0))
    asked = {name.partition("/")[2]: n for name, n in whole.partners.items() if name.startswith("asked/")}
    sent = {name.partition("/")[2]: n for name, n in whole.partners.items() if name.startswith("bytes/")}
    return {
        "records": counts["records"],
        "plan": {name: getattr(plan, name) for name in ("records", "days", "rps", "principals", "seed", "domain")},
        "access": {
            "headline": {
                **{n: counts[n] for n in ("operations", "refused", "failed", "events", "bytes_in", "bytes_out")},
                "principals": len(whole.principals),
                "foreign_issuers": len({_World.partner(number) for number in whole.principals} - {""}),
                "peers": len(asked),
            },
            "operations": [
                {"operation": operation, "client": client, "operations": n}
                for (operation, client), n in sorted(whole.operations.items())
            ],
            "hours": dict(sorted(whole.hours.items())),
            "busiest_hour": peak[0],
        },
        "load": {
            "headline": {
                "operations": counts["operations"],
                "publishes": counts["publishes"],
                "events_in": counts["events_in"],
                "bytes_in": counts["publish_bytes_in"],
                "deliveries": counts["deliveries"],
                "bytes_out": counts["delivery_bytes_out"],
                "refused": counts["refused"],
                "failed": counts["failed"],
            },
            "rps": {
                rp_id(number): n for number, n in sorted(whole.rps.items(), key=lambda item: (-item[1], item[0]))[:20]
            },
            "publish_latency_us": {
                name: _quantile(whole.latencies, q) for name, q in (("p50", 500), ("p95", 950), ("p99", 990))
            },
        },
        "placement": {
            "headline": {"bytes_now": sum(sent.values()), "domains": len(sent)},
            "bytes": dict(sorted(sent.items())),
        },
        "overlap": {"headline": {"readings": len(whole.readings)}},
        "federation": {
            "headline": {"peers": len(asked), "operations": sum(asked.values())},
            "peers": dict(sorted(asked.items())),
        },
    }


def _quantile(counts: Counter[int], per_mille: int) -> int | None:
    """Return the exact quantile: the ceil(q n)-th smallest."""
    rank = (counts.total() * per_mille + 999) // 1000
    reached = 0
    for value, number in sorted(counts.items()):
        reached += number
        if reached >= rank:
            return value
    return None
