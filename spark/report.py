"""report.json: the summary of a report, with the meaning and unit of every value in it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any, Literal

from spark import schemas
from spark.locations import StoredFile
from spark.periods import Period
from spark.reading import Input
from spark.writing import JobRun

TOP_ROWS = 20
SERIES_ROWS_MAX = 24 * 31
"""Rows of a series: a month of hours. A longer period has the last ones; the table has all."""
SKIPPED_NAMED_MAX = 100

Order = Sequence[tuple[str, Literal["ascending", "descending"]]]


class Summary:
    """A job's summary of its tables: numbers, short lists and series, read from the written tables.

    pyarrow reads them, a batch at a time: milliseconds, where a query of Spark takes a second.
    """

    def __init__(self, run: JobRun) -> None:
        self._run = run
        self.headline: dict[str, dict[str, Any]] = {}
        self.tops: dict[str, dict[str, Any]] = {}
        self.series: dict[str, dict[str, Any]] = {}

    def number(self, name: str, value: Any, unit: str, about: str) -> None:
        """Add a headline number."""
        self.headline[name] = {"value": plain(value), "unit": unit, "about": about}

    def total(self, table: str, column: str) -> int:
        """Return the sum of a column of integers."""
        import pyarrow.compute as pc

        return sum(pc.sum(batch[column]).as_py() or 0 for batch in self._batches(table, [column]))

    def extreme(self, table: str, column: str, which: str) -> Any:
        """Return the `min` or `max` of a column; None if it has no values."""
        import pyarrow.compute as pc

        found = [pc.min_max(batch[column])[which].as_py() for batch in self._batches(table, [column])]
        known = [value for value in found if value is not None]
        return (min if which == "min" else max)(known) if known else None

    def count(self, table: str, where: Any = None) -> int:
        """Return the number of rows, of those for which a pyarrow expression holds."""
        return int(self._dataset(table).count_rows(filter=where))

    def first(
        self, table: str, by: Order, rows: int = 1, where: Any = None, columns: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        """Return the first rows in an order; memory for these rows and a batch."""
        import pyarrow as pa

        names = list(columns) or [column.name for column in schemas.table(self._run.job, table).columns]
        read = list(dict.fromkeys([*names, *(name for name, _ in by)]))
        best = None
        for batch in self._batches(table, read, where):
            some = pa.Table.from_batches([batch])
            best = some if best is None else pa.concat_tables([best, some])
            if best.num_rows > 4 * rows + 10_000:
                best = best.sort_by(list(by)).slice(0, rows).combine_chunks()
        return [] if best is None else list(best.sort_by(list(by)).slice(0, rows).select(names).to_pylist())

    def top(
        self,
        name: str,
        about: str,
        table: str,
        by: Order,
        rows: int = TOP_ROWS,
        where: Any = None,
        columns: Sequence[str] = (),
    ) -> None:
        """Add a short list: the first rows of a table in an order."""
        self.tops[name] = {"about": about, **self._shown(table, self.first(table, by, rows, where, columns), columns)}

    def top_of_sums(self, name: str, about: str, table: str, keys: Sequence[str], values: Sequence[str]) -> None:
        """Add a short list: the rows of a table with the same `keys` summed, the greatest of the first value first."""
        most: Order = [(values[0], "descending"), *((key, "ascending") for key in keys)]
        summed = self._summed(table, keys, values)
        rows = [] if summed is None else summed.sort_by(most).slice(0, TOP_ROWS).to_pylist()
        self.tops[name] = {"about": about, **self._shown(table, rows, [*keys, *values])}

    def serie(self, name: str, about: str, table: str, columns: Sequence[str]) -> None:
        """Add a series: the last SERIES_ROWS_MAX rows by the first column, in its order; rows with the same one are
        summed.
        """
        key, *values = columns
        summed = self._summed(table, [key], values)
        rows = [] if summed is None else summed.sort_by(key).to_pylist()[-SERIES_ROWS_MAX:]
        self.series[name] = {"about": about, **self._shown(table, rows, columns)}

    def _summed(self, table: str, keys: Sequence[str], values: Sequence[str]) -> Any:
        """Return a pyarrow table with `keys` and the sums of `values`, None if it has no rows; memory for it and a
        batch.
        """
        import pyarrow as pa

        names, sums = [*keys, *values], [(value, "sum") for value in values]

        def added(rows: Any) -> Any:
            grouped = rows.group_by(list(keys), use_threads=False).aggregate(sums)
            return grouped.select([*keys, *(f"{value}_sum" for value in values)]).rename_columns(names)

        whole = None
        for batch in self._batches(table, names):
            # Sums are nullable in Arrow, the columns read are not: only sums can be appended to sums.
            more = added(pa.Table.from_batches([batch]))
            whole = more if whole is None else added(pa.concat_tables([whole, more]))
        return whole

    def _shown(self, table: str, rows: list[dict[str, Any]], columns: Sequence[str]) -> dict[str, Any]:
        contract = schemas.table(self._run.job, table).columns
        shown = [column for column in contract if not columns or column.name in columns]
        return {
            "columns": [{"name": column.name, "unit": column.unit, "about": column.about} for column in shown],
            "rows": [[plain(row[column.name]) for column in shown] for row in rows],
        }

    def _dataset(self, table: str) -> Any:
        import pyarrow.dataset as ds

        files = [entry.path for entry in tables_files(self._run, table)]
        return ds.dataset(files, format="parquet", filesystem=self._run.output.filesystem)

    def _batches(self, table: str, columns: Sequence[str], where: Any = None) -> Iterator[Any]:
        found = self._dataset(table)
        if len(found.files):
            yield from found.to_batches(columns=list(columns), filter=where, use_threads=False)


def document(
    run: JobRun, domain: str, period: Period, given: Input, duplicates: int, summary: Summary, took_s: float
) -> dict[str, Any]:
    """Return the content of report.json. Reads the footers of the tables for their numbers of rows."""
    return {
        "schema_version": schemas.REPORT_VERSION,
        "report": run.job,
        "run": run.name,
        "made_at": plain(datetime.now(UTC).replace(microsecond=0)),
        "took_s": round(took_s, 1),
        "domain": domain,
        "period": period_of(period),
        "input": input_of(given, duplicates),
        "headline": summary.headline,
        "tops": summary.tops,
        "series": summary.series,
        "tables": {
            table.name: {
                "about": table.about,
                "rows": rows_of(run, table),
                "columns": [asdict(c) for c in table.columns],
            }
            for table in schemas.REPORTS[run.job]
        },
    }


def period_of(period: Period) -> dict[str, Any]:
    """Return a period as in report.json; null where it is open."""
    asked = Period()
    return {
        "from": plain(period.begin) if period.begin != asked.begin else None,
        "to": plain(period.end) if period.end != asked.end else None,
        "zone": period.zone,
    }


def input_of(given: Input, duplicates: int) -> dict[str, Any]:
    """Return what was read and what was not."""
    late = [segment for segment in given.segments if segment.late]
    kinds: dict[str, int] = {}
    for one in given.skipped:
        kinds[one.kind] = kinds.get(one.kind, 0) + 1
    hours = [segment.hour for segment in given.segments]
    return {
        "schema_version": schemas.INPUT_VERSION,
        "folder": given.place.address,
        "digest": given.digest,
        "hours": {
            "first": plain(min(hours, default=None)),
            "last": plain(max(hours, default=None)),
            "count": len(set(hours)),
        },
        "segments": len(given.segments),
        "bytes": sum(segment.size for segment in given.segments),
        "records": given.records - duplicates,
        "duplicates": duplicates,
        "late_segments": len(late),
        "late_records": sum(segment.records for segment in late),
        "skipped_segments": len(given.skipped),
        "skipped_by_kind": dict(sorted(kinds.items())),
        "skipped": [
            {"segment": one.path.removeprefix(given.place.root + "/"), "kind": one.kind, "reason": one.reason}
            for one in given.skipped[:SKIPPED_NAMED_MAX]
        ],
    }


def rows_of(run: JobRun, table: schemas.TableSchema) -> int:
    """Return how many rows a table has, by the footers of its files."""
    import pyarrow.parquet as pq

    rows = 0
    for entry in tables_files(run, table.name):
        with run.output.filesystem.open_input_file(entry.path) as stream:
            rows += pq.ParquetFile(stream).metadata.num_rows
    return rows


def tables_files(run: JobRun, table: str) -> list[StoredFile]:
    """Return the files of a table that a run has written."""
    return [entry for entry in run.output.entries(f"{run.folder}/{table}") if entry.name.endswith(".parquet")]


def plain(value: Any) -> Any:
    """Return a value as JSON has it: times in ISO 8601 with Z, days as YYYY-MM-DD; NaN and infinities are null."""
    if isinstance(value, datetime):
        at = value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC)
        return at.isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
