"""Compaction: the small segments of an hour joined to one, with exactly the same records, while gateways write.

The last hour is left alone, as gateways still write it. The new segment is complete and in place, under a name that
readers and the gateway's retention accept, before the first of its sources is removed. A reader meanwhile, or after a
crash between the two, sees records twice and drops the second by (gateway, number), as every report does; the next
compaction joins them again. An unreadable segment stays in place and is named in the report.

This needs no Spark and no Java: an hour is a stream from files to a file, of which one batch is in memory.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from spark import reading, report, schemas
from spark.jobs.running import JobRequest
from spark.locations import Location
from spark.periods import HOUR
from spark.problems import JobProblem
from spark.progress import ProgressReporter
from spark.reading import Segment, Skipped
from spark.writing import JobRun

LEAVE = timedelta(hours=1)
"""Time after an hour's end until its segments may be joined."""
LARGE_BYTES = 128 * 2**20
"""Bytes of a segment that is not joined any more: the gain is too small for the copying."""
GROUP_ROWS = 1_000_000
COMPARED_MAX = 20_000_000
"""Records of one hour that are checked for duplicates, at some 60 bytes of memory each; an hour with more is not
joined.
"""
WORK = "_joining"
"""Folder in which segments are first written; readers skip names that begin with _."""


@dataclass(frozen=True, slots=True)
class Joined:
    """One hour's segments joined."""

    hour: datetime
    segments: int
    records: int
    duplicates: int
    bytes_before: int
    bytes_after: int


def run(request: JobRequest, progress: ProgressReporter, now: datetime | None = None) -> dict[str, Any]:
    """Join the segments of all hours that allow it; return the report.

    Args:
        now: for tests; None: the clock's.

    Raises:
        OSError: the disk is full, or may not be written.
    """
    began = time.monotonic()
    job = JobRun.begin(request.output, "compaction")
    try:
        return _run(job, request, progress, now or datetime.now(UTC), began)
    except BaseException:
        with suppress(Exception):  # the first error is the one to report
            job.abandon()
        raise


def _run(job: JobRun, request: JobRequest, progress: ProgressReporter, now: datetime, began: float) -> dict[str, Any]:
    given = reading.inspect(
        request.input, request.period, lambda d, t: progress.say("compaction", "inspect the segments", d, t)
    )
    hours = candidates(given, now)
    done: list[Joined] = []
    for number, (hour, segments) in enumerate(hours):
        progress.say("compaction", "join", number, len(hours))
        made = join(request.input, hour, segments, given.skipped)
        if made is not None:
            done.append(made)
    progress.say("compaction", "join", len(hours), len(hours))
    _write(job, done)
    summary = report.Summary(job)
    summary.number("hours", len(done), "hours", "Hours whose segments were joined.")
    summary.number("segments_before", sum(one.segments for one in done), "files", "Segments joined and removed.")
    summary.number("records", sum(one.records for one in done), "records", "Records in the new segments.")
    summary.number("duplicates", sum(one.duplicates for one in done), "records", "Duplicate records, dropped.")
    summary.number("bytes_before", sum(one.bytes_before for one in done), "bytes", "Bytes of the joined segments.")
    summary.number("bytes_after", sum(one.bytes_after for one in done), "bytes", "Bytes of the new segments.")
    made_report = report.document(job, request.domain, request.period, given, 0, summary, time.monotonic() - began)
    job.commit(made_report)
    return made_report


def candidates(given: reading.Input, now: datetime) -> list[tuple[datetime, list[Segment]]]:
    """Return the hours that ended at least LEAVE ago, with their segments that are worth joining."""
    doubtful = {segment.path for segment in given.suspect}
    worth = [s for s in given.segments if s.hour + HOUR + LEAVE <= now and (s.size < LARGE_BYTES or s.path in doubtful)]
    worth.sort(key=lambda segment: (segment.hour, segment.path))
    hours = [(hour, list(some)) for hour, some in groupby(worth, key=lambda segment: segment.hour)]
    return [(hour, some) for hour, some in hours if len(some) > 1]


def join(place: Location, hour: datetime, segments: list[Segment], skipped: list[Skipped]) -> Joined | None:
    """Join the segments of one hour; None if that is not possible. Unreadable ones are added to `skipped`."""
    segments = list(segments)
    while len(segments) > 1:
        try:
            return _join(place, hour, segments)
        except FileNotFoundError:  # retention, or another compaction: the next run processes the rest
            return None
        except _Damaged as damaged:
            skipped.append(Skipped(damaged.segment.path, f"its data are damaged: {damaged}", "corrupt"))
            segments.remove(damaged.segment)
    return None


class _Damaged(Exception):
    def __init__(self, segment: Segment, reason: str) -> None:
        super().__init__(reason)
        self.segment = segment


