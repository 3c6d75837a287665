"""The records of a report: each once, and only those of the period."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

KEY = ("gateway", "number")
"""Records that agree in both are one record, which compaction or a crash left in two segments."""


def once(clean: DataFrame | None, suspect: DataFrame | None, columns: Sequence[str]) -> DataFrame:
    """Return every record once, with `columns` only.

    Args:
        clean: records of segments that share none with another segment; None: there are no such segments.
        suspect: records of segments that may share some, with KEY; None likewise, but not both.
    """
    parts = [] if clean is None else [clean.select(*columns)]
    if suspect is not None:
        parts.append(suspect.dropDuplicates(list(KEY)).select(*columns))
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def within(records: DataFrame, begin: datetime, end: datetime) -> DataFrame:
    """Return the records from `begin` to before `end`; folders are whole hours, but a period need not be."""
    low, high = (F.lit(int(at.timestamp()) * 1_000_000 + at.microsecond) for at in (begin, end))
    return records.where((F.unix_micros("time") >= low) & (F.unix_micros("time") < high))
