"""Local copies of what is in an object store, for a Spark that runs on this machine only and has no connector for the store.

pyarrow reads and writes S3, Google Cloud Storage, Azure and HDFS by itself; Spark needs a connector on its class path that is not in
PySpark. A job with a local master therefore copies the segments of its period before Spark reads them, and the tables of its
report after Spark has written them. A cluster reads and writes the store itself: its executors do not see this machine's disk.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spark.locations import Location

THREADS = 8
_LOCAL_MASTER = "local"


class Staging:
    """Makes the copies.

    Args:
        folder: local folder for them; needs as much room as the segments and tables of one report.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fetch(self, place: Location, paths: Sequence[str]) -> list[str]:
        """Copy files of a location; return their local paths for Spark, in the same order. Those copied before are not copied again.

        Raises:
            FileNotFoundError: a file was removed meanwhile.
            OSError: the store does not answer, or the disk is full.
        """
        with ThreadPoolExecutor(THREADS) as threads:
            return list(threads.map(lambda path: self._fetched(place, path), paths))

    def table(self, path: str) -> str:
        """Return the local folder, for Spark, of a table whose path in the store is `path`."""
        return Location(str(self._folder)).spark(str(self._local(path)))

    def store(self, place: Location, path: str) -> None:
        """Copy a table that Spark has written to its path in the store. Raises OSError."""
        from pyarrow import fs

        fs.copy_files(
            str(self._local(path)),
            path,
            source_filesystem=fs.LocalFileSystem(),
            destination_filesystem=place.filesystem,
            use_threads=True,
        )

    def _fetched(self, place: Location, path: str) -> str:
        target = self._local(path)
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f".{target.name}.part")
            _copy(place.filesystem, path, part)
            part.rename(target)
        return Location(str(self._folder)).spark(str(target))

    def _local(self, path: str) -> Path:
        return self._folder / path.lstrip("/")


@contextmanager
def staging(places: Sequence[Location], master: str, work: str | None) -> Iterator[Staging | None]:
    """Yield the staging of a job, removed in the end; None if Spark reads and writes all places by itself.

    Args:
        places: what the job reads and writes.
        master: Spark master.
        work: the folder where Spark spills; None: the system's temporary folder.
    """
    if all(place.is_local for place in places) or not master.startswith(_LOCAL_MASTER):
        yield None
        return
    if work is not None:
        Path(work).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="herald-staging-", dir=work) as folder:
        yield Staging(Path(folder))


def _copy(filesystem: Any, path: str, target: Path) -> None:
    with filesystem.open_input_stream(path) as source, target.open("wb") as copy:
        while chunk := source.read(2**20):
            copy.write(chunk)
