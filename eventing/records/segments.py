"""Segments: the records of a spool as Parquet files, one for each hour of record time.

`ROOT/date=YYYY-MM-DD/hour=HH/GATEWAY-SEQUENCE.parquet`, where GATEWAY consists of host, start and a random part. A file
is written under a temporary name in `ROOT/_spool/`, fsynced and renamed, or copied to an object store, so readers find complete files only. A
segment's name follows from its spool's: a gateway that is killed between the rename and the removal of the spool makes
the same file again at its next start, in place of the first.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eventing.records import encoding, schema
from eventing.records.object_store import upload
from eventing.records.rows import DELIVER
from eventing.records.spool import FOLDER, FOLDER_MODE, SUFFIX, Leftover

HOUR_US = 3_600_000_000
NAME = re.compile(r"[a-z0-9]{1,32}-[0-9]{8}t[0-9]{6}z-[a-z2-7]{8}-[0-9]{6,12}\.parquet")
_TEMPORARY = ".tmp"
_SUMMED = (
    "time",
    "gateway",
    "operation",
    "outcome",
    "reason",
    "principal",
    "issuer",
    "peer",
    "client",
    "session",
    "rp",
)
log = logging.getLogger(__name__)


def gateway_id(host: str, started_at: float, random: str) -> str:
    """Make the name of one life of a gateway, for file names and records: HOST-STARTED-RANDOM, lower case.

    Args:
        host: the machine's name; only letters and digits are used.
        started_at: Unix seconds.
        random: 8 characters of base32.
    """
    plain = re.sub(r"[^a-z0-9]", "", host.lower())[:32] or "gateway"
    return f"{plain}-{datetime.fromtimestamp(started_at, UTC):%Y%m%dt%H%M%Sz}-{random}"


def seal(root: Path, left: Leftover, url: str = "") -> list[Path]:
    """Make segments of a spool and remove it. A malformed spool is set aside.

    Args:
        root: local folder of the records.
        url: object store that has the segments; empty: `root` has them.

    Returns:
        the segments, by their paths in `root`, or below `url`.

    Raises:
        OSError: the disk or the store refuses; the spool stays.
    """
    try:
        table = _records(left)
    except (ValueError, KeyError) as error:  # pyarrow's errors are ValueErrors
        log.error("%s cannot be read and is set aside: %s", left.path, error)
        left.set_aside()
        return []
    made = []
    for begin_us, part in _by_hour(table):
        made.append(_write(root, left.path.stem, begin_us, part, url))
    left.remove()
    return made


def recover(root: Path, url: str = "") -> list[Path]:
    """Make segments of killed gateways' spools, and remove their half-written files. Arguments, result and errors as for `seal`."""
    folder = root / FOLDER
    made: list[Path] = []
    if not folder.is_dir():
        return made
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        left = Leftover.take(path)
        if left is not None:
            try:
                made += seal(root, left, url)
            finally:
                left.close()
    for path in folder.glob(f"*{_TEMPORARY}"):
        if not (
            folder / (path.name.partition(".")[0] + SUFFIX)
        ).exists():  # else the holder of that spool writes the segment
            path.unlink(missing_ok=True)
    return made


def _records(left: Leftover) -> Any:
    """Collect all records of a spool, deliveries summed per minute; None if there are none."""
    import pyarrow as pa

    tables = [encoding.load(frame) for frame in left.frames()]
    return _summed(pa.concat_tables(tables)) if tables else None


def _summed(table: Any) -> Any:
    """Sum the delivery counts of `table` to one record per minute, RP, principal and kind of client."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counted = pc.equal(table["operation"], encoding.text(DELIVER))
    deliveries = table.filter(counted)
    if deliveries.num_rows < 2:
        return table
    sums = [("number", "min"), ("sessions", "max"), ("count", "min")]
    sums += [(name, "sum") for name in ("events", "bytes_in", "bytes_out", "latency_us")]
    grouped = deliveries.group_by(list(_SUMMED), use_threads=False).aggregate(sums)
    grouped = grouped.rename_columns([name.removesuffix(f"_{how}") for name, how in _renamed(grouped, sums)])
    grouped = grouped.select(table.column_names).cast(table.schema)
    return pa.concat_tables([table.filter(pc.invert(counted)), grouped])


def _renamed(grouped: Any, sums: list[tuple[str, str]]) -> list[tuple[str, str]]:
    hows = {f"{name}_{how}": how for name, how in sums}
    return [(name, hows.get(name, "")) for name in grouped.column_names]


def _by_hour(table: Any) -> list[tuple[int, Any]]:
    """Split `table` by the hour of its time: start of the hour (microseconds) and records."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if table is None:
        return []
    hours = pc.divide(table["time"].cast(pa.int64()), encoding.integer(HOUR_US))
    different = hours.unique()
    if len(different) == 1:
        return [(different[0].as_py() * HOUR_US, table)]
    return [(hour.as_py() * HOUR_US, table.filter(pc.equal(hours, hour))) for hour in different]


def _write(root: Path, stem: str, begin_us: int, table: Any, url: str) -> Path:
    hour = datetime.fromtimestamp(begin_us // 1_000_000, UTC)
    temporary = root / FOLDER / f"{stem}.{hour:%Y%m%d%H}{_TEMPORARY}"
    name = Path(f"date={hour:%Y-%m-%d}", f"hour={hour:%H}", f"{stem}.parquet")
    try:
        _write_parquet(temporary, table)
        if url:
            upload(temporary, url, name.as_posix())
            temporary.unlink()
            return name
        return _put_in_place(temporary, root, name)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _write_parquet(path: Path, table: Any) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(
        path,
        table.schema,
        compression="zstd",
        use_dictionary=list(schema.ENCODED),
        column_encoding={"time": "DELTA_BINARY_PACKED", "number": "DELTA_BINARY_PACKED"},
        store_schema=False,
        write_page_checksum=True,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({schema.VERSION_KEY: str(schema.VERSION)})


def _put_in_place(temporary: Path, root: Path, name: Path) -> Path:
    """Rename a complete file to its place below `root`, so that it is there after a power cut. Returns its path."""
    final = root / name
    hour_folder = final.parent
    fresh = [folder.parent for folder in (hour_folder.parent, hour_folder) if not folder.exists()]
    hour_folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    _sync(temporary)
    temporary.rename(final)
    for folder in (hour_folder, *reversed(fresh)):
        _sync(folder)
    return final


def _sync(path: Path) -> None:
    """Sync a file, or a folder's entries, to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
