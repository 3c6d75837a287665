"""The load report: rates, fan-out, latencies, peaks, growth, sudden fame, forecast."""

from __future__ import annotations

from datetime import timedelta

import pyarrow.compute as pc

from spark.jobs.running import Work
from spark.report import Order
from spark.transforms import load

HEAT_RPS = 20
"""Rows of the heat map in report.json: the RPs with most events."""
HEAT_HOURS = 24 * 7
HISTOGRAM_ROWS_MAX = 2_000
_SUMS = (
    ("operations", "operations", "All operations."),
    ("publishes", "operations", "Successful publishes; a batch counts once."),
    ("events_in", "events", "Published."),
    ("bytes_in", "bytes", "Bytes of published events."),
    ("deliveries", "events", "Events delivered to sessions or read from the history."),
    ("bytes_out", "bytes", "Bytes of the deliveries."),
    ("refused", "operations", "Refused, a client error (4xx)."),
    ("failed", "operations", "Failed, a server error (5xx)."),
)


def build(work: Work) -> None:
    """Make the tables and the summary."""
    zone = work.request.period.zone
    rp_hours = work.write("rp_hours", load.rp_hours(work.records(load.TRAFFIC_COLUMNS)))
    of_rps = work.write("rp_histogram", load.rp_histogram(work.records(load.RP_HISTOGRAM_COLUMNS)))
    of_hours = work.write("hour_histogram", load.hour_histogram(work.records(load.HOUR_HISTOGRAM_COLUMNS)))
    work.derive("rps", load.rps(rp_hours, of_rps, zone))
    hours = work.derive("hours", load.hours(rp_hours, of_hours, zone))
    work.derive("days", load.days(hours))
    histogram = work.derive("histogram", load.histogram(of_hours))
    work.derive("latency", load.latencies(histogram))
    work.derive("fame", load.fame(rp_hours))
    work.derive("forecast", load.forecast(rp_hours, hours, zone, work.request.limits))
    with work.step("summary"):
        _summarize(work)


def _summarize(work: Work) -> None:
    summary = work.summary
    for name, unit, about in _SUMS:
        summary.number(name, summary.total("days", name), unit, about)
    events, deliveries = summary.headline["events_in"]["value"], summary.headline["deliveries"]["value"]
    fan_out = deliveries / events if events else None
    summary.number("fan_out", fan_out, "deliveries per event", "Deliveries by events published.")
    summary.number("rps", summary.count("rps"), "rendezvous points", "Rendezvous points with operations.")
    most: Order = [("operations", "descending"), ("operation", "ascending")]
    published = summary.first("latency", most, where=pc.field("operation") == "publish")
    for name in ("p50_us", "p95_us", "p99_us"):
        value = published[0][name] if published else None
        summary.number(f"publish_{name}", value, "microseconds", "Latency of successful publishes (±6.25 %).")
    busiest: Order = [("moved", "descending"), ("hour", "ascending")]
    peak = summary.first("hours", busiest)
    summary.number(
        "peak_hour", peak[0]["hour"] if peak else None, "UTC", "Hour with most events published and delivered."
    )
    summary.number(
        "peak_events", peak[0]["moved"] if peak else 0, "events", "Events published and delivered in that hour."
    )

    hot: Order = [("moved", "descending"), ("rp", "ascending")]
    summary.top("hot", "The RPs with most events published and delivered.", "rps", hot)
    growing: Order = [("growth_per_day", "descending"), ("rp", "ascending")]
    about = "The RPs with the greatest daily growth of events."
    summary.top("growing", about, "rps", growing, where=pc.field("growth_per_day") > 0)
    sudden: Order = [("events", "descending"), ("rp", "ascending"), ("hour", "ascending")]
    summary.top("fame", "RPs with sudden fame.", "fame", sudden)
    soon: Order = [("days_left", "ascending"), ("limit", "ascending"), ("subject", "ascending")]
    summary.top("forecast", "Limits that will be reached.", "forecast", soon)
    summary.top("latency", "Latencies by operation.", "latency", most)
    buckets: Order = [("operation", "ascending"), ("bucket", "ascending")]
    summary.top("histogram", "Latencies by operation and bucket.", "histogram", buckets, rows=HISTOGRAM_ROWS_MAX)
    chart = ("hour", "publishes", "events_in", "bytes_in", "deliveries", "bytes_out", "refused", "failed", "active_rps")
    summary.serie("hours", "The domain by hour.", "hours", chart)
    summary.serie(
        "latency", "Latency of successful publishes by hour.", "hours", ("hour", "p50_us", "p95_us", "p99_us")
    )
    _heat(work, [row["rp"] for row in summary.first("rps", hot, HEAT_RPS, columns=["rp"])])


def _heat(work: Work, hot: list[str]) -> None:
    """Return the activity of the hottest RPs in each of the last HEAT_HOURS."""
    summary = work.summary
    where = pc.field("rp").isin(hot)
    last = summary.extreme("hours", "hour", "max")
    if last is not None:
        where = where & (pc.field("hour") > pc.scalar(last - timedelta(hours=HEAT_HOURS)))
    about = "The hottest RPs by hour, in the last week of the period; hours without activity are left out."
    order: Order = [("rp", "ascending"), ("hour", "ascending")]
    columns = ("rp", "hour", "events_in", "deliveries")
    summary.top("heat", about, "rp_hours", order, HEAT_RPS * HEAT_HOURS, where, columns)
