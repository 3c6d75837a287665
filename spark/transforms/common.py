"""Expressions shared by several reports."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

HOUR_S = 3600
_HOUR_US = HOUR_S * 1_000_000


def hour_of(time: str = "time") -> Column:
    """Return the begin of the hour (UTC) of a time, in integers."""
    return F.timestamp_micros(F.unix_micros(time) - F.pmod(F.unix_micros(time), F.lit(_HOUR_US)))


def day_of(zone: str, hour: str = "hour") -> Column:
    """Return the day of `zone` of an instant; a day may have 23 or 25 hours."""
    return F.to_date(F.from_utc_timestamp(F.col(hour), zone))


def total(name: str, where: Column | None = None) -> Column:
    """Return the sum of a column where a condition holds, 0 if it never does; under the column's own name."""
    value = F.col(name) if where is None else F.when(where, F.col(name)).otherwise(F.lit(0))
    return F.coalesce(F.sum(value), F.lit(0)).alias(name)


def events_of(*operations: str) -> Column:
    """Return whether a record is of one of these operations, and successful."""
    return F.col("operation").isin(*operations) & (F.col("outcome") == "ok")
