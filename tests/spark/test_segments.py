"""What needs no Spark: which segments may share records, periods, compaction while a gateway writes, crashes, messages."""

from __future__ import annotations

import io
import json
import os
import random
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.records import schema as gateway_schema
from eventing.records.segments import NAME
from spark import bench, document, problems, reading, schemas, session
from spark.jobs import compaction
from spark.jobs.running import JobRequest
from spark.locations import Location
from spark.periods import Period, period
from spark.progress import ProgressReporter
from spark.report import Summary
from spark.transforms.overlap import connected
from spark.writing import JobRun, current
from tests.spark import samples
from tests.spark.samples import HOME, utc

HOUR = utc(2027, 1, 15, 8)
LONG_AFTER = HOUR + timedelta(days=1)
Key = tuple[str, int]


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 30), st.integers(0, 6)), max_size=12))
def test_segments_that_may_share_records_are_found(spans: list[tuple[str | None, int, int]]) -> None:
    segments = [
        reading.Segment(str(n), HOUR, 1, 1, (reading.Span(gateway, low, low + more),), late=False, joined=False)
        for n, (gateway, low, more) in enumerate(spans)
    ]
    expected = set()
    for n, (one, low, more) in enumerate(spans):
        for m, (other, start, length) in enumerate(spans):
            if (
                n != m
                and (one is None or other is None or one == other)
                and low <= start + length
                and start <= low + more
            ):
                expected.add(str(n))
    assert reading.overlapping(segments) == expected


@given(st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), max_size=20))
def test_what_edges_connect_is_one_region(live_gateways: list[tuple[int, int]]) -> None:
    groups: list[set[str]] = []
    names = [(f"r{a:02d}", f"r{b:02d}") for a, b in live_gateways]
    for a, b in names:
        touched = [group for group in groups if a in group or b in group]
        groups = [group for group in groups if group not in touched] + [{a, b}.union(*touched)]
    assert dict(connected(names)) == {rp: min(group) for group in groups for rp in group}


def test_days_have_the_hours_of_their_zone() -> None:
    short, long = (
        period("2027-03-28", "2027-03-29", "Europe/Berlin"),
        period("2027-10-31", "2027-11-01", "Europe/Berlin"),
    )
    assert (short.end - short.begin, long.end - long.begin) == (timedelta(hours=23), timedelta(hours=25))
    assert period("2027-01-15T10:00+02:00", None).begin == HOUR


@pytest.mark.parametrize(
    ("begin", "end", "zone", "said"),
    [
        ("yesterday", None, "UTC", "--from"),
        (None, "2027-13-01", "UTC", "--to"),
        ("2027-01-02", "2027-01-02", "UTC", "later"),
        (None, None, "Nowhere/At_all", "--zone"),
        (None, None, "../../etc/passwd", "--zone"),
    ],
)
def test_a_period_that_is_none_is_refused_in_a_sentence(
    begin: str | None, end: str | None, zone: str, said: str
) -> None:
    with pytest.raises(problems.JobProblem, match=said):
        period(begin, end, zone)


def keys(folder: Path) -> list[Key]:
    """(gateway, number) of all records in segments, as often as they are there."""
    found = []
    for segment in reading.inspect(Location(str(folder)), Period()).segments:
        table = pq.ParquetFile(segment.path).read(["gateway", "number"])
        found += list(zip(table["gateway"].to_pylist(), table["number"].to_pylist(), strict=True))
    return found


def content(folder: Path) -> list[tuple[Any, ...]]:
    """All records with all columns, in the order of their keys, each once."""
    found = set()
    for segment in reading.inspect(Location(str(folder)), Period()).segments:
        found |= {tuple(row.values()) for row in pq.ParquetFile(segment.path).read().to_pylist()}
    return sorted(found, key=lambda row: (row[1], row[2]))


def compact(folder: Path, output: Path, now: Any = LONG_AFTER) -> dict[str, Any]:
    return compaction.run(
        JobRequest(Location(str(folder)), Location(str(output)), Period(), HOME), ProgressReporter("none"), now
    )


