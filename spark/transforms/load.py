"""Load of rendezvous points and of the domain, by hour.

Records are read three times, each time only the columns needed: into sums by RP and hour, and into two histograms of
latencies, by RP and by hour. All other tables are sums of those three, whose sizes depend on RPs, hours and buckets,
not on records. A histogram by RP and hour at once would be half as long as the records of publishes (decision 29).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from spark import schemas
from spark.transforms import latency
from spark.transforms.common import HOUR_S, day_of, events_of, hour_of

TRAFFIC_COLUMNS = (
    "time",
    "operation",
    "outcome",
    "rp",
    "events",
    "bytes_in",
    "bytes_out",
    "latency_us",
    "sessions",
    "count",
)
HOUR_HISTOGRAM_COLUMNS = ("time", "operation", "outcome", "latency_us", "count")
RP_HISTOGRAM_COLUMNS = ("operation", "outcome", "rp", "latency_us", "count")
FAME_EVENTS_MIN = 1_000  # in the hour
FAME_RATIO = 5  # by the mean hour of the day before
FAME_BEFORE_H = 24
SLOPE_ROUNDED = 1e-12
"""Slope, as a share of the highest peak per day, up to which a line counts as level: rounding of floating point
(measured: 8e-17 at most in 2,000 level series; it made a limit seem to be reached in 10^16 days).
"""

_SUMS = (
    "operations",
    "publishes",
    "events_in",
    "bytes_in",
    "deliveries",
    "bytes_out",
    "moved",
    "reading_minutes",
    "joined",
    "left",
    "refused",
    "failed",
    "rps_made",
)


def rp_hours(records: DataFrame) -> DataFrame:
    """Return a row for each rendezvous point and hour; the empty RP is for records without one."""
    rows = records.withColumn("hour", hour_of()).groupBy("rp", "hour").agg(*_from_records())
    return _with_fan_out(rows).withColumn("mean_us", F.expr("spent_us / nullif(timed, 0)"))


def rp_histogram(records: DataFrame) -> DataFrame:
    """Return the latencies of successful publishes: a row for each rendezvous point and bucket."""
    published = records.where((F.col("rp") != "") & events_of("publish"))
    return _histogram(published, "rp")


def hour_histogram(records: DataFrame) -> DataFrame:
    """Return the latencies of all successful operations: a row for each hour, operation and bucket."""
    return _histogram(records.where(F.col("outcome") == "ok").withColumn("hour", hour_of()), "hour", "operation")


def rps(by_hour: DataFrame, buckets: DataFrame, zone: str) -> DataFrame:
    """Return a row for each rendezvous point, from `rp_hours` and `rp_histogram`."""
    seconds, day = F.unix_timestamp("hour"), day_of(zone)
    named = by_hour.where(F.col("rp") != "")
    span = named.agg(
        ((F.min(seconds) + F.max(seconds) + HOUR_S) / F.lit(2)).alias("middle"),
        F.min(day).alias("first_day"),
        F.datediff(F.max(day), F.min(day)).cast("double").alias("n"),
    )
    number = F.datediff(day, F.col("first_day")).cast("double")
    early = seconds < F.col("middle")
    grouped = (
        named.crossJoin(span)
        .groupBy("rp")
        .agg(
            *_from_rows(),
            F.max(F.struct(F.col("moved"), (-seconds).alias("sooner"))).alias("peak"),
            F.sum(F.when(early, F.col("moved")).otherwise(F.lit(0))).alias("one"),
            F.sum(F.when(early, F.lit(0)).otherwise(F.col("moved"))).alias("two"),
            F.sum(F.col("moved") * number).alias("weighted"),
            F.first("n").alias("n"),
        )
    )
    # Least squares over x = 0..n, all days of the period, in closed form: mean n/2, sum of squares n (n+1) (n+2) / 12.
    slope = F.expr("(weighted - moved * n / 2) / nullif(n * (n + 1) * (n + 2) / 12, 0D)")
    rows = grouped.select(
        "*",
        F.col("peak.moved").alias("peak_events"),
        F.timestamp_seconds(-F.col("peak.sooner")).alias("peak_hour"),
        F.expr("two / nullif(one, 0)").alias("growth"),
        slope.alias("growth_per_day"),
    )
    return _with_quantiles(_with_fan_out(rows), buckets, ["rp"])


def hours(by_hour: DataFrame, buckets: DataFrame, zone: str) -> DataFrame:
    """Return a row for each hour of the domain, from `rp_hours` and `hour_histogram`."""
    active = F.count(F.when(F.col("rp") != "", F.lit(1))).alias("active_rps")
    rows = by_hour.groupBy("hour").agg(active, *_from_rows())
    published = buckets.where(F.col("operation") == "publish")
    return _with_quantiles(_with_fan_out(rows), published, ["hour"]).withColumn("day", day_of(zone))


def days(by_hour: DataFrame) -> DataFrame:
    """Return a row for each day of the period's zone, from `hours`."""
    return _with_fan_out(by_hour.groupBy("day").agg(*_from_rows()))


