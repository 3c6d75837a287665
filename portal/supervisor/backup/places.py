"""The data folder while a backup is restored into it: what was there is moved aside, a mark states how far it is.

The mark is written before anything is changed and removed when all is on disk. Its phase is `aside` while what was there
is moved to `before-restore-TIME`, and `build` while the domain is made: a restore that finds the mark of a killed one
first finishes the one, or removes the other's half.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eventing.core.config import Config
from portal.supervisor.backup.errors import BackupError
from portal.supervisor.backup.making import FOLDER_PREFIX, file_places
from portal.supervisor.backup.output import sync_folder
from portal.supervisor.data_folder import LOCK_FILE, RESTORE_MARK

ASIDE_PREFIX = "before-restore-"
STAGING = "restoring.tmp"
DATABASE_FILES = ("herald.sqlite3", "herald.sqlite3-wal", "herald.sqlite3-shm")
_STAY = {LOCK_FILE, RESTORE_MARK, STAGING, f"{RESTORE_MARK}.new", "logs", "redis.sock"}


class RestoreFolders:
    """Folders of the domain that is restored."""

    def __init__(self, config: Config) -> None:
        self.data = config.data_path
        self.staging = self.data / STAGING
        self.files = dict(file_places(config))
        self.embedded_redis = not config.redis_url
        self.sqlite = not config.database_url

    @property
    def mark(self) -> dict[str, Any] | None:
        """The mark of a restore that was not finished; None without one."""
        try:
            found = json.loads((self.data / RESTORE_MARK).read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def occupied(self) -> str:
        """Name what of a domain is there; empty if nothing is."""
        database = self.data / DATABASE_FILES[0]
        if self.sqlite and database.is_file() and database.stat().st_size:
            return str(database)
        if self.embedded_redis and _has_files(self.data / "redis"):
            return str(self.data / "redis")
        return next((str(place) for place in self.files.values() if _has_files(place)), "")

    def clear_unfinished(self, mark: dict[str, Any]) -> None:
        """Finish what a killed restore began to move aside, or remove what it had made."""
        if mark.get("phase") == "aside" and mark.get("aside"):
            self._move(str(mark["aside"]))
        elif mark.get("phase") == "build":
            self.remove_built([Path(one) for one in mark.get("files", ())])
        else:
            raise BackupError(
                f"{self.data / RESTORE_MARK} cannot be read, so what of the folder is a half-made restore is not known; look "
                "through the folder, and remove that file."
            )

    def begin(self, *, aside: bool) -> str:
        """Mark the folder; move aside what is there. Returns the name of the folder that it is in, "" for none."""
        name = f"{ASIDE_PREFIX}{datetime.now(UTC):%Y%m%dT%H%M%SZ}" if aside else ""
        if aside:
            self._mark(phase="aside", aside=name)
            self._move(name)
        self._mark(phase="build", aside=name, files=[str(place) for place in self.files.values()])
        return name

    def end(self) -> None:
        """All is in its place: have it on disk, and remove the mark."""
        shutil.rmtree(self.staging, ignore_errors=True)
        os.sync()
        (self.data / RESTORE_MARK).unlink()
        sync_folder(self.data)

    def undo(self, aside: str) -> None:
        """Remove what was made, put back what was moved aside, and remove the mark."""
        self.remove_built(list(self.files.values()))
        for path in (self.data / aside).iterdir() if aside else ():
            target = self.files.get(path.name, self.data / path.name)
            if target.is_dir() and not any(target.iterdir()):
                target.rmdir()
            if target.name == "secret_key":
                target.unlink(missing_ok=True)
            shutil.move(path, target)
        if aside:
            (self.data / aside).rmdir()
        (self.data / RESTORE_MARK).unlink(missing_ok=True)

    def remove_built(self, files: list[Path]) -> None:
        """Remove what a restore has made."""
        shutil.rmtree(self.staging, ignore_errors=True)
        if self.embedded_redis:
            _empty(self.data / "redis")
        if self.sqlite:
            for name in DATABASE_FILES:
                (self.data / name).unlink(missing_ok=True)
        for place in files:
            if place in self.files.values():
                _empty(place)

    def _move(self, name: str) -> None:
        """Move everything of a domain into the folder `name` below the data folder, what is elsewhere too."""
        target = self.data / name
        target.mkdir(mode=0o700, exist_ok=True)
        for path in sorted(self._domain_entries()):
            shutil.move(path, target / path.name)
        for section, place in self.files.items():
            if _has_files(place):
                shutil.move(place, target / section)
                place.mkdir(mode=0o700)
        (self.data / "redis").mkdir(mode=0o700, exist_ok=True)
        sync_folder(target)

    def _domain_entries(self) -> Iterator[Path]:
        for path in self.data.iterdir():
            kept = (
                path.name in _STAY or path.name.startswith((ASIDE_PREFIX, FOLDER_PREFIX)) or path in self.files.values()
            )
            if not kept:
                yield path

    def _mark(self, **state: Any) -> None:
        fresh = self.data / f"{RESTORE_MARK}.new"
        with fresh.open("w") as file:
            json.dump(state, file)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self.data / RESTORE_MARK)
        sync_folder(self.data)


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(path.is_file() for path in folder.rglob("*"))


def _empty(folder: Path) -> None:
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
