"""Restoring a backup: a domain that continues where the backup was made, and gives no number a second time."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from django.db import DatabaseError, OperationalError

from eventing.core.config import Config
from eventing.core.decoding import Undecodable
from eventing.log import backup as data_plane
from eventing.log.backup import UnknownSerialization
from eventing.log.control import logs
from eventing.log.lineage import lineage_begin
from eventing.store.errors import RedisError
from portal.supervisor import data_folder, redis_server
from portal.supervisor.backup import archive
from portal.supervisor.backup.archive import ArchiveMember, ArchiveReader
from portal.supervisor.backup.checking import CheckedBackup, check, source_opened
from portal.supervisor.backup.contents import Head
from portal.supervisor.backup.database import (
    migrations_unknown,
    postgres_is_empty,
    postgres_prepared,
    postgres_write,
    sqlite_require_sound,
)
from portal.supervisor.backup.errors import BackupError
from portal.supervisor.backup.places import RestoreFolders
from portal.supervisor.backup.progress import BackupProgress, size
from portal.supervisor.errors import StartError

_LENGTH = struct.Struct(">I")
_DATABASES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
ROOM_FACTOR = (
    3  # of the bytes of a backup, that its restore may need on disk: the members, Redis's file, a rewrite of it
)


def backup_restore(
    config: Config, source: str, *, records: bool, replace: bool, progress: BackupProgress
) -> dict[str, Any]:
    """Make a domain of a backup, in the data folder and stores that are configured; return what was restored.

    Args:
        records: whether access records and reports are restored too.
        replace: whether what is there is moved aside (folder) or removed (PostgreSQL and Redis elsewhere).

    Raises BackupError; nothing is changed then, unless its text states it.
    """
    os.umask(0o077)
    try:
        data_folder.prepare(config.data_path)
        with source_opened(source, config.data_path) as file:
            found = check(file, progress)
            _require_fitting(config, found)
            with data_folder.locked(config.data_path):
                return _Restore(config, file, found, records=records, replace=replace, progress=progress).run()
    except StartError as error:
        raise BackupError(str(error)) from None
    except (RedisError, OperationalError) as error:
        raise BackupError(f"A store does not answer ({_one_line(error)}); start it, or correct its address.") from None
    except DatabaseError as error:
        raise BackupError(
            f"The rows of the backup do not fit its tables ({_one_line(error)}); it was altered."
        ) from None
    except (Undecodable, UnknownSerialization) as error:
        raise BackupError(_unreadable(error, found.head)) from None
    except OSError as error:
        raise BackupError(data_folder.unwritable(config.data_path, error)) from None


def _require_fitting(config: Config, found: CheckedBackup) -> None:
    """Raise BackupError for a backup that this domain, or this version, cannot continue."""
    head, here = found.head, "postgresql" if config.database_url else "sqlite"
    if head.domain != config.domain:
        raise BackupError(
            f"The backup is of the domain {head.domain[:100]}, and this one is {config.domain}; set HERALD_DOMAIN={head.domain[:100]}: "
            "a domain's name is in its tokens and seals."
        )
    if head.database != here:
        made, use = _DATABASES.get(head.database, "another database"), _DATABASES[here]
        do = (
            "unset HERALD_DATABASE_URL"
            if here == "postgresql"
            else "set HERALD_DATABASE_URL to an empty PostgreSQL database"
        )
        raise BackupError(
            f"The backup has a {made} database and would be restored into {use}: their files and types differ, so rows are not "
            f"carried from one to the other; {do}."
        )
    unknown = migrations_unknown(head.migrations)
    if unknown:
        raise BackupError(
            f"The backup was made by a newer Herald ({head.version[:50]}: its database has {unknown[-1][:100]}); restore it with "
            "that version, or a newer one."
        )
    if config.secret_key and config.secret_key != found.secret_key:
        raise BackupError(
            "HERALD_SECRET_KEY is another one than that of the backup, and would open none of the secrets in it; unset it (the "
            "backup brings its own), or set the one of then."
        )


class _Restore:
    """One restore, with the data folder locked."""

    def __init__(
        self,
        config: Config,
        file: BinaryIO,
        found: CheckedBackup,
        *,
        records: bool,
        replace: bool,
        progress: BackupProgress,
    ) -> None:
        self._config, self._file, self._found, self._progress = config, file, found, progress
        self._records, self._replace = records, replace
        self._places = RestoreFolders(config)
        self._epochs = 0

    def run(self) -> dict[str, Any]:
        """Restore, or leave things as they were."""
        config, places = self._config, self._places
        data_folder.stop_leftovers(config.data_path)
        redis_server.stop_leftover(config)
        mark = places.mark
        if mark is not None:
            places.clear_unfinished(mark)
        occupied = self._require_room(ours=mark is not None)
        self._file.seek(0)
        reader = ArchiveReader(self._file)
        members = reader.members()
        first = next(members, None)
        self._require_sound(first)
        aside = places.begin(aside=occupied)
        try:
            with self._stores():
                self._write_members(members, first)
        except BaseException:
            if config.redis_url:
                with contextlib.suppress(RedisError):
                    data_plane.clear()
                    if not occupied:  # else its data is gone, and no domain may start on what is left
                        data_plane.restoring_end()
            places.undo(aside)
            raise
        places.end()
        if config.redis_url:
            data_plane.restoring_end()
        return self._outcome(aside)

    def _require_room(self, *, ours: bool) -> bool:
        """Return whether something of a domain is there and has to go. Raises BackupError if it may not.

        Args:
            ours: whether a killed restore had begun here: what is in the stores is its half.
        """
        config = self._config
        need, free = self._found.bytes * ROOM_FACTOR, shutil.disk_usage(config.data_path).free
        if free < need:
            raise BackupError(
                f"The disk of the data folder {config.data_path} has {size(free)} free, and this restore may need {size(need)}; free "
                "some space, or set HERALD_DATA_DIR to another folder."
            )
        occupied = self._places.occupied()
        if config.redis_url:
            redis_server.external_version(config)
            if data_plane.gateways_alive():
                raise BackupError(
                    "Gateways of a domain use the Redis at HERALD_REDIS_URL; stop the domain on every host first."
                )
            if not data_plane.is_empty() and not data_plane.is_restoring():
                occupied = occupied or "the Redis at HERALD_REDIS_URL"
        if config.database_url and not ours and not postgres_is_empty():
            occupied = occupied or "the database at HERALD_DATABASE_URL"
        if occupied and not self._replace:
            raise BackupError(
                f"There is a domain already ({occupied}); restore into an empty folder and empty stores, or with --replace, which "
                "moves the folder's content aside and empties stores elsewhere."
            )
        return bool(occupied)

    def _require_sound(self, first: ArchiveMember | None) -> None:
        """Extract the SQLite database and check it, before anything is changed."""
        if not self._places.sqlite:
            return
        if first is None or first.name != archive.DATABASE:
            raise BackupError("The file is damaged: the database is missing in it.")
        shutil.rmtree(self._places.staging, ignore_errors=True)
        self._places.staging.mkdir(mode=0o700)
        copy = self._places.staging / archive.DATABASE
        try:
            _write_file(copy, first)
            sqlite_require_sound(copy, self._found.head.migrations)
        except BackupError:
            shutil.rmtree(self._places.staging, ignore_errors=True)
            raise

    @contextlib.contextmanager
    def _stores(self) -> Iterator[None]:
        """Have both stores ready to be filled. PostgreSQL's transaction is committed when the block has ended."""
        config, head = self._config, self._found.head
        with contextlib.ExitStack() as stack:
            if config.redis_url:
                data_plane.restoring_note()
                data_plane.clear()
            else:
                stack.enter_context(redis_server.running_alone(config, loading=True))
            if config.database_url:
                with self._progress.step("migrations"):
                    stack.enter_context(postgres_prepared(head.migrations, head.tables))
            yield

    def _write_members(self, members: Iterator[ArchiveMember], first: ArchiveMember | None) -> None:
        """Write what the members hold, section by section, in the order of the file."""
        progress, head = self._progress, self._found.head
        member = first
        with progress.step("database"):
            if self._places.sqlite:
                target = self._config.data_path / "herald.sqlite3"
                (self._places.staging / archive.DATABASE).replace(target)
                member = next(members, None)
            while member is not None and member.section == archive.TABLES:
                table = member.name.split("/")[1]
                if table not in head.tables:
                    raise BackupError("The file has rows of a table that it does not name; it was altered.")
                postgres_write(table, head.tables[table], member.chunks())
                member = next(members, None)
            progress.about = f"{self._found.manifest.rows:,} rows"
        with progress.step("logs"):
            records, member = _DataPlane(members, member), None
            for written in data_plane.load(records):
                progress.show(f"logs: {written:,} records")
            member = records.after
            progress.about = f"{self._found.manifest.logs:,} logs, {self._found.manifest.events:,} events"
        with progress.step("epochs"):
            for rp in list(logs()):
                lineage_begin(rp)
                self._epochs += 1
                progress.show(f"epochs: {self._epochs:,} of {self._found.manifest.logs:,}")
            progress.about = f"{self._epochs:,} logs continue in new epochs"
        with progress.step("files"):
            count = 0
            while member is not None:
                count += self._write_member(member)
                member = next(members, None)
            progress.about = f"{count:,} files"

    def _write_member(self, member: ArchiveMember) -> int:
        if member.name == archive.SECRET:
            path = self._config.data_path / "secret_key"
            path.unlink(missing_ok=True)
            return _write_file(path, member)
        if member.section not in archive.FILES:
            raise BackupError(f"The file has {member.name} where no backup of Herald has it; it was altered.")
        place = self._places.files.get(member.section)
        if place is None or not self._records:
            return 0
        path = place / member.name.partition("/")[2]
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return _write_file(path, member)

    def _outcome(self, aside: str) -> dict[str, Any]:
        found, stated = self._found, {name: os.environ.get(name) for name in self._found.head.settings}
        place = {"HERALD_DATA_DIR", "HERALD_RECORDS_DIR", "HERALD_REPORTS_DIR", "HERALD_SECRET_KEY", "HERALD_PROCESS"}
        return {
            "domain": found.head.domain,
            "began_at": found.head.began_at,
            "age_s": round((datetime.now(UTC) - datetime.fromisoformat(found.head.began_at)).total_seconds()),
            "seconds": round(self._progress.seconds, 3),
            "logs": self._epochs,
            "events": found.manifest.events,
            "rows": found.manifest.rows,
            "aside": str(self._config.data_path / aside) if aside else "",
            "settings": sorted(
                name for name, value in stated.items() if value != found.head.settings[name] and name not in place
            ),
        }


class _DataPlane:
    """The records of the data plane among the members; `after` is the first member behind them."""

    def __init__(self, members: Iterator[ArchiveMember], first: ArchiveMember | None) -> None:
        self._members, self.after = members, first

    def __iter__(self) -> Iterator[bytes]:
        while self.after is not None and self.after.section == archive.DATA_PLANE:
            content = memoryview(self.after.content())
            at = 0
            while at < len(content):
                end = at + _LENGTH.size
                (length,) = _LENGTH.unpack(content[at:end]) if end <= len(content) else (-1,)
                if length < 0 or end + length > len(content):
                    raise Undecodable("a piece of the data plane ends within a record")
                yield bytes(content[end : end + length])
                at = end + length
            self.after = next(self._members, None)


def _write_file(path: Path, member: ArchiveMember) -> int:
    """Write a member to a new file; return 1."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        for chunk in member.chunks():
            file.write(chunk)
    return 1


def _unreadable(error: Exception, head: Head) -> str:
    if isinstance(error, UnknownSerialization):
        return f"This Redis cannot read the logs of the backup, which Redis {head.redis[:30]} serialized; use one at least as new."
    return f"The file is damaged: {_one_line(error)}; take another backup."


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
