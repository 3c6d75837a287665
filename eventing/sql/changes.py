"""Changes of SQL, detected without a query: for a schedule that runs rarely while nothing changes, and answers that are remembered.

SQLite counts the commits of others for each connection (PRAGMA data_version). Other databases state nothing as cheap.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from django.db import connection


class SqlChanges:
    """Changes of the SQLite file at `path`, as one thread asks for them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._seen: tuple[int, int, int] | None = None

    def changed(self) -> bool:
        """Return whether something was committed since the last call. True if that cannot be determined."""
        try:
            status = os.stat(self._path)  # noqa: PTH116 - each second: no Path is made for it
            if self._connection is None or (
                self._seen is not None and self._seen[:2] != (status.st_dev, status.st_ino)
            ):
                self._open()
            assert self._connection is not None  # noqa: S101 - just opened
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except (OSError, sqlite3.Error):
            self.close()
            return True
        seen = (status.st_dev, status.st_ino, int(version))
        changed, self._seen = seen != self._seen, seen
        return changed

    def close(self) -> None:
        """Close the connection."""
        self._seen = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> None:
        self.close()
        self._connection = sqlite3.connect(
            f"file:{quote(str(self._path))}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
        )


def sql_changes() -> SqlChanges | None:
    """Return the changes of the domain's database; None where it is not SQLite."""
    return SqlChanges(Path(connection.settings_dict["NAME"])) if connection.vendor == "sqlite" else None
