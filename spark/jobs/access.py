"""The access report: who used what, who was refused, what stands out."""

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
    """Make the tables and say what they say."""
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
    """When everybody was seen last before the period; None if that is not asked, or nothing was there.

    It is kept: anomalies look into it four times, and a month before an hour is far more records than the hour has.
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
        ("operations", "operations", "All that was asked."),
        ("refused", "operations", "The client's doing (4xx)."),
        ("failed", "operations", "Ours (5xx)."),
        ("events", "events", "Published, read or delivered."),
        ("bytes_in", "bytes", "Of events published and requests."),
        ("bytes_out", "bytes", "Of events read or delivered and answers."),
    ):
        summary.number(name, summary.total("operations", name), unit, about)
    summary.number("first_seen", summary.extreme("operations", "first_seen", "min"), "UTC", "Time of the first record.")
    summary.number("last_seen", summary.extreme("operations", "last_seen", "max"), "UTC", "Time of the last record.")
    people = summary.count("principals", pc.field("principal") != "")
    summary.number("principals", people, "principals", "Different ones, strangers not counted.")
    foreign = summary.count("issuers", pc.field("foreign"))
    summary.number("foreign_issuers", foreign, "issuers", "That vouch for principals from elsewhere.")
    summary.number("peers", summary.count("peers"), "domains", "That asked as peers.")
    summary.number("anomalies", summary.count("anomalies"), "anomalies", "That stand out (table `anomalies`).")
    for name, about in (
        ("principals", "Who asked most."),
        ("issuers", "Whose principals asked most."),
        ("peers", "Which peers asked most."),
        ("operations", "What was asked most."),
        ("rps", "What was asked of most."),
        ("refusals", "What did not succeed most often."),
    ):
        where = pc.field("rp") != "" if name == "rps" else None
        summary.top(name, about, name, _most(name), where=where)
    summary.top_of_sums("reasons", "Why it did not succeed.", "refusals", ("outcome", "reason"), ("operations",))
    newest: Order = [("at", "descending"), ("kind", "ascending"), ("subject", "ascending"), ("issuer", "ascending")]
    summary.top("anomalies", "What stands out, newest first.", "anomalies", newest)
    summary.serie("hours", "The domain hour by hour.", "hours", ("hour", *COUNTS))


def _most(name: str) -> Order:
    """Most operations first, then by name, so that the order is always the same."""
    keys = {
        "principals": ("principal", "issuer"),
        "issuers": ("issuer",),
        "peers": ("peer",),
        "operations": ("operation", "client"),
        "rps": ("rp",),
        "refusals": ("reason", "operation", "principal"),
    }
    return [("operations", "descending"), *((key, "ascending") for key in keys[name])]
