"""Use by principal, refusals and anomalies.

Records are read three times: into `usage`, `activity` and `hours`, each time only the columns needed. All other tables
are sums of the first two. Keeping operations apart by hour for every principal would make `activity` a third of the
records.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from spark.transforms.common import HOUR_S, day_of, hour_of, total

USAGE_COLUMNS = (
    "time",
    "operation",
    "outcome",
    "reason",
    "principal",
    "issuer",
    "peer",
    "client",
    "rp",
    "events",
    "bytes_in",
    "bytes_out",
    "count",
)
_SUMMED = ("events", "bytes_in", "bytes_out", "count")
ACTIVITY_COLUMNS = ("time", "outcome", "principal", "issuer", "peer", *_SUMMED)
HOURS_COLUMNS = ("time", "operation", "outcome", *_SUMMED)
SEEN_COLUMNS = ("time", "principal", "issuer", "peer")

BURST_REFUSALS_MIN = 100  # in an hour; fewer are everyday mistakes
BURST_RATIO = 10  # by the mean hour of the day before
BURST_BEFORE_H = 24
DORMANT_DAYS = 14
NEW_AFTER_S = 24 * HOUR_S  # without a look-back: nothing counts as new within a day of the first record
_SECONDS_OF_DAY = 86_400


def usage(records: DataFrame) -> DataFrame:
    """Return every combination of principal, operation, RP and outcome, with its counts."""
    return records.groupBy("principal", "issuer", "peer", "client", "operation", "rp", "outcome", "reason").agg(
        F.sum("count").alias("operations"),
        F.sum("events").alias("events"),
        F.sum("bytes_in").alias("bytes_in"),
        F.sum("bytes_out").alias("bytes_out"),
        F.min("time").alias("first_seen"),
        F.max("time").alias("last_seen"),
    )


def activity(records: DataFrame, zone: str) -> DataFrame:
    """Return the active principals and peers of each hour."""
    return _hourly(records, zone, "principal", "issuer", "peer")


def hours(records: DataFrame, zone: str) -> DataFrame:
    """Return a row for each hour and operation."""
    return _hourly(records, zone, "operation")


def principals(used: DataFrame) -> DataFrame:
    """Return a row for each principal."""
    return used.groupBy("principal", "issuer").agg(*_counts(), _different("rp").alias("rps"), *_seen())


def issuers(used: DataFrame, domain: str) -> DataFrame:
    """Return a row for each issuer; `domain` is the one that is not foreign."""
    return (
        used.groupBy("issuer")
        .agg(F.countDistinct("principal").alias("principals"), *_counts(), *_seen())
        .withColumn("foreign", _is_foreign(domain))
    )


def peers(used: DataFrame) -> DataFrame:
    """Return a row for each peer domain."""
    return used.where(F.col("peer") != "").groupBy("peer").agg(*_counts(), *_seen())


def operations(used: DataFrame) -> DataFrame:
    """Return a row for each operation and kind of client."""
    return used.groupBy("operation", "client").agg(*_counts(), *_seen())


def rps(used: DataFrame) -> DataFrame:
    """Return a row for each rendezvous point."""
    return used.groupBy("rp").agg(F.countDistinct("principal").alias("principals"), *_counts(), *_seen())


def refusals(used: DataFrame) -> DataFrame:
    """Return a row for each reason, operation and principal of refusals and failures."""
    bad = used.where(F.col("outcome") != "ok")
    return bad.groupBy("outcome", "reason", "operation", "principal", "issuer", "peer").agg(
        total("operations"), *_seen()
    )


def last_seen(records: DataFrame) -> DataFrame:
    """Return the last activity in the records of a look-back: principal, issuer, peer, last."""
    return records.groupBy("principal", "issuer", "peer").agg(F.max(hour_of()).alias("last"))


def anomalies(active: DataFrame, before: DataFrame | None, domain: str) -> DataFrame:
    """Return new foreign issuers and peers, bursts of refusals, dormant principals that are active again.

    Args:
        before: `last_seen` of the look-back; None or empty if there is none.
    """
    elsewhere = active.where(_is_foreign(domain))
    found = _new(active, elsewhere, "issuer", before, "new-foreign-issuer")
    found = found.unionByName(_new(active, active.where(F.col("peer") != ""), "peer", before, "new-peer"))
    return (
        found.unionByName(_bursts(active))
        .unionByName(_awake(active, before))
        .orderBy(F.desc("at"), "kind", "subject", "issuer")
    )


def _hourly(records: DataFrame, zone: str, *keys: str) -> DataFrame:
    grouped = records.withColumn("hour", hour_of()).groupBy("hour", *keys)
    counted = grouped.agg(
        F.sum("count").alias("operations"),
        _sum_if("refused", "count"),
        _sum_if("failed", "count"),
        *(F.sum(name).alias(name) for name in ("events", "bytes_in", "bytes_out")),
    )
    return counted.withColumn("day", day_of(zone))


def _new(active: DataFrame, candidates: DataFrame, name: str, before: DataFrame | None, kind: str) -> DataFrame:
    seen = candidates.groupBy(name).agg(F.min("hour").alias("at"), F.sum("operations").alias("value"))
    begin = active.agg(F.min("hour").alias("begin"))
    late = F.unix_timestamp("at") - F.unix_timestamp("begin") >= NEW_AFTER_S
    if before is None:
        fresh = seen.crossJoin(begin).where(late)
    else:
        any_before = before.agg(F.count(F.lit(1)).alias("known"))
        strange = seen.join(before.select(name).distinct(), name, "left_anti")
        fresh = strange.crossJoin(begin).crossJoin(any_before).where((F.col("known") > 0) | late)
    issuer = F.col(name) if name == "issuer" else F.lit("")
    return _anomaly(fresh, kind, F.col(name), issuer, F.lit(None))


def _bursts(active: DataFrame) -> DataFrame:
    hourly = active.where(F.col("refused") > 0).groupBy("principal", "issuer", "hour").agg(total("refused"))
    number = (F.unix_timestamp("hour") / HOUR_S).cast("bigint")
    past = Window.partitionBy("principal", "issuer").orderBy("number").rangeBetween(-BURST_BEFORE_H, -1)
    measured = hourly.withColumn("number", number).withColumn(
        "usual", F.coalesce(F.sum("refused").over(past), F.lit(0)) / F.lit(BURST_BEFORE_H)
    )
    sudden = measured.where(
        (F.col("refused") >= BURST_REFUSALS_MIN) & (F.col("refused") >= BURST_RATIO * F.col("usual"))
    )
    fresh = sudden.select("principal", "issuer", "usual", F.col("hour").alias("at"), F.col("refused").alias("value"))
    return _anomaly(fresh, "refusal-burst", F.col("principal"), F.col("issuer"), F.col("usual"))


def _awake(active: DataFrame, before: DataFrame | None) -> DataFrame:
    seen = active.where(F.col("principal") != "").select("principal", "issuer", "hour").distinct()
    if before is not None:
        known = before.where(F.col("principal") != "").groupBy("principal", "issuer").agg(F.max("last").alias("hour"))
        seen = seen.unionByName(known)
    order = Window.partitionBy("principal", "issuer").orderBy("hour")
    silence = (F.unix_timestamp("hour") - F.unix_timestamp(F.lag("hour").over(order))) / F.lit(_SECONDS_OF_DAY)
    awake = seen.withColumn("value", silence).where(F.col("value") >= DORMANT_DAYS).withColumnRenamed("hour", "at")
    return _anomaly(awake, "dormant-awake", F.col("principal"), F.col("issuer"), F.lit(None))


def _anomaly(found: DataFrame, kind: str, subject: Column, issuer: Column, usual: Column) -> DataFrame:
    return found.select(
        F.lit(kind).alias("kind"),
        subject.alias("subject"),
        issuer.alias("issuer"),
        F.col("at"),
        F.col("value").cast("double").alias("value"),
        usual.cast("double").alias("usual"),
    )


def _is_foreign(domain: str) -> Column:
    return ~F.col("issuer").isin("", domain)


def _sum_if(outcome: str, name: str) -> Column:
    return total(name, F.col("outcome") == outcome).alias(outcome)


def _counts() -> list[Column]:
    summed = [total(name) for name in ("operations", "events", "bytes_in", "bytes_out")]
    return [*summed, _sum_if("refused", "operations"), _sum_if("failed", "operations")]


def _seen() -> list[Column]:
    return [F.min("first_seen").alias("first_seen"), F.max("last_seen").alias("last_seen")]


def _different(name: str) -> Column:
    """Return the number of distinct values, the empty one not counted."""
    return F.countDistinct(F.when(F.col(name) != "", F.col(name)))
