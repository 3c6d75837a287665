"""Destinations of a backup: a file that gets its name when all of it is on disk, or a pipe."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from portal.supervisor.backup.errors import BackupError

PIPE = "-"
SUFFIX = ".part"


@contextlib.contextmanager
def opened(target: str, *, replace: bool) -> Iterator[BinaryIO]:
    """Open the target for writing, mode 0600; a file appears under its name after the block has ended without an error.

    Until then it is FILE.PID.part beside it, which is removed when the block fails, and by the next backup of that name if
    this process is killed. Raises BackupError where it exists (unless `replace`) or cannot be written.
    """
    if target == PIPE:
        if sys.stdout.isatty():
            raise BackupError("A backup is not written to a terminal: name a file, or pipe it: herald backup - | ...")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(target).absolute()
    try:
        if path.exists() and not replace:
            raise BackupError(f"{path} exists; name another file, or replace it with --force.")
        _remove_abandoned(path)
        part = path.with_name(f"{path.name}.{os.getpid()}{SUFFIX}")
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                _name(part, path, replace=replace)
        finally:
            with contextlib.suppress(FileNotFoundError):
                part.unlink()
        sync_folder(path.parent)
    except OSError as error:
        raise BackupError(
            f"{path} cannot be written ({(error.strerror or str(error)).lower()}); choose another place."
        ) from error


def _name(part: Path, path: Path, *, replace: bool) -> None:
    if replace:
        part.replace(path)
        return
    try:
        os.link(part, path)  # unlike a renaming, this replaces nothing
    except FileExistsError:
        raise BackupError(f"{path} exists now; name another file, or replace it with --force.") from None
    except OSError:  # a file system without links
        part.replace(path)


def _remove_abandoned(path: Path) -> None:
    """Remove what killed backups of this name left: files that no process has locked."""
    for part in path.parent.glob(f"{path.name.replace('[', '[[]')}.*{SUFFIX}"):
        with contextlib.suppress(OSError):
            descriptor = os.open(part, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
            finally:
                os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Have the names in a folder on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
