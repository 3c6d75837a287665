"""A report's folder: runs side by side, and a manifest that names the current one.

    OUTPUT/JOB/manifest.json              {"schema_version", "report", "run", "previous"}; replaced as a whole, last
    OUTPUT/JOB/run=RUN/report.json        the summary
    OUTPUT/JOB/run=RUN/TABLE/*.parquet    its tables

A job writes into a folder of its own and commits it by the manifest. One that dies midway leaves the manifest, and so the
earlier report, unchanged; this holds on an object store as well, where nothing can be renamed. The previous run stays
until the next commit, for its present readers.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from spark import schemas
from spark.locations import Location
from spark.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANIFEST = "manifest.json"
REPORT = "report.json"
ABANDONED = timedelta(hours=24)
"""Age after which a run without a report counts as abandoned."""
_RUN = "run="
_STAMP = "%Y%m%dt%H%M%Sz"


@dataclass(frozen=True)
class JobRun:
    """One run of a job, being written."""

    output: Location
    job: str
    name: str
    staging: Staging | None = None
    """Folder in which Spark writes the tables before they are copied to `output`; None: there at once."""

    @classmethod
    def begin(cls, output: Location, job: str, staging: Staging | None = None) -> JobRun:
        """Start a run with a name of its own: its begin and a random part."""
        name = f"{datetime.now(UTC):{_STAMP}}-{secrets.token_hex(4)}"
        return cls(output, job, name, None if output.is_local else staging)

    @property
    def folder(self) -> str:
        """Return the folder that it is written to."""
        return self.output.path(self.job, _RUN + self.name)

    def write(self, frame: DataFrame, table: schemas.TableSchema) -> None:
        """Write one table, checked against its contract. Raises OSError: the object store does not take it."""
        schemas.conform(frame, table).write.mode("overwrite").parquet(self._path(table))
        if self.staging is not None:
            self.staging.store(self.output, f"{self.folder}/{table.name}")

    def read(self, spark: SparkSession, table: schemas.TableSchema) -> DataFrame:
        """Return a table that this run has written."""
        return spark.read.schema(schemas.ddl(table)).parquet(self._path(table))

    def commit(self, report: dict[str, Any]) -> None:
        """Make it the current report; remove runs before the previous one, and abandoned ones. Raises OSError."""
        path = self.output.path(self.job, MANIFEST)
        before = self.output.read_json(path)
        previous = before.get("run") if isinstance(before, dict) else None
        self.output.write(f"{self.folder}/{REPORT}", _json(report))
        manifest = {
            "schema_version": schemas.REPORT_VERSION,
            "report": self.job,
            "run": self.name,
            "previous": previous,
        }
        self.output.write(path, _json(manifest))
        for name in self._outdated({self.name, previous}):
            self.output.remove_folder(self.output.path(self.job, _RUN + name))

    def abandon(self) -> None:
        """Remove what it has written; the earlier report stays."""
        self.output.remove_folder(self.folder)

    def _path(self, table: schemas.TableSchema) -> str:
        path = f"{self.folder}/{table.name}"
        return self.staging.table(path) if self.staging is not None else self.output.spark(path)

    def _outdated(self, kept: set[str | None]) -> Iterator[str]:
        for entry in self.output.entries(self.output.path(self.job)):
            name = entry.name.removeprefix(_RUN)
            if entry.is_file or name == entry.name or name in kept:
                continue
            done = self.output.read(f"{entry.path}/{REPORT}") is not None
            if done or _begun_before(name, datetime.now(UTC) - ABANDONED):
                yield name


def current(output: Location, job: str) -> dict[str, Any] | None:
    """Return the current report, as in `report.json`; None if there is none."""
    manifest = output.read_json(output.path(job, MANIFEST))
    if not isinstance(manifest, dict) or not isinstance(manifest.get("run"), str):
        return None
    report = output.read_json(output.path(job, _RUN + manifest["run"], REPORT))
    return report if isinstance(report, dict) else None


def _begun_before(name: str, at: datetime) -> bool:
    try:
        return datetime.strptime(name.partition("-")[0], _STAMP).replace(tzinfo=UTC) < at
    except ValueError:
        return False


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n").encode()