def _join(place: Location, hour: datetime, segments: list[Segment]) -> Joined | None:
    import pyarrow.parquet as pq

    segments.sort(key=lambda segment: [(span.gateway or "", span.low) for span in segment.spans])
    expected = sum(segment.records for segment in segments)
    doubtful = reading.overlapping(segments)
    compared = [segment for segment in segments if segment.path in doubtful]
    if sum(segment.records for segment in compared) > COMPARED_MAX:
        return None
    keep = _first_of_each(place, compared)
    name = (
        f"joined-{datetime.now(UTC):%Y%m%dt%H%M%Sz}-{base64.b32encode(os.urandom(5)).decode().lower()}-000001.parquet"
    )
    folder = place.path(f"date={hour:%Y-%m-%d}", f"hour={hour:%H}")
    target = f"{folder}/{name}"
    written = place.path(WORK, name) if place.is_local else target
    if place.is_local:
        Path(written).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    records = 0
    try:
        with (
            place.filesystem.open_output_stream(written) as stream,
            pq.ParquetWriter(stream, schemas.arrow_schema(), **writer_options()) as writer,
        ):
            for gateway_rows in _groups(place, segments, keep):
                writer.write_table(gateway_rows, row_group_size=GROUP_ROWS)
                records += gateway_rows.num_rows
            writer.add_key_value_metadata(
                {
                    schemas.INPUT_VERSION_KEY.decode(): str(schemas.INPUT_VERSION),
                    schemas.JOINED_KEY.decode(): str(len(segments)),
                }
            )
        dropped = sum(len(mask) - mask.true_count for mask in keep.values())
        size = _check(place, written, expected - dropped)
        if place.is_local:
            _put(Path(written), Path(target))
    except BaseException:
        with suppress(Exception):
            place.filesystem.delete_file(written)
        raise
    for segment in segments:
        _remove(place, segment)
    return Joined(hour, len(segments), records, dropped, sum(s.size for s in segments), size)


def writer_options() -> dict[str, Any]:
    """Return the options for writing segments: as gateways write them, with checksums."""
    return {
        "compression": "zstd",
        "use_dictionary": list(schemas.ENCODED),
        "column_encoding": {"time": "DELTA_BINARY_PACKED", "number": "DELTA_BINARY_PACKED"},
        "store_schema": False,
        "write_page_checksum": True,
    }


def _first_of_each(place: Location, segments: list[Segment]) -> dict[str, Any]:
    """Return for each segment which of its records to keep, so that each (gateway, number) is kept once."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not segments:
        return {}
    keys = [_read(place, segment, ["gateway", "number"]) for segment in segments]
    table = pa.concat_tables(keys)
    table = table.append_column("row", pa.array(range(table.num_rows), pa.int64()))
    first = table.group_by(["gateway", "number"], use_threads=False).aggregate([("row", "min")])["row_min"]
    mask = pc.is_in(table["row"], value_set=first.combine_chunks()).combine_chunks()
    found, at = {}, 0
    for segment, part in zip(segments, keys, strict=True):
        found[segment.path] = mask.slice(at, part.num_rows)
        at += part.num_rows
    return found


def _read(place: Location, segment: Segment, columns: list[str]) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with place.filesystem.open_input_file(segment.path) as stream:
            return pq.ParquetFile(stream, page_checksum_verification=True).read(columns, use_threads=False)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _Damaged(segment, str(error).splitlines()[0][:200]) from None


def _groups(place: Location, segments: list[Segment], keep: dict[str, Any]) -> Iterator[Any]:
    """Yield the records as tables of one gateway each, so that footers state each gateway's range of numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = [name for name, _ in schemas.RECORD]
    waiting: list[Any] = []
    rows, gateway = 0, None
    for segment in segments:
        table = _read(place, segment, columns)
        mask = keep.get(segment.path)
        if mask is not None:
            table = table.filter(mask)
        table = table.cast(schemas.arrow_schema())
        for name in pc.unique(table["gateway"]).to_pylist():
            part = table.filter(pc.equal(table["gateway"], pa.scalar(name)))
            if waiting and (name != gateway or rows + part.num_rows > GROUP_ROWS):
                yield pa.concat_tables(waiting)
                waiting, rows = [], 0
            gateway = name
            waiting.append(part)
            rows += part.num_rows
    if waiting:
        yield pa.concat_tables(waiting)


def _check(place: Location, path: str, records: int) -> int:
    """Return the length of the new segment. Raises Problem unless it has this many records and all its pages are valid."""
    import pyarrow.parquet as pq

    with place.filesystem.open_input_file(path) as stream:
        file = pq.ParquetFile(stream, page_checksum_verification=True)
        found = sum(batch.num_rows for batch in file.iter_batches(columns=["number"], use_threads=False))
        if found != records:
            raise JobProblem(
                f"{path} has {found} records instead of {records}: the disk may be failing; nothing was removed."
            )
        return int(stream.size())


def _put(written: Path, target: Path) -> None:
    _sync(written)
    written.rename(target)
    _sync(target.parent)


def _remove(place: Location, segment: Segment) -> None:
    """Remove a joined segment, if it has not changed since it was read."""
    with suppress(FileNotFoundError):
        info = place.filesystem.get_file_info(segment.path)
        if info.size == segment.size:
            place.filesystem.delete_file(segment.path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write(job: JobRun, done: list[Joined]) -> None:
    """Write the table `hours` of the report."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"timestamp": pa.timestamp("us", tz="UTC"), "bigint": pa.int64()}
    table = schemas.table("compaction", "hours")
    schema = pa.schema([(column.name, kinds[column.type]) for column in table.columns])
    rows = [{column.name: getattr(one, column.name) for column in table.columns} for one in done]
    folder = f"{job.folder}/{table.name}"
    job.output.filesystem.create_dir(folder, recursive=True)
    with job.output.filesystem.open_output_stream(f"{folder}/part-0.parquet") as stream:
        pq.write_table(pa.Table.from_pylist(rows, schema), stream, compression="zstd")
