"""Recommended replicas: reading from other domains, and its cost against sending each event there once.

The traffic of a replica is estimated from that of readers: an event that ten sessions of one principal read counts
once, and of several principals of one domain the one with most traffic in a minute stands for all. So it is the least
that a replica takes if all of them read the same, which readers from the live end do.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from spark.transforms.common import events_of

COLUMNS = ("time", "operation", "outcome", "principal", "issuer", "client", "rp", "events", "bytes_out", "sessions")
SAVING_BYTES_MIN = 2**20  # a replica has a cost of its own: storage, sealing, vectors
SAVING_SHARE_MIN = 0.5
READERS_MIN = 2
_MINUTE_US = 60_000_000


def readings(records: DataFrame, domain: str) -> DataFrame:
    """Return bytes and events sent to foreign principals, by RP, their domain, minute and principal."""
    read = records.where(events_of("deliver", "history") & ~F.col("issuer").isin("", domain) & (F.col("rp") != ""))
    once = F.expr("(bytes_out + greatest(sessions, 1) - 1) div greatest(sessions, 1)")
    minute = F.expr(f"unix_micros(time) div {_MINUTE_US}")
    keys = ("rp", F.col("issuer").alias("domain"), minute.alias("minute"), "principal", "client")
    return read.groupBy(*keys).agg(
        F.sum("events").alias("deliveries"), F.sum("bytes_out").alias("bytes_now"), F.sum(once).alias("once")
    )


def advice(read: DataFrame) -> DataFrame:
    """Return a row for each RP and domain, from `readings`; greatest saving first."""
    minutes = read.groupBy("rp", "domain", "minute").agg(
        F.sum("deliveries").alias("deliveries"), F.sum("bytes_now").alias("bytes_now"), F.max("once").alias("once")
    )
    summed = minutes.groupBy("rp", "domain").agg(
        F.sum("deliveries").alias("deliveries"),
        F.sum("bytes_now").alias("bytes_now"),
        F.sum("once").alias("bytes_replica"),
    )
    readers = (
        read.select("rp", "domain", "principal")
        .distinct()
        .groupBy("rp", "domain")
        .agg(F.count(F.lit(1)).alias("readers"))
    )
    saved = summed.join(readers, ["rp", "domain"]).withColumn(
        "saved_bytes", F.col("bytes_now") - F.col("bytes_replica")
    )
    worth = (
        (F.col("saved_bytes") >= SAVING_BYTES_MIN)
        & (F.col("saved_bytes") >= SAVING_SHARE_MIN * F.col("bytes_now"))
        & (F.col("readers") >= READERS_MIN)
    )
    return saved.withColumn("recommended", worth).orderBy(F.desc("saved_bytes"), "rp", "domain")


def domains(advised: DataFrame) -> DataFrame:
    """Return a row for each other domain, from `advice`."""
    return (
        advised.groupBy("domain")
        .agg(
            F.count(F.lit(1)).alias("rps"),
            F.count_if(F.col("recommended")).alias("recommended"),
            F.sum("bytes_now").alias("bytes_now"),
            F.coalesce(F.sum(F.when(F.col("recommended"), F.col("saved_bytes"))), F.lit(0)).alias("saved_bytes"),
        )
        .orderBy(F.desc("saved_bytes"), "domain")
    )
