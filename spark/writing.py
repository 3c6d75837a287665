"""A report's folder: runs side by side, and a manifest that names the one that counts.

    OUTPUT/JOB/manifest.json              {"schema_version", "report", "run", "previous"}; replaced as a whole, last
    OUTPUT/JOB/run=RUN/report.json        the report in small
    OUTPUT/JOB/run=RUN/TABLE/*.parquet    its tables

A job writes into a folder of its own and commits it by the manifest. One that dies midway leaves the manifest, and so the
report of before, as they were; this holds on an object store as well, where nothing can be renamed. The run before stays
until the next commit, for whoever is just reading it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from spark import schemas
from spark.places import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MANIFEST = "manifest.json"
REPORT = "report.json"
ABANDONED = timedelta(hours=24)
"""A run without a report that began so long ago is not going on any more."""
_RUN = "run="
_STAMP = "%Y%m%dt%H%M%Sz"


@dataclass(frozen=True)
class Run:
    """One run of a job, being written."""

    output: Place
    job: str
    name: str

    @classmethod
    def begin(cls, output: Place, job: str) -> Run:
        """A run of its own name: its begin and a random part."""
        return cls(output, job, f"{datetime.now(UTC):{_STAMP}}-{secrets.token_hex(4)}")

    @property
    def folder(self) -> str:
        """Where it is written."""
        return self.output.path(self.job, _RUN + self.name)

    def write(self, frame: DataFrame, table: schemas.Table) -> None:
        """Write one table, held to its contract."""
        schemas.conform(frame, table).write.mode("overwrite").parquet(self._path(table))

    def read(self, spark: SparkSession, table: schemas.Table) -> DataFrame:
        """A table that this run has written."""
        return spark.read.schema(schemas.ddl(table)).parquet(self._path(table))

    def commit(self, report: dict[str, Any]) -> None:
        """Make it the report that counts; remove runs before the previous one, and abandoned ones. Raises OSError."""
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
        """Remove what it has written; the report of before stays."""
        self.output.remove_folder(self.folder)

    def _path(self, table: schemas.Table) -> str:
        return self.output.spark(f"{self.folder}/{table.name}")

    def _outdated(self, kept: set[str | None]) -> Iterator[str]:
        for entry in self.output.entries(self.output.path(self.job)):
            name = entry.name.removeprefix(_RUN)
            if entry.is_file or name == entry.name or name in kept:
                continue
            done = self.output.read(f"{entry.path}/{REPORT}") is not None
            if done or _begun_before(name, datetime.now(UTC) - ABANDONED):
                yield name


def current(output: Place, job: str) -> dict[str, Any] | None:
    """The report that counts, as `report.json` says it; None if there is none."""
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
