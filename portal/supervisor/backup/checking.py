"""Reading a backup as a whole, without restoring anything: every checksum, and what it holds."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from portal.supervisor.backup import archive
from portal.supervisor.backup.archive import ArchiveReader
from portal.supervisor.backup.contents import Head, Manifest
from portal.supervisor.backup.errors import BackupError
from portal.supervisor.backup.output import PIPE
from portal.supervisor.backup.progress import BackupProgress, size


class CheckedBackup(NamedTuple):
    """A backup that is whole; `bytes` are those of all its members."""

    head: Head
    manifest: Manifest
    secret_key: str
    bytes: int

    def as_dict(self) -> dict[str, Any]:
        """Its contents, without secrets."""
        return {
            "format": self.head.format,
            "version": self.head.version,
            "domain": self.head.domain,
            "began_at": self.head.began_at,
            "database": self.head.database,
            "migrations": self.head.migrations[-1] if self.head.migrations else "",
            "logs": self.manifest.logs,
            "events": self.manifest.events,
            "rows": self.manifest.rows,
            "bytes": self.bytes,
            "sections": {
                name: {"members": one.members, "bytes": one.bytes} for name, one in self.manifest.sections.items()
            },
        }


@contextlib.contextmanager
def source_opened(source: str, spool: Path | None = None) -> Iterator[BinaryIO]:
    """Open the file `source` for reading; what stdin (`-`) delivers is first written to a nameless file in `spool`."""
    if source == PIPE:
        with tempfile.TemporaryFile(dir=spool) as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy, archive.CHUNK_BYTES)
            copy.seek(0)
            yield copy
        return
    try:
        file = Path(source).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise BackupError(
            f"{source} cannot be read ({(error.strerror or str(error)).lower()}); name a file of herald backup."
        ) from None
    with file:
        yield file


def check(file: BinaryIO, progress: BackupProgress) -> CheckedBackup:
    """Read all of it, from the beginning. Raises BackupError where it is damaged or not whole."""
    file.seek(0)
    with progress.step("check"):
        reader = ArchiveReader(file)
        secret, done = "", 0
        for member in reader.members():
            if member.name == archive.SECRET:
                secret = member.content().decode("utf-8", "replace")
            member.end()
            done += member.size
            progress.show(f"check: {size(done)}")
        progress.about = size(done)
    assert reader.manifest is not None  # noqa: S101 - members() raises without one
    if not secret or archive.DATA_PLANE not in {
        *reader.manifest.sections,
        *(() if reader.manifest.logs else (archive.DATA_PLANE,)),
    }:
        raise BackupError("The file is not a backup of Herald, or damaged: parts of a domain are missing in it.")
    return CheckedBackup(reader.head, reader.manifest, secret, done)
