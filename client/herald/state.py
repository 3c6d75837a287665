"""Stores of a reader's cursors, so that its next process continues: a protocol, and a file that is replaced as a whole."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Protocol

from herald.errors import InputError

_FORMAT = 1
STATE_BYTES_MAX = 16 * 1024 * 1024  # about 100,000 cursors; a larger file is no state file


class CursorStore(Protocol):
    """Keeps one cursor per rendezvous point. Both methods are called from the event loop and must be quick."""

    def load(self, rp: str) -> str | None:
        """Return the cursor last saved for `rp` (the reference that was subscribed to); None if there is none."""

    def save(self, rp: str, cursor: str) -> None:
        """Store `cursor` for `rp`; everything up to it has been processed."""


class StateError(InputError):
    """A state file cannot be read or written; continuing without it could repeat or skip events."""


class FileCursorStore:
    """Cursors in one JSON file, replaced atomically: a crash leaves the old file or the new one, never a partial one.

    The file belongs to one process at a time. It is not fsynced: after a power cut it may have an older cursor, so
    events may be repeated, never missed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._cursors: dict[str, str] | None = None

    def load(self, rp: str) -> str | None:
        """See CursorStore. Raises StateError if the file is not a state file."""
        return self._read().get(rp)

    def save(self, rp: str, cursor: str) -> None:
        """See CursorStore. Raises StateError if the file cannot be written."""
        cursors = self._read()
        cursors[rp] = cursor
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            fresh.write_text(json.dumps({"format": _FORMAT, "cursors": cursors}, indent=1) + "\n")
            fresh.replace(self._path)
        except OSError as error:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)
            raise StateError(f"Cannot write the state file {self._path}: {error.strerror}.") from error

    def _read(self) -> dict[str, str]:
        if self._cursors is None:
            self._cursors = _parse(self._path)
        return self._cursors


def _parse(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_size > STATE_BYTES_MAX:
            raise StateError(f"{path} is too large to be a state file. Name another file.")
        document = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StateError(f"Cannot read the state file {path}: {error.strerror}.") from error
    except ValueError as error:
        raise StateError(f"{path} is not a state file. Remove it to start afresh, or name another file.") from error
    cursors = document.get("cursors") if isinstance(document, dict) and document.get("format") == _FORMAT else None
    if not isinstance(cursors, dict) or not all(isinstance(cursor, str) for cursor in cursors.values()):
        raise StateError(f"{path} is not a state file. Remove it to start afresh, or name another file.")
    return cursors
