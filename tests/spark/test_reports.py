"""Reports over real segments, by a real Spark: equal to a count in plain Python, and whole whatever the segments are like."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import time
from collections import Counter
from datetime import datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from eventing.records import schema as gateway_schema
from spark import reading
from spark.jobs import generate
from spark.jobs.running import JobRequest, JobRunner
from spark.locations import Location
from spark.periods import Period, period
from spark.progress import ProgressReporter
from spark.writing import current
from tests.spark import bruteforce, samples
from tests.spark.samples import HOME, utc

pytestmark = [pytest.mark.long, pytest.mark.processes, pytest.mark.timeout(900)]
JOBS = ("access", "load", "placement", "overlap", "federation")
LIMITS = {
    "rp-publish-events": 0.5,
    "rp-publish-bytes": 1e9,
    "domain-publish-events": 1e3,
    "domain-publish-bytes": 1.0,
    "domain-rps": 1_000.0,
    "domain-rps-used": 400.0,
}
"""For the forecast: some that are reached, some that will be, some that never will."""


def make(engine: Any, request: JobRequest, *jobs: str) -> None:
    runner = JobRunner(engine, request, ProgressReporter("none"))
    for job in jobs:
        runner.run(job, import_module(f"spark.jobs.{job}").build)


def rows(output: Path, job: str, table: str) -> list[dict[str, Any]]:
    """A table of the report that counts, as any reader of Parquet sees it."""
    run = json.loads((output / job / "manifest.json").read_text())["run"]
    found = ds.dataset(output / job / f"run={run}" / table, format="parquet").to_table()
    return list(found.to_pylist())


def same(found: list[dict[str, Any]], expected: list[dict[str, Any]], about: str, keys: tuple[str, ...]) -> None:
    """The same rows; quantiles within what their buckets allow, other numbers of floating point to their last places."""

    def index(some: list[dict[str, Any]]) -> dict[Any, dict[str, Any]]:
        return {tuple(str(row[key]) for key in keys): row for row in some}

    assert len(found) == len(index(found)), f"{about}: rows are doubled"
    ours, theirs = index(found), index(expected)
    assert ours.keys() == theirs.keys(), about
    for key, wanted in theirs.items():
        for name, value in wanted.items():
            got = ours[key][name]
            if re.fullmatch(r"p\d+_us", name) and value is not None:
                assert abs((got or 0) - value) <= value / 16, (about, key, name, got, value)
            elif isinstance(value, float):
                assert got == pytest.approx(value, rel=1e-9, abs=1e-6), (about, key, name)
            else:
                assert got == value, (about, key, name, got, value)


@pytest.mark.parametrize(
    ("begin", "end", "zone"),
    [
        ("2027-03-27", "2027-03-30", "Europe/Berlin"),  # 23 hours on the 28th
        pytest.param("2027-10-30", "2027-11-01", "Europe/Berlin", marks=pytest.mark.soak),  # 25 hours on the 31st
        pytest.param(
            "2027-03-27", "2027-03-29", "Asia/Kolkata", marks=pytest.mark.soak
        ),  # midnight within an hour of UTC
    ],
    ids=["short-day", "long-day", "half-hour"],
)
def test_reports_equal_a_count_in_plain_python(
    engine: Any, folder: Path, tmp_path: Path, begin: str, end: str, zone: str
) -> None:
    seed = int(os.environ.get("HERALD_TEST_SEED") or time.time_ns() % 10**6)
    chance = random.Random(seed)
    asked = period(begin, end, zone)
    span = timedelta(days=5)
    made = samples.records(chance, 900, asked.begin - timedelta(days=1), int(span.total_seconds() // 3600))
    made += samples.burst("p1", asked.begin + timedelta(hours=5), 150)
    paths = samples.write_segments(folder, made, chance)
    before = [r for r in made if r["time"] < asked.begin]
    within = [r for r in made if asked.begin <= r["time"] < asked.end]
    copied = _copy_some(chance, paths)
    late = _make_late(chance, paths)
    _others_names(folder)

    output = tmp_path / "reports"
    limits = LIMITS if zone == "Europe/Berlin" else {}
    request = JobRequest(Location(str(folder)), Location(str(output)), asked, HOME, limits=limits)
    jobs = JOBS if zone == "Europe/Berlin" and begin.startswith("2027-03") else ("access", "load")
    make(engine, request, *jobs)

    about = f"HERALD_TEST_SEED={seed}"
    same(rows(output, "access", "principals"), bruteforce.principals(within), about, ("principal", "issuer"))
    same(rows(output, "access", "issuers"), bruteforce.issuers(within, HOME), about, ("issuer",))
    same(rows(output, "access", "peers"), bruteforce.peers(within), about, ("peer",))
    same(rows(output, "access", "operations"), bruteforce.operations(within), about, ("operation", "client"))
    same(rows(output, "access", "rps"), bruteforce.rps(within), about, ("rp",))
    same(
        rows(output, "access", "refusals"),
        bruteforce.refusals(within),
        about,
        ("outcome", "reason", "operation", "principal", "issuer", "peer"),
    )
    access = current(request.output, "access")
    assert access is not None
    reasons: Counter[tuple[str, str]] = Counter()
    for record in within:
        if record["outcome"] != "ok":
            reasons[record["outcome"], record["reason"]] += record["count"]
    listed = {(outcome, reason): number for outcome, reason, number in access["tops"]["reasons"]["rows"]}
    assert listed == reasons, about
    same(rows(output, "access", "hours"), bruteforce.hours(within, zone), about, ("hour", "operation"))
    who = ("hour", "principal", "issuer", "peer")
    same(rows(output, "access", "activity"), bruteforce.activity(within, zone), about, who)
    strange = bruteforce.news(within, {r["issuer"] for r in before}, "issuer", "new-foreign-issuer", HOME)
    strange += bruteforce.news(within, {r["peer"] for r in before}, "peer", "new-peer", HOME)
    strange += bruteforce.bursts(within) + bruteforce.awake(within, before)
    same(rows(output, "access", "anomalies"), strange, about, ("kind", "subject", "issuer", "at"))
    assert any(row["kind"] == "refusal-burst" for row in strange)

    same(rows(output, "load", "rp_hours"), bruteforce.load_rp_hours(within), about, ("rp", "hour"))
    same(rows(output, "load", "rps"), bruteforce.load_rps(within, zone), about, ("rp",))
    same(rows(output, "load", "hours"), bruteforce.load_hours(within, zone), about, ("hour",))
    same(rows(output, "load", "days"), bruteforce.load_days(within, zone), about, ("day",))
    same(rows(output, "load", "fame"), bruteforce.fame(within), about, ("rp", "hour"))
    same(rows(output, "load", "latency"), bruteforce.latencies(within), about, ("operation",))
    _same_forecast(rows(output, "load", "forecast"), bruteforce.forecast(within, zone, limits), within, about)
    for table, keys in (
        ("histogram", ("operation",)),
        ("hour_histogram", ("hour", "operation")),
        ("rp_histogram", ("rp",)),
    ):
        _same_buckets(rows(output, "load", table), within, keys, f"{table}, {about}")
    if "placement" in jobs:
        advice = bruteforce.placement(within, HOME)
        same(rows(output, "placement", "advice"), advice, about, ("rp", "domain"))
        same(rows(output, "placement", "domains"), bruteforce.placement_domains(advice), about, ("domain",))
        pairs = {(row["rp_a"], row["rp_b"]): (row["common"], row["either"]) for row in rows(output, "overlap", "pairs")}
        assert pairs.items() <= bruteforce.overlaps(within).items(), (
            about
        )  # MinHash may miss one, but never invents one
        same(rows(output, "federation", "peers"), bruteforce.federation_peers(within, asked.end), about, ("peer",))
        same(
            rows(output, "federation", "peer_hours"), bruteforce.federation_peer_hours(within), about, ("peer", "hour")
        )
        failed = ("peer", "operation", "outcome", "reason")
        same(rows(output, "federation", "failures"), bruteforce.federation_failures(within), about, failed)

    report = current(request.output, "load")
    assert report is not None
    read = [path for path in paths if _hour(path) < asked.end and _hour(path) + timedelta(hours=1) > asked.begin]
    given = report["input"]
    assert given["segments"] == len(read) + sum(_twin(path) in read for path in copied), about
    assert given["records"] == sum(pq.read_metadata(path).num_rows for path in read), about
    assert given["duplicates"] == sum(pq.read_metadata(path).num_rows for path in copied if _twin(path) in read), about
    on_time = {path for path in [*paths, *copied] if path not in late}
    assert given["late_segments"] == sum(path not in on_time and (path in read) for path in late), about
    assert report["headline"]["events_in"]["value"] == sum(
        row["events_in"] for row in bruteforce.load_days(within, zone)
    ), about
    assert report["period"]["zone"] == zone
    assert sum(row["operations"] for row in rows(output, "access", "usage")) == sum(r["count"] for r in within), about


def _same_forecast(
    found: list[dict[str, Any]], expected: list[dict[str, Any]], within: list[dict[str, Any]], about: str
) -> None:
    """The same limits, days left to a millionth; and the time of reaching is that many days after the last hour."""
    index = {(row["limit"], row["subject"]): row for row in expected}
    growing = [row for row in found if bruteforce.grows(row)]
    assert {(row["limit"], row["subject"]) for row in growing} == index.keys(), about
    assert len(growing) == len(index), about
    assert not found or {0.0} < {row["days_left"] for row in growing}, "some are reached, some will be"
    end = bruteforce.last_hour(within) + timedelta(hours=1)
    for row in growing:
        wanted = index[row["limit"], row["subject"]]
        assert row["unit"] == wanted["unit"]
        for name in ("now", "per_day", "limit_value", "days_left"):
            assert row[name] == pytest.approx(wanted[name], rel=1e-6), (about, row["limit"], row["subject"], name)
        if row["days_left"] < 36_525:
            assert abs(row["exhausted_at"] - end - timedelta(days=row["days_left"])) < timedelta(seconds=1), about
        else:
            assert row["exhausted_at"] is None, about


def _same_buckets(found: list[dict[str, Any]], within: list[dict[str, Any]], keys: tuple[str, ...], about: str) -> None:
    """The same histogram, to the last operation; that of RPs is of publishes that name one."""
    known = within if keys != ("rp",) else [r for r in within if r["operation"] == "publish" and r["rp"]]
    expected = bruteforce.histogram(
        known, lambda r: tuple(bruteforce.hour_of(r) if key == "hour" else r[key] for key in keys)
    )
    buckets = {(tuple(row[key] for key in keys), row["bucket"]): row["operations"] for row in found}
    assert len(buckets) == len(found), about
    assert buckets == expected, about


def _copy_some(chance: random.Random, paths: list[Path]) -> list[Path]:
    """Segments that are there twice, as after a compaction that was killed."""
    copied = []
    for path in chance.sample(paths, 5):
        copy = path.with_name(f"copy-{path.name}")
        shutil.copy(path, copy)
        _on_time(copy)
        copied.append(copy)
    return copied


def _twin(path: Path) -> Path:
    return path.with_name(path.name.removeprefix("copy-"))


def _make_late(chance: random.Random, paths: list[Path]) -> list[Path]:
    for path in paths:
        _on_time(path)
    late = chance.sample(paths, 7)
    for path in late:
        at = (_hour(path) + timedelta(hours=1, seconds=reading.LATE_S + 60)).timestamp()
        os.utime(path, (at, at))
    return late


def _on_time(path: Path) -> None:
    at = (_hour(path) + timedelta(hours=1)).timestamp()
    os.utime(path, (at, at))


def _hour(path: Path) -> datetime:
    return datetime.fromisoformat(
        f"{path.parts[-3].removeprefix('date=')}T{path.parts[-2].removeprefix('hour=')}:00:00+00:00"
    )


def _others_names(folder: Path) -> None:
    """What a reader passes over."""
    (folder / "_spool").mkdir()
    (folder / "_spool" / "x.parquet").write_bytes(b"being written")
    (folder / "date=never" / "hour=00").mkdir(parents=True)
    (folder / "notes.txt").write_text("not ours")


def test_damaged_segments_are_named_skipped_and_counted(engine: Any, folder: Path, tmp_path: Path) -> None:
    hour = utc(2027, 1, 15, 8)
    chance = random.Random(3)
    made = samples.records(chance, 400, hour, 1, lives=1)
    good = samples.write_segment(folder, hour, "good-000001", made[:200])
    damaged = samples.write_segment(folder, hour, "damaged-000002", made[200:])
    raw = bytearray(damaged.read_bytes())
    raw[40:60] = bytes(20)  # within the first page: the footer is as it should be
    damaged.write_bytes(raw)
    whole = good.read_bytes()
    bad = {
        "empty": b"",
        "truncated": whole[: len(whole) // 2],
        "foreign": b"not a Parquet file at all",
        "corrupt": whole[:-40] + bytes(32) + whole[-8:],
    }
    for name, content in bad.items():
        good.with_name(f"{name}.parquet").write_bytes(content)
    pq.write_table(pa.table({"a": [1]}), good.with_name("foreign-schema.parquet"))
    table = pq.read_table(good, partitioning=None)
    with pq.ParquetWriter(good.with_name("version.parquet"), table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({gateway_schema.VERSION_KEY: "2"})
    elsewhere = folder / "date=2027-01-15" / "hour=09"
    elsewhere.mkdir()
    shutil.copy(good, elsewhere / "misplaced.parquet")

    request = JobRequest(Location(str(folder)), Location(str(tmp_path / "reports")), Period(), HOME)
    make(engine, request, "federation")

    report = current(request.output, "federation")
    assert report is not None
    named = {Path(one["segment"]).stem: one["kind"] for one in report["input"]["skipped"]}
    assert named == {
        "damaged-000002": "corrupt",
        "empty": "empty",
        "truncated": "truncated",
        "foreign": "foreign",
        "corrupt": "corrupt",
        "foreign-schema": "foreign",
        "version": "version",
        "misplaced": "misplaced",
    }
    assert report["input"]["skipped_segments"] == len(named)
    assert report["input"]["records"] == 200
    asked = bruteforce.federation_peers(made[:200], max(r["time"] for r in made[:200] if r["peer"]))
    same(rows(tmp_path / "reports", "federation", "peers"), asked, "", ("peer",))


def test_regions_of_alike_subscribers_are_found(engine: Any, folder: Path, tmp_path: Path) -> None:
    hour = utc(2027, 1, 15, 8)
    template = samples.records(random.Random(1), 1, hour, 1)[0] | {
        "operation": "subscribe",
        "outcome": "ok",
        "issuer": HOME,
        "peer": "",
        "count": 1,
    }
    readers = {
        f"rp{region}{n}": [f"p{region}-{i}" for i in range(12)]
        for region in "abc"
        for n in range(40 if region == "a" else 3)
    }
    readers["rpb0"] = readers["rpb0"][:-1]  # 11 of 12 are still alike
    readers["rpz"] = [f"p{region}-{i}" for region in "abc" for i in range(12)]  # reads all: like none of them
    pairs = [(rp, who) for rp, some in readers.items() for who in some]
    made = [template | {"number": n, "rp": rp, "principal": who} for n, (rp, who) in enumerate(pairs)]
    samples.write_segment(folder, hour, "only-000001", made)

    request = JobRequest(Location(str(folder)), Location(str(tmp_path / "reports")), Period(), HOME)
    make(engine, request, "overlap")

    found = {row["region"]: row for row in rows(tmp_path / "reports", "overlap", "regions")}
    assert {region: (row["rps"], row["subscribers"], row["saved_readings"]) for region, row in found.items()} == {
        "rpa0": (40, 12, 40 * 12 - 12),
        "rpb0": (3, 12, 3 * 12 - 1 - 12),
        "rpc0": (3, 12, 3 * 12 - 12),
    }
    assert found["rpb0"]["least_jaccard"] == pytest.approx(11 / 12)


def test_generated_records_are_reported_as_their_answer_says(engine: Any, folder: Path, tmp_path: Path) -> None:
    plan = generate.GenerationPlan(20_000, days=2, rps=60, principals=300, seed=7, domain=HOME)
    answer = generate.run(plan, Location(str(folder)), ProgressReporter("none"))
    request = JobRequest(Location(str(folder)), Location(str(tmp_path / "reports")), Period(), HOME)
    limits = {"rp-publish-events": 0.001, "domain-publish-bytes": 1e9}
    request.limits = limits
    make(engine, request, *JOBS)
    for job in JOBS:
        report = current(request.output, job)
        assert report is not None
        assert report["input"]["records"] == answer["records"] == plan.records
        for name, value in answer[job]["headline"].items():
            assert report["headline"][name]["value"] == value, (job, name)
        for table in report["tables"].values():
            assert all(column["about"] for column in table["columns"]), "every column says what it is"
    load = current(request.output, "load")
    assert load is not None
    for name, exact in answer["load"]["publish_latency_us"].items():
        assert abs(load["headline"][f"publish_{name}_us"]["value"] - exact) <= exact / 16
    assert {row[0]: row[6] for row in load["tops"]["hot"]["rows"]} == answer["load"]["rps"]
    reached = rows(tmp_path / "reports", "load", "forecast")
    assert {row["limit"] for row in reached} >= {"rp-publish-events"}, "every RP is beyond such a limit"
    assert all(row["days_left"] == 0 for row in reached if row["limit"] == "rp-publish-events")