def test_compaction_keeps_exactly_the_same_records_and_leaves_the_last_hour(folder: Path, tmp_path: Path) -> None:
    chance = random.Random(1)
    made = samples.records(chance, 600, HOUR, 3)
    paths = samples.write_segments(folder, made, chance, most=80)
    before = content(folder)
    now = HOUR + timedelta(hours=3, minutes=30)  # the third hour ended half an hour ago, the second an hour and a half

    report = compact(folder, tmp_path / "out", now)

    assert content(folder) == before
    assert sorted(keys(folder)) == sorted((r["gateway"], r["number"]) for r in made), "none is there twice"
    last = [path for path in paths if path.parent.name == "hour=10"]
    assert all(path.exists() for path in last)
    for hour in ("hour=08", "hour=09"):
        (only,) = (folder / "date=2027-01-15" / hour).iterdir()
        assert NAME.fullmatch(only.name), "the gateway's retention removes it when its time comes"
    assert report["headline"]["segments_before"]["value"] == len(paths) - len(last)
    again = compact(folder, tmp_path / "out", now)
    assert again["headline"]["hours"]["value"] == 0, "there is nothing left to join"
    late = reading.inspect(Location(str(folder)), Period())
    assert not any(segment.late for segment in late.segments if segment.joined)
    assert not any(segment.path in {s.path for s in late.suspect} for segment in late.segments if segment.joined)


