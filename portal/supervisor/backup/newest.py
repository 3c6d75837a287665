"""Time of the newest backup, as the data folder knows it: for doctor. A file that is missing or damaged counts as none."""

from __future__ import annotations

import contextlib
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

FILE = "newest-backup.json"


class NewestBackup(NamedTuple):
    """Time of its beginning, Unix seconds, and its size."""

    began_at: float
    bytes: int


def note(folder: Path, began_at: float, size: int) -> None:
    """Note a backup that is on disk, or was given to a pipe that took all of it."""
    fresh = folder / f"{FILE}.new"
    with contextlib.suppress(OSError):  # the backup is good all the same
        fresh.write_text(
            json.dumps({"began_at": datetime.fromtimestamp(began_at, UTC).isoformat(), "bytes": size}) + "\n"
        )
        fresh.replace(folder / FILE)


def newest(folder: Path) -> NewestBackup | None:
    """Return what is known of the newest backup; None if nothing is."""
    try:
        found = json.loads((folder / FILE).read_text())
        return NewestBackup(datetime.fromisoformat(found["began_at"]).timestamp(), int(found["bytes"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def age_s(backup: NewestBackup) -> float:
    """Return the seconds since the backup was begun."""
    return max(0.0, time.time() - backup.began_at)