def histogram(buckets: DataFrame) -> DataFrame:
    """Return a row for each operation and bucket, from `hour_histogram`."""
    rows = buckets.groupBy("operation", "bucket").agg(F.sum("operations").alias("operations"))
    return rows.withColumn("from_us", latency.begin()).withColumn("to_us", latency.end())


def latencies(buckets: DataFrame) -> DataFrame:
    """Return a row for each operation, from `histogram`."""
    rows = buckets.groupBy("operation").agg(F.sum("operations").alias("operations"), F.max("to_us").alias("most_us"))
    return rows.join(latency.quantiles(buckets, ["operation"], ["p50", "p90", "p95", "p99", "p999"]), "operation")


def fame(by_hour: DataFrame) -> DataFrame:
    """Return hours in which an RP had far more events than in the day before, from `rp_hours`; most famous first."""
    named = by_hour.where(F.col("rp") != "")
    moved = named.select("rp", "hour", F.col("moved").alias("events"))
    past = Window.partitionBy("rp").orderBy("number").rangeBetween(-FAME_BEFORE_H, -1)
    usual = F.coalesce(F.sum("events").over(past), F.lit(0)) / F.lit(FAME_BEFORE_H)
    measured = moved.withColumn("number", (F.unix_timestamp("hour") / HOUR_S).cast("bigint")).withColumn("usual", usual)
    # An RP's first hour of all is a beginning, not fame, if it is the period's first as well.
    begin = named.agg(F.min("hour").alias("begin"))
    sudden = (F.col("events") >= FAME_EVENTS_MIN) & (F.col("events") >= FAME_RATIO * F.col("usual"))
    found = measured.where(sudden).crossJoin(begin).where(F.col("hour") > F.col("begin"))
    return found.withColumn("ratio", F.expr("events / nullif(usual, 0D)")).orderBy(F.desc("events"), "rp", "hour")


def forecast(by_hour: DataFrame, domain_hours: DataFrame, zone: str, limits: Mapping[str, float]) -> DataFrame:
    """Forecast when limits will be reached if growth continues; soonest first.

    Args:
        by_hour: `rp_hours`.
        domain_hours: `hours`.
        limits: by name (docs/limits.md): rates `rp-publish-events`, `rp-publish-bytes`, `domain-publish-events`,
            `domain-publish-bytes`, per second; counts `domain-rps`, with the number at the period's end as
            `domain-rps-used`. Others are ignored.
    """
    parts = []
    for what in ("events", "bytes"):
        rp, domain = f"rp-publish-{what}", f"domain-publish-{what}"
        if rp in limits:
            rows = by_hour.where(F.col("rp") != "").withColumn("subject", F.col("rp"))
            parts.append(_rates(rows, f"{what}_in", rp, f"{what}/s", zone, limits[rp]))
        if domain in limits:
            rows = domain_hours.withColumn("subject", F.lit(""))
            parts.append(_rates(rows, f"{what}_in", domain, f"{what}/s", zone, limits[domain]))
    if "domain-rps" in limits and "domain-rps-used" in limits:
        parts.append(_rps_there(domain_hours, limits["domain-rps"], limits["domain-rps-used"]))
    if not parts:
        # An empty frame with its columns: rows from Python would start a transfer (measured: 2 CPU-seconds).
        columns = schemas.table("load", "forecast").columns
        return by_hour.limit(0).select(*(F.lit(None).cast(column.type).alias(column.name) for column in columns))
    found = parts[0]
    for part in parts[1:]:
        found = found.unionByName(part)
    growing = found.where((F.col("per_day") > 0) | (F.col("now") >= F.col("limit_value")))
    end = domain_hours.agg((F.max("hour") + F.expr("INTERVAL 1 HOUR")).alias("end"))
    left = F.when(F.col("now") >= F.col("limit_value"), F.lit(0.0)).otherwise(
        F.expr("(limit_value - now) / nullif(per_day, 0D)")
    )
    dated = growing.withColumn("days_left", left).crossJoin(end)
    at = F.when(F.col("days_left") < 36_525, F.timestamp_seconds(F.unix_timestamp("end") + F.col("days_left") * 86_400))
    return dated.withColumn("exhausted_at", at).orderBy("days_left", "limit", "subject")


