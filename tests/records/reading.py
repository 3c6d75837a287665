"""How the tests read records: as any reader would, with a fresh pyarrow dataset over the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset

from eventing.records.schema import arrow_schema

PARTITIONS = pa.schema([("date", pa.string()), ("hour", pa.int32())])


def read_records(root: Path) -> list[dict[str, Any]]:
    """All records in segments, with `date` and `hour` of their folders; every file must have the whole schema."""
    if not root.is_dir():
        return []
    dataset = pa.dataset.dataset(
        root, format="parquet", partitioning=pa.dataset.partitioning(PARTITIONS, flavor="hive")
    )
    if dataset.files:
        assert list(dataset.schema.names) == [*arrow_schema().names, "date", "hour"]
    rows: list[dict[str, Any]] = dataset.to_table().to_pylist()
    for row in rows:
        assert row["time"].strftime("%Y-%m-%d") == row["date"], row
        assert row["time"].hour == row["hour"], row
    return rows
