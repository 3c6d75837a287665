"""Making a backup of a domain, running or not."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.db import DatabaseError
from psycopg import Error as PostgresError

from eventing.core.config import Config
from eventing.log.backup import DataPlaneRecords
from eventing.store.errors import RedisError
from portal.supervisor import data_folder, redis_server
from portal.supervisor.backup import archive, newest, output
from portal.supervisor.backup.archive import ArchiveWriter
from portal.supervisor.backup.contents import FORMAT, Head
from portal.supervisor.backup.database import PostgresSnapshot, sqlite_copy, sqlite_migrations, sqlite_rows
from portal.supervisor.backup.errors import BackupError
from portal.supervisor.backup.progress import BackupProgress, size
from portal.supervisor.errors import StartError

FOLDER_PREFIX = "backup-"
STORES = ("HERALD_REDIS_URL", "HERALD_DATABASE_URL")
"""Settings with addresses and passwords of this place, which no other place needs."""

_LENGTH = struct.Struct(">I")


def backup_make(
    config: Config, target: str, *, records: bool, replace: bool, progress: BackupProgress
) -> dict[str, Any]:
    """Write a backup to the file `target`, or to stdout for `-`; return what it holds.

    Args:
        records: whether access records and reports are in it.
        replace: whether a file of that name may be replaced.

    Raises BackupError.
    """
    os.umask(0o077)
    began = time.time()
    try:
        with _redis_up(config), _work_folder(config) as folder, output.opened(target, replace=replace) as file:
            found = _written(config, file, folder, records=records, progress=progress)
    except StartError as error:
        raise BackupError(str(error)) from None
    except (RedisError, DatabaseError, PostgresError) as error:
        raise BackupError(
            f"A store does not answer ({_one_line(error)}); no backup was made. Try again when herald doctor is content."
        ) from None
    except BrokenPipeError:
        raise BackupError("The pipe was closed before the backup was whole; no backup was made.") from None
    newest.note(config.data_path, began, found["bytes"])
    return {"file": target, **found}


@contextlib.contextmanager
def _redis_up(config: Config) -> Iterator[None]:
    """Have the data plane answer during the block: that of a running domain, else the embedded one, started for it."""
    if config.redis_url or data_folder.is_locked(config.data_path):
        yield
        return
    if not (config.data_path / "redis").is_dir():
        raise BackupError(
            f"There is no domain in the data folder {config.data_path}; set HERALD_DATA_DIR to the folder of one."
        )
    with data_folder.locked(config.data_path):
        data_folder.require_whole(config.data_path)
        with redis_server.running_alone(config):
            yield


@contextlib.contextmanager
def _work_folder(config: Config) -> Iterator[Path]:
    """Make a private folder for the copy of the database; remove those of backups that were killed."""
    base = config.data_path if config.data_path.is_dir() else Path(tempfile.gettempdir())
    for left in base.glob(f"{FOLDER_PREFIX}*.tmp"):
        if _abandoned(left):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, suffix=".tmp", dir=base))
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def _abandoned(folder: Path) -> bool:
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _written(
    config: Config, file: BinaryIO, folder: Path, *, records: bool, progress: BackupProgress
) -> dict[str, Any]:
    """Write all members in the order that a restore relies on: the database before the logs."""
    rows = 0
    with contextlib.ExitStack() as stack, progress.step("database"):
        if config.database_url:
            snapshot = stack.enter_context(contextlib.closing(PostgresSnapshot()))
            writer = ArchiveWriter(file, _head(config, snapshot.migrations, snapshot.tables))
            for table in snapshot.tables:
                writer.pieces(f"{archive.TABLES}/{table}", snapshot.read(table))
                progress.show(f"database: {snapshot.rows:,} rows")
            rows = snapshot.rows
        else:
            copy = folder / archive.DATABASE
            source = config.data_path / "herald.sqlite3"
            if not source.is_file():
                raise BackupError(
                    f"There is no database in the data folder {config.data_path}; set HERALD_DATA_DIR to the folder of a domain."
                )
            sqlite_copy(source, copy)
            rows = sqlite_rows(copy)
            writer = ArchiveWriter(file, _head(config, sqlite_migrations(copy), {}))
            with copy.open("rb") as content:
                writer.stream(archive.DATABASE, copy.stat().st_size, _chunks(content))
        progress.about = f"{rows:,} rows, {size(writer.written)}"
    with progress.step("logs"):
        before, logs = writer.written, DataPlaneRecords()
        framed = (_LENGTH.pack(len(record)) + record for record in logs)
        writer.pieces(
            archive.DATA_PLANE, framed, lambda: progress.show(f"logs: {logs.logs:,}, {size(writer.written - before)}")
        )
        progress.about = f"{logs.logs:,} logs, {logs.events:,} events, {size(writer.written - before)}"
    with progress.step("files"):
        before, left_out = writer.written, 0
        writer.content(archive.SECRET, str(settings.SECRET_KEY).encode())
        if records:
            for section, place in file_places(config):
                left_out += _files(writer, section, place, progress)
        progress.about = size(writer.written - before) + (f", {left_out} left out for their names" if left_out else "")
    ended = datetime.now(UTC).isoformat()
    manifest = writer.finish(
        ended_at=ended, seconds=round(progress.seconds, 3), logs=logs.logs, events=logs.events, rows=rows
    )
    return {
        "bytes": writer.written,
        "seconds": manifest.seconds,
        "logs": logs.logs,
        "events": logs.events,
        "rows": rows,
    }


def file_places(config: Config) -> list[tuple[str, Path]]:
    """Return the sections of files with their folders; not reports at an address that only Spark reads."""
    places = [("records", config.records_path)]
    return places if "://" in config.reports_place else [*places, ("reports", Path(config.reports_place))]


def _files(writer: ArchiveWriter, section: str, place: Path, progress: BackupProgress) -> int:
    """Write the files of a folder, as far as they are written now; return how many have names that a backup cannot hold."""
    left_out = 0
    for folder, names, files in os.walk(place):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder, name)
            member = f"{section}/{path.relative_to(place).as_posix()}"
            if name.startswith("."):
                continue
            if not archive.allowed(member):
                left_out += 1
                continue
            try:
                content = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW), "rb")
            except OSError:
                continue  # removed by its retention, or a spool that became a segment
            with content:
                writer.stream(member, os.fstat(content.fileno()).st_size, _chunks(content))
            progress.show(f"{section}: {size(writer.written)}")
    return left_out


def _chunks(content: BinaryIO) -> Iterator[bytes]:
    while chunk := content.read(archive.CHUNK_BYTES):
        yield chunk


def _head(config: Config, migrations: list[str], tables: dict[str, list[str]]) -> Head:
    if not migrations:
        raise BackupError("The database has no tables yet; start the domain once.")
    stated = {name: value for name, value in os.environ.items() if name.startswith("HERALD_") and name not in STORES}
    return Head(
        format=FORMAT,
        version=str(settings.SPECTACULAR_SETTINGS["VERSION"]),
        domain=config.domain,
        began_at=datetime.now(UTC).isoformat(),
        database="postgresql" if config.database_url else "sqlite",
        migrations=migrations,
        redis=redis_server.server_version_of(config),
        settings=_settings(config, stated),
        tables=tables,
    )


def _settings(config: Config, stated: dict[str, str]) -> dict[str, str]:
    """Return the stated settings that this version has; the file is as secret as the keys in it, so secrets are not masked."""
    return {
        name: value for name, value in sorted(stated.items()) if hasattr(config, name.removeprefix("HERALD_").lower())
    }


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