def _rates(rows: DataFrame, source: str, name: str, unit: str, zone: str, limit: float) -> DataFrame:
    """Return the daily peaks (mean of the busiest hour, per second) of `source`, their slope, and the limit."""
    peak = (F.max(source) / F.lit(float(HOUR_S))).alias("peak")
    return _trend(rows.withColumn("day", day_of(zone)).groupBy("subject", "day").agg(peak), name, unit, limit)


def _rps_there(domain_hours: DataFrame, limit: float, there: float) -> DataFrame:
    """Return how many RPs there were at the end of each day, counting back from the present number."""
    daily = domain_hours.groupBy("day").agg(F.sum("rps_made").alias("made"))
    later = Window.orderBy(F.desc("day")).rowsBetween(Window.unboundedPreceding, -1)
    used = F.lit(there) - F.coalesce(F.sum("made").over(later), F.lit(0))
    peaks = daily.select(F.lit("").alias("subject"), "day", used.alias("peak"))
    return _trend(peaks, "domain-rps", "rendezvous points", limit)


def _trend(peaks: DataFrame, name: str, unit: str, limit: float) -> DataFrame:
    """Return the daily peaks of each subject, and their growth."""
    number = F.datediff(F.col("day"), F.to_date(F.lit("1970-01-01"))).cast("double")
    trend = peaks.groupBy("subject").agg(
        F.max_by("peak", "day").cast("double").alias("now"),
        F.max("peak").alias("most"),
        F.regr_slope(F.col("peak").cast("double"), number).alias("slope"),
    )
    steep = F.abs("slope") > SLOPE_ROUNDED * F.col("most")
    per_day = F.when(steep, F.col("slope")).otherwise(F.lit(0.0)).alias("per_day")
    known = (F.lit(name).alias("limit"), "subject", F.lit(unit).alias("unit"), "now", per_day)
    return trend.select(*known, F.lit(limit).alias("limit_value"))


def _from_records() -> list[Column]:
    """Return the columns of traffic, as sums over records."""
    published, delivered = events_of("publish"), events_of("deliver", "history")
    timed = published & (F.col("latency_us") > 0)
    created = F.when(F.col("operation") == "rp.create", F.col("count")).otherwise(-F.col("count"))
    return [
        F.sum("count").alias("operations"),
        _sum("count", published, "publishes"),
        _sum("events", published, "events_in"),
        _sum("bytes_in", published, "bytes_in"),
        _sum("events", delivered, "deliveries"),
        _sum("bytes_out", delivered, "bytes_out"),
        _sum("events", events_of("publish", "deliver", "history"), "moved"),
        _sum("sessions", events_of("deliver"), "reading_minutes"),
        F.coalesce(F.max(F.when(events_of("deliver"), F.col("sessions"))), F.lit(0)).alias("readers_max"),
        _sum("count", events_of("subscribe"), "joined"),
        _sum("count", events_of("unsubscribe"), "left"),
        _sum("count", F.col("outcome") == "refused", "refused"),
        _sum("count", F.col("outcome") == "failed", "failed"),
        F.sum(F.when(events_of("rp.create", "rp.delete"), created).otherwise(F.lit(0))).alias("rps_made"),
        F.sum(F.when(timed, F.col("latency_us") * F.col("count")).otherwise(F.lit(0))).alias("spent_us"),
        _sum("count", timed, "timed"),
        F.max(F.when(timed, F.col("latency_us"))).alias("most_us"),
    ]


def _from_rows() -> list[Column]:
    """Return the columns of traffic, as sums over rows that have them."""
    return [*(F.sum(name).alias(name) for name in _SUMS), F.max("readers_max").alias("readers_max")]


def _with_fan_out(rows: DataFrame) -> DataFrame:
    return rows.withColumn("fan_out", F.expr("deliveries / nullif(events_in, 0)"))


def _with_quantiles(rows: DataFrame, buckets: DataFrame, keys: list[str]) -> DataFrame:
    return rows.join(latency.quantiles(buckets, keys, ["p50", "p95", "p99"]), keys, "left")


def _histogram(records: DataFrame, *keys: str) -> DataFrame:
    timed = latency.with_bucket(records.where(F.col("latency_us") > 0))
    return timed.groupBy(*keys, "bucket").agg(F.sum("count").alias("operations"))


def _sum(name: str, where: Column, alias: str) -> Column:
    return F.sum(F.when(where, F.col(name)).otherwise(F.lit(0))).alias(alias)