@pytest.mark.parametrize("step", ["written", "first-removed", "some-removed"])
def test_a_crash_of_compaction_is_harmless(
    folder: Path, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(2)
    made = samples.records(chance, 300, HOUR, 1)
    samples.write_segments(folder, made, chance, most=60)
    before = content(folder)
    with monkeypatch.context() as patch:
        _die_at(patch, step)
        with pytest.raises(KeyboardInterrupt):
            compact(folder, tmp_path / "out")
    assert content(folder) == before, "nothing is missing"

    report = compact(folder, tmp_path / "out")

    assert content(folder) == before
    assert sorted(keys(folder)) == sorted((r["gateway"], r["number"]) for r in made), "nothing is there twice"
    if step != "written":
        assert report["headline"]["duplicates"]["value"] > 0


def _die_at(patch: pytest.MonkeyPatch, step: str) -> None:
    removed: list[Any] = []
    really = compaction._remove

    def put(written: Path, target: Path) -> None:
        raise KeyboardInterrupt

    def remove(place: Location, segment: reading.Segment) -> None:
        if len(removed) >= (1 if step == "first-removed" else 5):
            raise KeyboardInterrupt
        removed.append(segment)
        really(place, segment)

    if step == "written":
        patch.setattr(compaction, "_put", put)
    else:
        patch.setattr(compaction, "_remove", remove)


def test_readers_miss_nothing_while_gateways_write_and_segments_are_joined(folder: Path, tmp_path: Path) -> None:
    chance = random.Random(4)
    made = samples.records(chance, 900, HOUR, 1)
    whole = {(r["gateway"], r["number"]) for r in made}
    first, rest = made[:300], made[300:]
    samples.write_segments(folder, first, chance, most=60)
    written = {(r["gateway"], r["number"]) for r in first}
    failures: list[Exception] = []

    def write() -> None:
        try:
            for at in range(0, len(rest), 100):
                some = rest[at : at + 100]
                for n, (hour, gateway) in enumerate(
                    sorted({(r["time"].replace(minute=0, second=0, microsecond=0), r["gateway"]) for r in some})
                ):
                    mine = [
                        r
                        for r in some
                        if r["gateway"] == gateway and r["time"].replace(minute=0, second=0, microsecond=0) == hour
                    ]
                    spool = folder / "_spool"
                    path = samples.write_segment(spool, hour, f"{gateway}-{900_000 + at * 10 + n}", mine)
                    target = folder / path.relative_to(spool)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    path.rename(target)
                    written.update((r["gateway"], r["number"]) for r in mine)
        except Exception as error:  # noqa: BLE001 - told below
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    rounds = 0
    while writer.is_alive() or rounds < 3:
        known = set(written)
        compact(folder, tmp_path / "out")
        assert known <= set(keys(folder))
        rounds += 1
    writer.join()
    compact(folder, tmp_path / "out")
    assert not failures
    assert sorted(keys(folder)) == sorted(whole)


def test_compaction_leaves_what_it_cannot_read_and_names_it(folder: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    made = samples.records(chance, 300, HOUR, 1, lives=1)
    paths = [samples.write_segment(folder, HOUR, f"s-{n:06d}", made[n * 100 : n * 100 + 100]) for n in range(3)]
    raw = bytearray(paths[1].read_bytes())
    raw[40:60] = bytes(20)
    paths[1].write_bytes(raw)

    report = compact(folder, tmp_path / "out")

    assert paths[1].exists()
    assert not paths[0].exists()
    assert not paths[2].exists()
    assert [Path(one["segment"]).name for one in report["input"]["skipped"]] == [paths[1].name]
    assert report["headline"]["records"]["value"] == 200


def test_a_new_segment_shows_in_the_digest(folder: Path) -> None:
    made = samples.records(random.Random(6), 50, HOUR, 1)
    samples.write_segment(folder, HOUR, "one-000001", made[:25])
    place = Location(str(folder))
    before = reading.inspect(place, Period()).digest
    assert reading.digest(reading.listing(place, Period())) == before
    samples.write_segment(folder, HOUR, "two-000001", made[25:])
    assert reading.inspect(place, Period()).digest != before


def test_a_commit_is_whole_and_keeps_the_report_before_for_its_readers(tmp_path: Path) -> None:
    output = Location(str(tmp_path))
    runs = [JobRun.begin(output, "load") for _ in range(4)]
    for number, run in enumerate(runs[:3]):
        run.commit({"number": number})
        assert current(output, "load") == {"number": number}
    folders = {path.name for path in (tmp_path / "load").iterdir()}
    assert folders == {"manifest.json", f"run={runs[1].name}", f"run={runs[2].name}"}
    Path(runs[3].folder).mkdir()  # one that goes on meanwhile is not touched
    JobRun.begin(output, "load").commit({"number": 4})
    assert Path(runs[3].folder).exists()


def test_progress_for_programs_is_an_object_a_line() -> None:
    stream = io.StringIO()
    progress = ProgressReporter("json", stream)
    progress.say("load", "cells", 0, 0)
    progress.say("load", "cells", 0, 0)
    progress.say("load", "cells", 3, 4)
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [
        {"job": "load", "stage": "cells", "done": 0, "total": 0},
        {"job": "load", "stage": "cells", "done": 3, "total": 4},
    ]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, os.strerror(28)), "disk is full"),
        (RuntimeError("org.apache.spark.SparkException: java.io.IOException: No space left on device"), "disk is full"),
        (RuntimeError("java.lang.OutOfMemoryError: Java heap space"), "--memory"),
        (PermissionError(13, "Permission denied", "/x"), "Permission to read"),
    ],
    ids=["system", "spark", "memory", "denied"],
)
def test_errors_are_one_sentence(error: Exception, said: str) -> None:
    text = problems.sentence(error, "reports")
    assert said in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("status", "said"), [(-9, "SIGKILL"), (52, "--memory 4g"), (1, "exit status 1")], ids=["signal", "memory", "status"]
)
def test_a_death_of_java_is_said_in_a_sentence(status: int, said: str) -> None:
    text = problems.java_death(status)
    assert said in text
    assert text.endswith("the earlier report is still in place.")


def test_an_error_whose_text_died_with_java_is_a_sentence_all_the_same() -> None:
    class Mute(Exception):  # as py4j's are: they ask Java for their text
        def __str__(self) -> str:
            raise ConnectionRefusedError(111, "Connection refused")

    error = RuntimeError("java.lang.OutOfMemoryError: Java heap space")
    error.__cause__ = Mute()
    assert problems.chain(error) == ["RuntimeError: java.lang.OutOfMemoryError: Java heap space", "Mute"]
    assert "--memory" in problems.sentence(error, "reports")


