"""Requests of peers: silences, backlogs after them, failures.

Records state when a peer's requests arrived and how large they were, not when its events were published. So lag is
bounded, not measured: events that arrive from a peer after a silence may have waited as long as that; and what arrives
within the first minute after one is its backlog.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from spark.transforms import latency
from spark.transforms.common import hour_of, total

COLUMNS = (
    "time",
    "gateway",
    "number",
    "operation",
    "outcome",
    "reason",
    "peer",
    "events",
    "bytes_in",
    "bytes_out",
    "latency_us",
    "count",
)
SILENCE_S = 60  # idle peers send hellos and exchanges more often
BACKLOG_S = 60
_US = 1_000_000


def requests(records: DataFrame) -> DataFrame:
    """Return the requests of other domains."""
    return records.where(F.col("operation").startswith("federation.") & (F.col("peer") != ""))


def peers(asked: DataFrame, end_us: int | None) -> DataFrame:
    """Return a row for each peer, from `requests`.

    Args:
        end_us: the period's end, microseconds since 1970; None: the last request of all.
    """
    last = F.lit(end_us) if end_us is not None else F.col("last_us")
    counted = asked.groupBy("peer").agg(
        F.sum("count").alias("operations"),
        total("count", F.col("outcome") == "refused").alias("refused"),
        total("count", F.col("outcome") == "failed").alias("failed"),
        *(total(name) for name in ("events", "bytes_in", "bytes_out")),
        F.min("time").alias("first_seen"),
        F.max("time").alias("last_seen"),
        F.max(F.when(F.col("outcome") == "ok", F.unix_micros("time"))).alias("good_us"),
    )
    latest = asked.agg(F.max(F.unix_micros("time")).alias("last_us"))
    rows = counted.crossJoin(latest).withColumn("silent_s", (last - F.col("good_us")) / F.lit(float(_US)))
    good = latency.with_bucket(asked.where(F.col("outcome") == "ok"))
    buckets = good.select("peer", "bucket", F.col("count").alias("operations"))
    timed = latency.quantiles(buckets.where(F.col("bucket") != latency.NONE), ["peer"], ["p50", "p99"])
    nothing: dict[str, bool | float | int | str] = {"backlogs": 0, "backlog_bytes_max": 0}
    return rows.join(_silences(asked), "peer", "left").join(timed, "peer", "left").fillna(nothing).orderBy("peer")


def peer_hours(asked: DataFrame) -> DataFrame:
    """Return a row for each peer and hour."""
    return (
        asked.withColumn("hour", hour_of())
        .groupBy("peer", "hour")
        .agg(
            F.sum("count").alias("operations"),
            total("count", F.col("outcome") == "refused").alias("refused"),
            total("count", F.col("outcome") == "failed").alias("failed"),
            *(total(name) for name in ("events", "bytes_in", "bytes_out")),
        )
    )


def failures(asked: DataFrame) -> DataFrame:
    """Return a row for each peer, operation and reason of refusals and failures."""
    bad = asked.where(F.col("outcome") != "ok").groupBy("peer", "operation", "outcome", "reason")
    counted = bad.agg(
        F.sum("count").alias("operations"), F.min("time").alias("first_seen"), F.max("time").alias("last_seen")
    )
    return counted.orderBy(F.desc("operations"), "peer", "operation", "reason")


def _silences(asked: DataFrame) -> DataFrame:
    good = asked.where(F.col("outcome") == "ok").withColumn("at", F.unix_micros("time"))
    order = Window.partitionBy("peer").orderBy("at", "gateway", "number")
    gap = F.col("at") - F.lag("at").over(order)
    back = F.when(F.col("gap") >= SILENCE_S * _US, F.col("at"))
    marked = good.withColumn("gap", gap).withColumn("back", F.last(back, ignorenulls=True).over(order))
    soon = F.col("at") < F.col("back") + BACKLOG_S * _US
    bursts = marked.where(soon).groupBy("peer", "back").agg(F.sum("bytes_in").alias("bytes"))
    backlog = bursts.groupBy("peer").agg(F.count(F.lit(1)).alias("backlogs"), F.max("bytes").alias("backlog_bytes_max"))
    longest = marked.groupBy("peer").agg((F.max("gap") / F.lit(float(_US))).alias("silence_s_max"))
    return longest.join(backlog, "peer", "left")
