"""The load report: traffic by RP, hour and day, latencies, sudden fame, and the forecast."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest

from spark import schemas
from spark.transforms import load
from tests.spark.frames import AT, Frames, Row, distinct, ordered
from tests.spark.samples import utc

pytestmark = [pytest.mark.long, pytest.mark.processes]

HOUR, DAY, TICK = timedelta(hours=1), timedelta(days=1), timedelta(microseconds=1)
TRAFFIC = tuple(column.name for column in schemas.TRAFFIC)
TODAY = date(2027, 1, 15)


def test_records_are_summed_by_rp_and_hour(frames: Frames) -> None:
    given = frames.records(
        load.TRAFFIC_COLUMNS,
        {"events": 10, "bytes_in": 100, "latency_us": 30, "count": 2},
        {"events": 5, "bytes_in": 50, "latency_us": 90, "time": AT + HOUR - TICK},
        {"events": 2, "bytes_in": 1},  # without a latency
        {"outcome": "refused", "latency_us": 999, "bytes_in": 1_000},
        {"outcome": "failed", "count": 2},
        {"operation": "deliver", "events": 20, "bytes_out": 200, "sessions": 3},
        {"operation": "deliver", "events": 10, "bytes_out": 1, "sessions": 5},
        {"operation": "history", "events": 4, "bytes_out": 40, "latency_us": 999, "sessions": 9},
        {"operation": "subscribe", "count": 2},
        {"operation": "unsubscribe"},
        {"operation": "deliver", "events": 7, "bytes_out": 70, "sessions": 1, "time": AT + HOUR},
        *({"rp": "rp2", "operation": operation} for operation in ("rp.create", "rp.create", "rp.delete")),
        {"rp": "rp2", "operation": "rp.create", "outcome": "refused"},
        {"rp": "rp2", "operation": "rp.delete", "count": 2},
        {"rp": ""},
    )
    found = load.rp_hours(given)
    assert distinct(found, of="load.rp_hours") == {
        ("rp1", AT, 13, 4, 17, 151, 34, 241, 51, 2.0, 8, 5, 2, 1, 1, 2, 0, 50.0, 90),
        ("rp1", AT + HOUR, 1, 0, 0, 0, 7, 70, 7, None, 1, 1, 0, 0, 0, 0, 0, None, None),
        ("rp2", AT, 6, 0, 0, 0, 0, 0, 0, None, 0, 0, 0, 0, 1, 0, -1, None, None),
        ("", AT, 1, 1, 0, 0, 0, 0, 0, None, 0, 0, 0, 0, 0, 0, 0, None, None),
    }


def test_deliveries_to_endpoints_are_deliveries(frames: Frames) -> None:
    given = frames.records(
        load.TRAFFIC_COLUMNS,
        {"operation": "deliver", "events": 20, "bytes_out": 200, "sessions": 3},
        {"operation": "deliver", "client": "push", "events": 10, "bytes_out": 100, "sessions": 4},
    )
    (row,) = load.rp_hours(given).select("deliveries", "bytes_out", "moved", "readers_max").collect()
    assert tuple(row) == (30, 300, 30, 4)


def test_histograms_are_of_what_succeeded_and_has_a_latency(frames: Frames) -> None:
    rows = (
        {"latency_us": 17, "count": 2},
        {"latency_us": 16, "time": AT + HOUR - TICK},
        {"latency_us": 18, "time": AT + HOUR},
        {"latency_us": 15, "operation": "history"},
        {"latency_us": 16, "rp": ""},
        {"latency_us": 0},
        {"latency_us": 16, "outcome": "failed"},
    )
    of_rps = load.rp_histogram(frames.records(load.RP_HISTOGRAM_COLUMNS, *rows))
    assert distinct(of_rps, of="load.rp_histogram") == {("rp1", 16, 3), ("rp1", 17, 1)}
    of_hours = load.hour_histogram(frames.records(load.HOUR_HISTOGRAM_COLUMNS, *rows))
    assert distinct(of_hours, of="load.hour_histogram") == {
        (AT, "publish", 16, 4),
        (AT + HOUR, "publish", 17, 1),
        (AT, "history", 15, 1),
    }


def hourly(rp: str, after: timedelta = timedelta(0), **more: Any) -> dict[str, Any]:
    """A row of `rp_hours`."""
    return {"rp": rp, "hour": AT + after} | more


def test_rps_are_sums_of_their_hours(frames: Frames) -> None:
    sums: dict[str, Any] = {name: number for number, name in enumerate(TRAFFIC) if name not in ("fan_out", "moved")}
    by_hour = frames.table(
        "load",
        "rp_hours",
        hourly("rp1", moved=10, **sums | {"readers_max": 8}),
        hourly("rp1", HOUR, moved=10, **sums | {"readers_max": 3}),
        hourly("rp1", 2 * HOUR, moved=5),
        hourly("rp2", 2 * HOUR, moved=1),
        hourly("", 9 * HOUR, moved=100),
    )
    buckets = [{"rp": "rp1", "bucket": 4, "operations": 1}, {"rp": "rp1", "bucket": 20, "operations": 1}]
    found = load.rps(by_hour, frames.table("load", "rp_histogram", *buckets), "UTC")
    doubled = {name: 2 * number for name, number in sums.items()}
    traffic = doubled | {"moved": 25, "fan_out": doubled["deliveries"] / doubled["events_in"], "readers_max": 8}
    assert distinct(found, of="load.rps") == {
        ("rp1", *(traffic[name] for name in TRAFFIC), 4.0, 24.5, 24.5, AT, 10, 5 / 20, None),
        (
            *("rp2", 0, 0, 0, 0, 0, 1, None, 0, 0, 0, 0, 0, 0),
            *(None, None, None, AT + 2 * HOUR, 1, None, None),
        ),
    }


@pytest.mark.parametrize(
    ("zone", "slopes"),
    [("UTC", {"up": 10.0, "once": -4.5}), ("Asia/Tokyo", {"up": 10.0, "once": -2.7})],
    ids=["three days", "four days"],
)
def test_rps_grow_over_all_days_of_the_period(frames: Frames, zone: str, slopes: dict[str, float]) -> None:
    """In Tokyo, nine hours ahead, `up` begins a day later than `once`: it moves 0, 10, 20 and 30, not 10, 20 and 30."""
    by_hour = frames.table(
        "load",
        "rp_hours",
        hourly("once", moved=9),
        *(hourly("up", number * DAY + 8 * HOUR, moved=10 * (number + 1)) for number in range(3)),
    )
    found = load.rps(by_hour, frames.table("load", "rp_histogram"), zone)
    assert dict(distinct(found, "rp", "growth_per_day")) == pytest.approx(slopes)


def test_domain_hours_are_sums_over_rps(frames: Frames) -> None:
    midnight = utc(2027, 3, 28, 22)  # in Berlin, after a day of 23 hours
    by_hour = frames.table(
        "load",
        "rp_hours",
        {"rp": "rp1", "hour": midnight, "operations": 5, "events_in": 2, "deliveries": 3, "readers_max": 4},
        {"rp": "rp2", "hour": midnight, "operations": 6, "events_in": 0, "deliveries": 2, "readers_max": 7},
        {"rp": "", "hour": midnight, "operations": 7, "rps_made": -1, "refused": 1},
        {"rp": "rp1", "hour": midnight - HOUR, "operations": 1, "left": 1},
    )
    buckets = frames.table(
        "load",
        "hour_histogram",
        {"hour": midnight, "operation": "publish", "bucket": 9, "operations": 3},
        {"hour": midnight - HOUR, "operation": "history", "bucket": 5, "operations": 3},
    )
    hours = load.hours(by_hour, buckets, "Europe/Berlin")
    assert distinct(hours, of="load.hours") == {
        (
            *(midnight, date(2027, 3, 29), 18, 0, 2, 0, 5, 0, 0, 2.5, 0, 7, 0, 0, 1, 0),
            *(-1, 2, 9.0, 9.0, 9.0),
        ),
        (
            *(midnight - HOUR, date(2027, 3, 28), 1, 0, 0, 0, 0, 0, 0, None, 0, 0, 0, 1, 0, 0),
            *(0, 1, None, None, None),
        ),
    }


def test_days_are_sums_of_hours(frames: Frames) -> None:
    hours = frames.table(
        "load",
        "hours",
        {"day": TODAY, "operations": 1, "events_in": 4, "deliveries": 1, "fan_out": 0.25, "readers_max": 2},
        {"day": TODAY, "operations": 2, "events_in": 0, "deliveries": 1, "readers_max": 3},
        {"day": TODAY + DAY, "operations": 4, "failed": 4},
    )
    assert distinct(load.days(hours), of="load.days") == {
        (TODAY, 3, 0, 4, 0, 2, 0, 0, 0.5, 0, 3, 0, 0, 0, 0),
        (TODAY + DAY, 4, 0, 0, 0, 0, 0, 0, None, 0, 0, 0, 0, 0, 4),
    }


def test_latencies_are_of_the_histogram_over_all_hours(frames: Frames) -> None:
    counts = [("publish", 20, 1, AT), ("publish", 20, 2, AT + HOUR), ("publish", 3, 997, AT), ("history", 0, 1, AT)]
    of_hours = [dict(zip(("operation", "bucket", "operations", "hour"), row, strict=True)) for row in counts]
    histogram = load.histogram(frames.table("load", "hour_histogram", *of_hours))
    assert distinct(histogram, of="load.histogram") == {
        ("publish", 20, 24, 26, 3),
        ("publish", 3, 3, 4, 997),
        ("history", 0, 0, 1, 1),
    }
    assert distinct(load.latencies(histogram), of="load.latency") == {
        ("publish", 1_000, 3.0, 3.0, 3.0, 3.0, 24.5, 26),
        ("history", 1, 0.0, 0.0, 0.0, 0.0, 0.0, 1),
    }


def test_fame_is_a_thousand_events_and_five_times_the_usual(frames: Frames) -> None:
    least = load.FAME_EVENTS_MIN
    by_hour = frames.table(
        "load",
        "rp_hours",
        hourly("in the first hour", moved=9 * least),
        hourly("at the bound", HOUR, moved=least),
        hourly("below it", HOUR, moved=least - 1),
        hourly("five times", moved=4_800),
        hourly("five times", DAY, moved=least),
        hourly("less", moved=4_801),
        hourly("less", DAY, moved=least),
        hourly("long ago", moved=4_801),
        hourly("long ago", DAY + HOUR, moved=least + 1),
        hourly("", DAY, moved=9 * least),
    )
    assert ordered(load.fame(by_hour), of="load.fame") == [
        ("long ago", AT + DAY + HOUR, least + 1, 0.0, None),
        ("at the bound", AT + HOUR, least, 0.0, None),
        ("five times", AT + DAY, least, 200.0, 5.0),
    ]


END = AT + DAY + HOUR


def forecast(frames: Frames, rows: list[dict[str, Any]], hours: list[dict[str, Any]], **limits: float) -> list[Row]:
    named = {name.replace("_", "-"): limit for name, limit in limits.items()}
    by_hour, domain = frames.table("load", "rp_hours", *rows), frames.table("load", "hours", *hours)
    return ordered(load.forecast(by_hour, domain, "UTC", named), of="load.forecast")


def domain_hour(after: timedelta, **more: Any) -> dict[str, Any]:
    return {"hour": AT + after, "day": TODAY + after} | more


def test_what_grows_is_forecast_and_what_is_reached_comes_first(frames: Frames) -> None:
    rows = [
        hourly("grows", events_in=3_600),
        hourly("grows", HOUR, events_in=1_800),  # not the day's busiest hour
        hourly("grows", DAY, events_in=7_200),
        *(hourly("was higher", n * DAY, events_in=rate * 3_600) for n, rate in ((-1, 1), (0, 4), (1, 3))),
        *(hourly("stands still", after, events_in=3_600) for after in (timedelta(0), DAY)),
        *(hourly("at its limit", after, events_in=12 * 3_600) for after in (timedelta(0), DAY)),
        hourly("shrinks", events_in=7_200),
        hourly("shrinks", DAY, events_in=3_600),
        hourly("on one day", DAY, events_in=3_600),
        hourly("", events_in=1),
        hourly("", DAY, events_in=3_600),
    ]
    hours = [domain_hour(timedelta(0), rps_made=5, bytes_in=3_600), domain_hour(DAY, rps_made=3, bytes_in=7_200)]
    limits = {"rp_publish_events": 12.0, "domain_publish_bytes": 1e9, "domain_rps": 40.0, "domain_rps_used": 10.0}
    assert forecast(frames, rows, hours, **limits) == [
        ("rp-publish-events", "at its limit", "events/s", 12.0, 0.0, 12.0, 0.0, END),
        ("rp-publish-events", "was higher", "events/s", 3.0, 1.0, 12.0, 9.0, END + 9 * DAY),
        ("domain-rps", "", "rendezvous points", 10.0, 3.0, 40.0, 10.0, END + 10 * DAY),
        ("rp-publish-events", "grows", "events/s", 2.0, 1.0, 12.0, 10.0, END + 10 * DAY),
        ("domain-publish-bytes", "", "bytes/s", 2.0, 1.0, 1e9, 1e9 - 2, None),
    ]


def test_what_goes_up_and_down_alike_does_not_grow(frames: Frames) -> None:
    """The line through these peaks is level, but its slope in floating point is 3e-15 events a second and day."""
    peaks = (643_486, 702_977, 702_977, 643_486)
    rows = [hourly("level", number * DAY, events_in=peak) for number, peak in enumerate(peaks)]
    hours = [domain_hour(number * DAY, events_in=peak) for number, peak in enumerate(peaks)]
    assert forecast(frames, rows, hours, rp_publish_events=1e6, domain_publish_events=1e6) == []


def test_without_limits_nothing_is_forecast(frames: Frames) -> None:
    rows, hours = [hourly("rp1", events_in=1)], [domain_hour(timedelta(0))]
    assert forecast(frames, rows, hours) == []
    assert forecast(frames, rows, hours, domain_rps=1.0) == [], "how many there are is not given"
    assert forecast(frames, rows, hours, of_something_else=1.0) == []


def test_no_records_make_empty_tables(frames: Frames) -> None:
    by_hour, hours = frames.table("load", "rp_hours"), frames.table("load", "hours")
    of_rps, of_hours = frames.table("load", "rp_histogram"), frames.table("load", "hour_histogram")
    histogram = frames.table("load", "histogram")
    limits = {"rp-publish-events": 1.0, "domain-rps": 1.0, "domain-rps-used": 1.0}
    for name, frame in {
        "rp_hours": load.rp_hours(frames.records(load.TRAFFIC_COLUMNS)),
        "rp_histogram": load.rp_histogram(frames.records(load.RP_HISTOGRAM_COLUMNS)),
        "hour_histogram": load.hour_histogram(frames.records(load.HOUR_HISTOGRAM_COLUMNS)),
        "rps": load.rps(by_hour, of_rps, "UTC"),
        "hours": load.hours(by_hour, of_hours, "UTC"),
        "days": load.days(hours),
        "histogram": load.histogram(of_hours),
        "latency": load.latencies(histogram),
        "fame": load.fame(by_hour),
        "forecast": load.forecast(by_hour, hours, "UTC", limits),
    }.items():
        assert ordered(frame, of=f"load.{name}") == []
