"""Records before any report: each once, cut to the period; and the hours and days that reports count them in."""

from __future__ import annotations

from datetime import timedelta

import pytest

from spark import schemas
from spark.transforms import records
from spark.transforms.common import day_of, hour_of
from tests.spark.frames import AT, Frames, distinct
from tests.spark.samples import utc

pytestmark = [pytest.mark.long, pytest.mark.processes]

ALL = tuple(name for name, _ in schemas.RECORD)
TICK = timedelta(microseconds=1)


def test_a_record_that_two_segments_hold_counts_once(frames: Frames) -> None:
    clean = frames.records(ALL, {"gateway": "a", "number": 1, "rp": "clean"})
    suspect = frames.records(
        ALL,
        {"gateway": "b", "number": 1, "rp": "twice"},
        {"gateway": "b", "number": 1, "rp": "twice"},
        {"gateway": "b", "number": 2, "rp": "another number"},
        {"gateway": "c", "number": 1, "rp": "another gateway"},
    )
    others = {("twice",), ("another number",), ("another gateway",)}
    assert distinct(records.once(clean, suspect, ["rp"])) == {("clean",), *others}
    assert distinct(records.once(None, suspect, ["rp"])) == others
    assert distinct(records.once(clean, None, ["rp", "number"])) == {("clean", 1)}


def test_a_period_begins_with_its_begin_and_ends_before_its_end(frames: Frames) -> None:
    begin, end = AT + timedelta(minutes=30), AT + timedelta(hours=2)
    given = frames.records(ALL, *({"time": at} for at in (begin - TICK, begin, end - TICK, end)))
    assert distinct(records.within(given, begin, end), "time") == {(begin,), (end - TICK,)}
    assert distinct(records.within(given, begin + TICK, end - TICK)) == set()


def test_no_records_are_none(frames: Frames) -> None:
    nothing = frames.records(ALL)
    found = records.within(records.once(nothing, nothing, ALL), AT, AT + timedelta(hours=1))
    assert found.columns == list(ALL)
    assert distinct(found) == set()


def test_an_hour_begins_with_its_first_microsecond(frames: Frames) -> None:
    at = [AT, AT + timedelta(hours=1) - TICK, AT + timedelta(hours=1), utc(2027, 1, 16) - TICK, utc(1970, 1, 1) - TICK]
    found = distinct(frames.records(("time",), *({"time": one} for one in at)).select("time", hour_of().alias("hour")))
    hours = [AT, AT, AT + timedelta(hours=1), utc(2027, 1, 15, 23), utc(1969, 12, 31, 23)]
    assert found == set(zip(at, hours, strict=True))


@pytest.mark.parametrize(
    ("zone", "days"),
    [
        ("UTC", {"27T22": "27", "27T23": "27", "28T18": "28", "28T21": "28", "28T22": "28", "28T23": "28"}),
        ("Europe/Berlin", {"27T22": "27", "27T23": "28", "28T18": "28", "28T21": "28", "28T22": "29", "28T23": "29"}),
        ("Asia/Kolkata", {"27T22": "28", "27T23": "28", "28T18": "28", "28T21": "29", "28T22": "29", "28T23": "29"}),
    ],
    ids=["utc", "a day of 23 hours", "midnight within an hour"],
)
def test_an_hour_is_of_the_day_that_it_begins_in(frames: Frames, zone: str, days: dict[str, str]) -> None:
    hours = [utc(2027, 3, int(hour[:2]), int(hour[3:])) for hour in days]
    given = frames.of({"hour": "timestamp"}, *({"hour": hour} for hour in hours))
    expected = {(hour, utc(2027, 3, int(day)).date()) for hour, day in zip(hours, days.values(), strict=True)}
    assert distinct(given.select("hour", day_of(zone).alias("day"))) == expected
