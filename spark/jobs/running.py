"""The life of a job: inspect the segments, read, transform, write, commit.

A segment that is found to be damaged while Spark reads it, or that was joined or removed meanwhile, makes the job begin
again, with every page of every segment checked first. For any other failure the run's folder is removed, and the
earlier report stays.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from spark import reading, report, schemas
from spark.locations import Location
from spark.periods import Period
from spark.problems import JobProblem, chain
from spark.progress import ProgressReporter
from spark.session import fit
from spark.staging import Staging
from spark.writing import JobRun

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ATTEMPTS = 10
"""The first attempt checks footers only, the others everything. A segment that Java's stricter Parquet reader still
refuses is left out, one at a time.
"""
_NAMED = re.compile(r"while reading file (\S+?\.parquet)")
_READ_FAILED = re.compile(r"FAILED_READ_FILE|FileNotFound|does not exist|PATH_NOT_FOUND|[Pp]arquet.*(Exception|Error)")


@dataclass(slots=True)
class JobRequest:
    """The parameters of a job.

    Attributes:
        domain: name of this domain: the issuer that is not foreign.
        lookback_days: of records before the period that anomalies are compared with.
        limits: for the forecast (docs/reports.md).
        staging: for locations that Spark cannot reach by itself.
    """

    input: Location
    output: Location
    period: Period = field(default_factory=Period)
    domain: str = "localhost"
    lookback_days: int = 30
    limits: dict[str, float] = field(default_factory=dict)
    staging: Staging | None = None


@dataclass(slots=True)
class Work:
    """The interface of a job's `build`: records in, tables out, each with its step on the terminal."""

    spark: SparkSession
    request: JobRequest
    given: reading.Input
    run: JobRun
    progress: ProgressReporter
    summary: report.Summary
    _written: int = 0
    """Rows of all tables so far."""

    def records(self, columns: Iterable[str]) -> DataFrame:
        """Return the records of the period, each once."""
        return reading.frame(self.spark, self.given, columns)

    def write(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute a table from records, and write it; the returned frame reads the written table."""
        return self._write(name, frame, self.given.records)

    def derive(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute and write a table from other tables: they are far shorter than the records, and so is its plan."""
        return self._write(name, frame, self._written)

    def _write(self, name: str, frame: DataFrame, rows: int) -> DataFrame:
        table = schemas.table(self.run.job, name)
        fit(self.spark, rows)
        with self.step(name):
            self.run.write(frame, table)
        self._written += report.rows_of(self.run, table)
        return self.run.read(self.spark, table)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Show a step on the terminal."""
        with self.progress.stage(self.spark.sparkContext, self.run.job, name):
            yield


Build = Callable[[Work], None]


class JobRunner:
    """Runs jobs one after the other with one inspection of the input."""

    def __init__(self, spark: SparkSession, request: JobRequest, progress: ProgressReporter) -> None:
        self._spark = spark
        self._request = request
        self._progress = progress
        self._given: reading.Input | None = None
        self._refused: set[str] = set()

    def run(self, job: str, build: Build) -> dict[str, Any]:
        """Run one job; return its report.

        Raises:
            Problem: there is no input folder.
            Exception: any error of Spark or the system.
        """
        check_input(self._request.input)
        for attempt in range(1, ATTEMPTS + 1):
            if self._given is None:
                self._given = self._read_input(job, thorough=attempt > 1)
            try:
                return self._once(job, build, self._given)
            except Exception as error:
                given, self._given = self._given, None
                if given is not None and given.thorough:
                    self._refuse(given, error)
                if attempt == ATTEMPTS or not _READ_FAILED.search(" ".join(chain(error))):
                    raise
                self._progress.say(job, "a segment could not be read: check all of them and begin again", 0, 0)
        raise AssertionError("the last attempt returns or raises")

    def _read_input(self, job: str, *, thorough: bool) -> reading.Input:
        stage = "check every page of the segments" if thorough else "inspect the segments"
        return reading.inspect(
            self._request.input,
            self._request.period,
            lambda done, total: self._progress.say(job, stage, done, total),
            thorough=thorough,
            refused=self._refused,
            staging=self._request.staging,
        )

    def _refuse(self, given: reading.Input, error: Exception) -> None:
        """Leave out the segment that Spark names in its error, although every page of it seemed valid."""
        named = _NAMED.search(" ".join(chain(error)))
        path = unquote(named[1]) if named else ""
        self._refused |= {segment.path for segment in given.segments if path.endswith(segment.path.lstrip("/"))}

    def _once(self, job: str, build: Build, given: reading.Input) -> dict[str, Any]:
        began = time.monotonic()
        run = JobRun.begin(self._request.output, job, self._request.staging)
        work = Work(self._spark, self._request, given, run, self._progress, report.Summary(run))
        fit(self._spark, given.records)
        try:
            build(work)
            with work.step("duplicates"):
                doubled = reading.duplicates(self._spark, given)
            with work.step("commit"):
                took_s = time.monotonic() - began
                made = report.document(
                    run, self._request.domain, self._request.period, given, doubled, work.summary, took_s
                )
                run.commit(made)
            return made
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                self._spark.sparkContext.cancelAllJobs()
            with suppress(Exception):  # also when Java has died, so that nothing can be cancelled
                run.abandon()
            raise


def check_input(place: Location) -> None:
    """Raise JobProblem if there is no such folder. An object store has none before the first object is in it."""
    if place.is_local and not Path(place.root).is_dir():
        raise JobProblem(f"There is no folder {place.address} to read records from. Check --input.")
