"""The access report: use by principal, refusals, anomalies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from spark import reading
from spark.jobs.running import Work
from spark.report import Order
from spark.transforms import access

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COUNTS = ("operations", "refused", "failed", "events", "bytes_in", "bytes_out")


def build(work: Work) -> None:
    """Make the tables and the summary."""
    request = work.request
    used = work.write("usage", access.usage(work.records(access.USAGE_COLUMNS)))
    active = work.write("activity", access.activity(work.records(access.ACTIVITY_COLUMNS), request.period.zone))
    work.derive("principals", access.principals(used))
    work.derive("issuers", access.issuers(used, request.domain))
    work.derive("peers", access.peers(used))
    work.derive("operations", access.operations(used))
    work.derive("rps", access.rps(used))
    work.derive("refusals", access.refusals(used))
    work.write("hours", access.hours(work.records(access.HOURS_COLUMNS), request.period.zone))
    before = _look_back(work)
    try:
        work.derive("anomalies", access.anomalies(active, before, request.domain))
    finally:
        if before is not None:
            before.unpersist()
    with work.step("summary"):
        _summarize(work)


def _look_back(work: Work) -> DataFrame | None:
    """Return the last activity of every principal and peer before the period; None if not requested, or without
    records.

    The result is cached: anomalies read it four times, and a month before an hour has far more records than the hour.
    """
    request = work.request
    if not request.period.bounded or not request.lookback_days:
        return None
    before_it = request.period.before(request.lookback_days)
    past = reading.inspect(request.input, before_it, thorough=work.given.thorough)
    if not past.segments:
        return None
    return access.last_seen(reading.frame(work.spark, past, access.SEEN_COLUMNS)).persist()


def _summarize(work: Work) -> None:
    summary = work.summary
    for name, unit, about in (
        ("operations", "operations", "All operations."),
        ("refused", "operations", "Refused, a client error (4xx)."),
        ("failed", "operations", "Failed, a server error (5xx)."),
        ("events", "events", "Published, read or delivered."),
        ("bytes_in", "bytes", "Bytes of published events and of requests."),
        ("bytes_out", "bytes", "Bytes of events read or delivered, and of answers."),
    ):
        summary.number(name, summary.total("operations", name), unit, about)
    summary.number("first_seen", summary.extreme("operations", "first_seen", "min"), "UTC", "Time of the first record.")
    summary.number("last_seen", summary.extreme("operations", "last_seen", "max"), "UTC", "Time of the last record.")
    people = summary.count("principals", pc.field("principal") != "")
    summary.number("principals", people, "principals", "Distinct principals, strangers not counted.")
    foreign = summary.count("issuers", pc.field("foreign"))
    summary.number("foreign_issuers", foreign, "issuers", "Issuers that vouch for foreign principals.")
    summary.number("peers", summary.count("peers"), "domains", "Peers with requests.")
    summary.number("anomalies", summary.count("anomalies"), "anomalies", "Rows of the table `anomalies`.")
    for name, about in (
        ("principals", "Principals with most operations."),
        ("issuers", "Issuers with most operations."),
        ("peers", "Peers with most operations."),
        ("operations", "Most frequent operations."),
        ("rps", "Rendezvous points with most operations."),
        ("refusals", "Most frequent refusals and failures."),
    ):
        where = pc.field("rp") != "" if name == "rps" else None
        summary.top(name, about, name, _most(name), where=where)
    summary.top_of_sums(
        "reasons", "Reasons of refusals and failures.", "refusals", ("outcome", "reason"), ("operations",)
    )
    newest: Order = [("at", "descending"), ("kind", "ascending"), ("subject", "ascending"), ("issuer", "ascending")]
    summary.top("anomalies", "Anomalies, newest first.", "anomalies", newest)
    summary.serie("hours", "The domain by hour.", "hours", ("hour", *COUNTS))


def _most(name: str) -> Order:
    """Return the order by operations, most first, then by name, so that it is always the same."""
    keys = {
        "principals": ("principal", "issuer"),
        "issuers": ("issuer",),
        "peers": ("peer",),
        "operations": ("operation", "client"),
        "rps": ("rp",),
        "refusals": ("reason", "operation", "principal"),
    }
    return [("operations", "descending"), *((key, "ascending") for key in keys[name])]
