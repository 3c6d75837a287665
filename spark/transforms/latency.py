"""Mergeable histograms of latencies: buckets by arithmetic, quantiles from their sums.

A latency of v microseconds lies in bucket v for v < 16, else in bucket 8 s + (v >> s) with s = floor(log2 v) - 3: eight
buckets for each doubling, each an eighth as wide as its octave's begin. Buckets are exact integers, so two histograms
are merged by adding, in any order, and a program in any language counts the same. Bucket b of 16 and more has
s = b div 8 - 1, begins at (8 + b mod 8) << s and is 1 << s wide. A quantile is the middle of the bucket in which the
ceil(q n)-th smallest latency lies: at most 1/16 = 6.25 % from it, and exact below 16 microseconds.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

NONE = -1
"""The bucket of records without a latency."""
_PER_MILLE = {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p999": 999}


def with_bucket(records: DataFrame) -> DataFrame:
    """Return `records` with the `bucket` of each latency_us; NONE for 0, which means no latency.

    In three steps, so that Spark computes the logarithm once and not wherever it is used.
    """
    value = "greatest(latency_us, 8)"
    guess = f"int(floor(log2(double({value}))))"  # of doubles: may be off by one at powers of two, which the next line corrects
    shift = f"guess - 3 + CASE shiftright({value}, guess) WHEN 1 THEN 0 WHEN 0 THEN -1 ELSE 1 END"
    number = f"CASE WHEN latency_us <= 0 THEN {NONE} ELSE shift * 8 + int(shiftright(latency_us, shift)) END"
    shifted = records.withColumn("guess", F.expr(guess)).withColumn("shift", F.expr(shift))
    return shifted.withColumn("bucket", F.expr(number)).drop("guess", "shift")


def begin(number: str = "bucket") -> Column:
    """Return the lowest latency in a bucket, microseconds."""
    shift = F.greatest(F.expr(f"int({number} div 8) - 1"), F.lit(0))
    step = F.when(F.col(number) < 16, F.col(number).cast("bigint")).otherwise((F.col(number) % 8 + 8).cast("bigint"))
    return F.call_function("shiftleft", step, shift)


def end(number: str = "bucket") -> Column:
    """Return the lowest latency above a bucket, microseconds."""
    return begin(number) + F.call_function(
        "shiftleft", F.lit(1).cast("bigint"), F.greatest(F.expr(f"int({number} div 8) - 1"), F.lit(0))
    )


def middle(number: str = "bucket") -> Column:
    """Return the mean of the integer latencies in a bucket."""
    return (begin(number) + end(number) - 1) / F.lit(2.0)


def quantiles(histogram: DataFrame, keys: list[str], names: list[str]) -> DataFrame:
    """Return quantiles of histograms, a row for each combination of `keys`: columns p50_us and so on.

    Args:
        histogram: columns `keys`, bucket (none of them NONE), operations; buckets may repeat.
        names: of p50, p90, p95, p99, p999.
    """
    merged = histogram.groupBy(*keys, "bucket").agg(F.sum("operations").alias("operations"))
    up_to = Window.partitionBy(*keys).orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    everything = Window.partitionBy(*keys)
    ranked = merged.withColumn("reached", F.sum("operations").over(up_to))
    ranked = ranked.withColumn("everybody", F.sum("operations").over(everything))
    found = []
    for name in names:
        rank = F.expr(f"(everybody * {_PER_MILLE[name]} + 999) div 1000")  # ceil(q n), in integers
        found.append(F.min(F.when(F.col("reached") >= rank, F.col("bucket"))).alias(name))
    rows = ranked.groupBy(*keys).agg(*found)
    return rows.select(*keys, *(middle(name).alias(f"{name}_us") for name in names))