@pytest.mark.parametrize("memory", ["256m", "511m"])
def test_less_memory_than_spark_starts_with_is_refused(memory: str) -> None:
    with pytest.raises(problems.JobProblem, match=f"{memory} is too little .* 512m or more"):
        session.start(session.Engine(memory=memory), "never")


def test_a_list_of_sums_adds_up_all_rows_of_its_table(tmp_path: Path) -> None:
    """Not only those that are on another list: each of 60 principals was refused a little, one failed."""
    run = JobRun.begin(Location(str(tmp_path)), "access")
    seen = {"first_seen": HOUR, "last_seen": HOUR}
    made = [
        {"outcome": "refused", "reason": ("forbidden", "rate-limited", "forbidden")[n % 3], "operation": "publish"}
        | {"principal": f"p{n}", "issuer": HOME, "peer": "", "operations": n + 1, **seen}
        for n in range(60)
    ]
    made.append(made[0] | {"outcome": "failed", "reason": "internal", "operations": 7})
    folder = Path(run.folder) / "refusals"
    folder.mkdir(parents=True)
    for number, rows in enumerate((made[:31], made[31:])):
        table = pa.Table.from_pylist(rows)
        never_null = pa.schema([field.with_nullable(False) for field in table.schema])  # as Spark writes it
        pq.write_table(table.cast(never_null), folder / f"part-{number}.parquet")

    summary = Summary(run)
    summary.top_of_sums("reasons", "Why.", "refusals", ("outcome", "reason"), ("operations",))

    assert [column["name"] for column in summary.tops["reasons"]["columns"]] == ["outcome", "reason", "operations"]
    limited = sum(range(2, 61, 3))
    assert summary.tops["reasons"]["rows"] == [
        ["refused", "forbidden", sum(range(1, 61)) - limited],
        ["refused", "rate-limited", limited],
        ["failed", "internal", 7],
    ]


@pytest.mark.parametrize(
    ("status", "said"), [(-9, "SIGKILL"), (143, "SIGTERM"), (1, "status 1"), (129 + 90, "status 219")]
)
def test_the_benchmark_says_how_a_process_ended(status: int, said: str) -> None:
    assert said in bench._how(status)


def test_the_benchmark_judges_the_most_records_and_how_time_grows() -> None:
    times = {(10, "Spark"): 8.0, (10, "DuckDB"): 1.0, (100, "Spark"): 40.0, (100, "DuckDB"): 10.0}
    found = [
        bench.Measured(records, job, engine, seconds, 0.0, 0.0)
        for job in bench.JOBS
        for (records, engine), seconds in times.items()
    ]
    hour = [bench.Measured(1, "access, an hour", "Spark", 31.0, 0.0, 0.0)] * 2
    values = {bound.about: (bound.value, bound.holds) for bound in bench._bounds(found, hour)}
    assert values["load of 100"] == (4.0, True)
    assert values["load of 100, each record"] == (0.5, True)
    assert [value for about, value in values.items() if "an hour" in about] == [(62.0, False)]


def test_the_documentation_says_every_column() -> None:
    written = (Path(__file__).parents[2] / "docs" / "reports.md").read_text()
    assert document.tables().strip() in written, "run `python -m spark.document`"


def test_the_input_contract_is_what_gateways_write() -> None:
    kinds = {"timestamp": "timestamp", "string": "string", "int64": "bigint"}
    assert tuple((column.name, kinds[column.type]) for column in gateway_schema.COLUMNS) == schemas.RECORD
    assert schemas.INPUT_VERSION == gateway_schema.VERSION
    assert gateway_schema.VERSION_KEY.encode() == schemas.INPUT_VERSION_KEY
    assert schemas.ENCODED == gateway_schema.ENCODED
