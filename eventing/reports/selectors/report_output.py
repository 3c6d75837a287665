"""Output of report runs: the summary, and the tables in pages, as CSV or as Parquet.

The files are Spark's (docs/reports.md); they are read with pyarrow, a batch at a time, without Spark and without Java.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO, Any

from eventing.conf import config
from eventing.core.errors import Gone, InvalidCursor, NotFound
from eventing.reports.models import ReportRun
from eventing.reports.rules.runs import ReportRunState
from eventing.sql.pages import Page, cursor_of, key_of
from spark.locations import Location, StoredFile
from spark.report import plain
from spark.writing import REPORT

BATCH_ROWS = 5_000
"""Rows in memory at a time: a few MiB."""
CHUNK_BYTES = 256 * 1024
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of a text that spreadsheets take for a formula; strangers may have chosen the text (OWASP, CSV
injection).
"""


def reports_place() -> Location:
    """Return the folder of all reports."""
    return Location(config().reports_place)


def report_document(row: ReportRun) -> dict[str, Any] | None:
    """Return the summary (report.json); None for a run without one. Raises OSError."""
    if row.state != ReportRunState.DONE or not row.output:
        return None
    place = reports_place()
    found = place.read_json(place.path(row.output, REPORT))
    return found if isinstance(found, dict) else None


class ReportTable:
    """A table of a run that is done.

    Raises:
        NotFound: the run is not done, or has no such table.
        Gone: a later run superseded it, or its files have been deleted.
    """

    def __init__(self, row: ReportRun, name: str) -> None:
        if row.state == ReportRunState.SUPERSEDED:
            raise Gone("A later run of the same report superseded this one.")
        if row.state != ReportRunState.DONE:
            raise NotFound(f"The run is {row.state}: it has no tables.")
        document = report_document(row)
        if document is None:
            raise Gone("The output of this run has been deleted.")
        found = document.get("tables", {}).get(name)
        if found is None:
            known = ", ".join(sorted(document.get("tables", {})))
            raise NotFound(f"This report has no such table. Its tables: {known}.")
        self.name, self.rows, self.about = name, int(found["rows"]), str(found["about"])
        self.columns: list[dict[str, Any]] = found["columns"]
        self._place = reports_place()
        self._folder = self._place.path(row.output, name)

    def page(self, cursor: str | None, limit: int) -> Page[list[Any]]:
        """Return `limit` rows in the table's order, after those of the previous page. Raises InvalidCursor."""
        start = 0
        if cursor is not None:
            key = key_of("rows", cursor)
            if not (key.isascii() and key.isdigit() and len(key) < 16):
                raise InvalidCursor("Use `next` of the previous page, with the same table.")
            start = int(key)
        found: list[list[Any]] = []
        for batch in self._batches(start, limit):
            rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            found += [[plain(value) for value in row] for row in rows]
        more = start + len(found) < self.rows and bool(found)
        return Page(found, cursor_of("rows", str(start + len(found))) if more else None)

    def csv(self) -> Iterator[bytes]:
        """Yield all rows, after a line with the columns' names. A text that a spreadsheet would compute is prefixed
        with '.
        """
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow([column["name"] for column in self.columns])
        for batch in self._batches(0, self.rows):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                writer.writerow([_cell(value) for value in row])
            yield text.getvalue().encode("utf-8", "replace")
            text.seek(0)
            text.truncate()
        yield text.getvalue().encode()

    def parquet(self) -> Iterator[bytes]:
        """Yield all rows as one Parquet file."""
        files = self._files()
        if len(files) == 1:
            with self._place.filesystem.open_input_file(files[0].path) as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield bytes(chunk)
            return
        with TemporaryFile() as joined:
            self._join(files, joined)
            joined.seek(0)
            while chunk := joined.read(CHUNK_BYTES):
                yield chunk

    def _files(self) -> list[StoredFile]:
        return [entry for entry in self._place.entries(self._folder) if entry.name.endswith(".parquet")]

    def _batches(self, start: int, count: int) -> Iterator[Any]:
        """Yield `count` rows from `start` on, in batches of the table's columns; earlier row groups are skipped."""
        import pyarrow.parquet as pq

        names = [column["name"] for column in self.columns]
        for entry in self._files():
            if count <= 0:
                return
            with self._place.filesystem.open_input_file(entry.path) as stream:
                file = pq.ParquetFile(stream)
                for number in range(file.metadata.num_row_groups):
                    rows = file.metadata.row_group(number).num_rows
                    if start >= rows:
                        start -= rows
                        continue
                    size = min(BATCH_ROWS, start + count)
                    for batch in file.iter_batches(size, row_groups=[number], columns=names, use_threads=False):
                        if start >= batch.num_rows:
                            start -= batch.num_rows
                            continue
                        some = batch.slice(start, count)
                        start, count = 0, count - some.num_rows
                        yield some.select(names)
                        if count <= 0:
                            return

    def _join(self, files: list[StoredFile], to: IO[bytes]) -> None:
        import pyarrow.parquet as pq

        writer = None
        for entry in files:
            with self._place.filesystem.open_input_file(entry.path) as stream:
                file = pq.ParquetFile(stream)
                writer = writer or pq.ParquetWriter(to, file.schema_arrow, compression="zstd")
                for batch in file.iter_batches(BATCH_ROWS, use_threads=False):
                    writer.write_batch(batch)
        if writer is not None:
            writer.close()


def _cell(value: Any) -> Any:
    value = plain(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
