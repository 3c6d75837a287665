"""The spool: an append-only file of records that are not yet in a segment.

Rationale: a killed gateway may lose at most ten seconds, and a Parquet file every ten seconds would be 8,640 small
files a day and gateway, each more expensive to open than to read. Appending to a file costs a hundredth of a segment,
and one segment a minute is made from it.

A frame is length and CRC-32 (two big-endian 32-bit numbers), then an Arrow IPC stream. A spool is read up to its first
incomplete frame. Its writer holds an exclusive flock(2) on it until the writer ends in any way, so another process that
gets the lock may take the spool over. Spools are in `_spool/`, which readers of the records skip.
"""

from __future__ import annotations

import fcntl
import logging
import os
import zlib
from pathlib import Path
from typing import Any

FOLDER = "_spool"
SUFFIX = ".spool"
FRAME_BYTES_MAX = 64 * 1024 * 1024  # far beyond a chunk of records; a longer frame is malformed
FILE_MODE, FOLDER_MODE = 0o640, 0o750  # the file contains identities
_HEAD_BYTES = 8
log = logging.getLogger(__name__)


class Spool:
    """A spool open for writing. Made by `create`.

    Attributes:
        path: path of the file; its stem names the segments made from it.
        records: number of records.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.records = 0
        self._descriptor = descriptor
        self._bytes = 0

    @classmethod
    def create(cls, path: Path) -> Spool | None:
        """Make and lock a new spool; None if another process locked it first. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        if not _lock(descriptor):
            os.close(descriptor)
            return None
        return cls(path, descriptor)

    def append(self, frame: Any, records: int) -> None:
        """Append one frame. Raises OSError and leaves the spool unchanged."""
        content = memoryview(frame)
        head = len(content).to_bytes(4, "big") + zlib.crc32(content).to_bytes(4, "big")
        try:
            _write_all(self._descriptor, memoryview(head))
            _write_all(self._descriptor, content)
        except OSError:
            os.ftruncate(self._descriptor, self._bytes)
            os.lseek(self._descriptor, self._bytes, os.SEEK_SET)
            raise
        self._bytes += _HEAD_BYTES + len(content)
        self.records += records

    def sync(self) -> None:
        """Sync appended frames to disk. Raises OSError."""
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file and release its lock."""
        os.close(self._descriptor)


class Leftover:
    """A spool that its writer has finished or left behind, locked by this process for reading and removal."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> Leftover | None:
        """Lock the spool at `path`; None if its writer is alive or the spool no longer exists. Raises OSError."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        if not _lock(descriptor):
            os.close(descriptor)
            return None
        return cls(path, descriptor)

    def frames(self) -> list[memoryview]:
        """Return the complete frames. Raises OSError."""
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            content = memoryview(file.read())
        found, at = [], 0
        while at + _HEAD_BYTES <= len(content):
            size = int.from_bytes(content[at : at + 4], "big")
            begin, end = at + _HEAD_BYTES, at + _HEAD_BYTES + size
            if not 0 < size <= FRAME_BYTES_MAX or end > len(content):
                break
            if zlib.crc32(content[begin:end]) != int.from_bytes(content[at + 4 : begin], "big"):
                break
            found.append(content[begin:end])
            at = end
        if at < len(content):
            log.warning("%s ends in %d bytes of an unfinished write; they are dropped.", self.path, len(content) - at)
        return found

    def remove(self) -> None:
        """Remove the spool, whose records are in segments now. Raises OSError."""
        self.path.unlink(missing_ok=True)

    def set_aside(self) -> None:
        """Rename the malformed spool, for inspection by the operator. Raises OSError."""
        self.path.rename(self.path.with_suffix(".unreadable"))

    def close(self) -> None:
        """Close the file and release its lock."""
        os.close(self._descriptor)


def _lock(descriptor: int) -> bool:
    """Lock the file; False if another process holds the lock or the file has been removed or renamed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(descriptor).st_nlink > 0


def _write_all(descriptor: int, content: memoryview) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
