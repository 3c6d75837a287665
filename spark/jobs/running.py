"""The life of a job: look at the segments, read, transform, write, commit.

A segment that turns out to be damaged while Spark reads it, or that was joined or removed meanwhile, makes the job begin
again, with every page of every segment looked at first. Whatever else goes wrong, the run's folder is removed and the
report of before stays.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from spark import reading, report, schemas
from spark.periods import Period
from spark.places import Place
from spark.problems import Problem, chain
from spark.progress import Progress
from spark.session import fit
from spark.writing import Run

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ATTEMPTS = 10
"""The first looks at footers only, the others at everything. What Java's reader of Parquet refuses all the same, as it is
stricter than ours, is left out one segment at a time."""
_NAMED = re.compile(r"while reading file (\S+?\.parquet)")
_READ_FAILED = re.compile(r"FAILED_READ_FILE|FileNotFound|does not exist|PATH_NOT_FOUND|[Pp]arquet.*(Exception|Error)")


@dataclass(slots=True)
class Request:
    """What is asked of a job.

    Attributes:
        domain: name of this domain: the issuer that is not foreign.
        lookback_days: of records before the period that anomalies are compared with.
        limits: for the forecast (docs/reports.md).
    """

    input: Place
    output: Place
    period: Period = field(default_factory=Period)
    domain: str = "localhost"
    lookback_days: int = 30
    limits: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Work:
    """What a job's `build` works with: records in, tables out, each with its step on the terminal."""

    spark: SparkSession
    request: Request
    given: reading.Input
    run: Run
    progress: Progress
    summary: report.Summary
    _written: int = 0
    """Rows of all tables so far."""

    def records(self, columns: Iterable[str]) -> DataFrame:
        """The records of the period, each once."""
        return reading.frame(self.spark, self.given, columns)

    def write(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute a table of records, and write it; what is returned reads what was written."""
        return self._write(name, frame, self.given.records)

    def derive(self, name: str, frame: DataFrame) -> DataFrame:
        """The same for a table that is computed of others: they are far shorter than the records, and so is its plan."""
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
        """A step on the terminal."""
        with self.progress.stage(self.spark.sparkContext, self.run.job, name):
            yield


Build = Callable[[Work], None]


class Runner:
    """Runs jobs one after the other over one look at the input."""

    def __init__(self, spark: SparkSession, request: Request, progress: Progress) -> None:
        self._spark = spark
        self._request = request
        self._progress = progress
        self._given: reading.Input | None = None
        self._refused: set[str] = set()

    def run(self, job: str, build: Build) -> dict[str, Any]:
        """Run one job; its report.

        Raises:
            Problem: there is no input folder.
            Exception: whatever Spark or the system says.
        """
        check_input(self._request.input)
        for attempt in range(1, ATTEMPTS + 1):
            if self._given is None:
                self._given = self._look(job, thorough=attempt > 1)
            try:
                return self._once(job, build, self._given)
            except Exception as error:
                given, self._given = self._given, None
                if given is not None and given.thorough:
                    self._refuse(given, error)
                if attempt == ATTEMPTS or not _READ_FAILED.search(" ".join(chain(error))):
                    raise
                self._progress.say(job, "a segment could not be read: look at all of them and begin again", 0, 0)
        raise AssertionError("the last attempt returns or raises")

    def _look(self, job: str, *, thorough: bool) -> reading.Input:
        stage = "look at every page of the segments" if thorough else "look at the segments"
        return reading.inspect(
            self._request.input,
            self._request.period,
            lambda done, total: self._progress.say(job, stage, done, total),
            thorough=thorough,
            refused=self._refused,
        )

    def _refuse(self, given: reading.Input, error: Exception) -> None:
        """Leave out the segment that Spark names in its error, though every page of it seemed good."""
        named = _NAMED.search(" ".join(chain(error)))
        path = unquote(named[1]) if named else ""
        self._refused |= {segment.path for segment in given.segments if path.endswith(segment.path.lstrip("/"))}

    def _once(self, job: str, build: Build, given: reading.Input) -> dict[str, Any]:
        began = time.monotonic()
        run = Run.begin(self._request.output, job)
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
            with suppress(Exception):  # the first error is the one to tell
                self._spark.sparkContext.cancelAllJobs()
            with suppress(Exception):  # also when Java has died, which nobody can cancel anything of
                run.abandon()
            raise


def check_input(place: Place) -> None:
    """Raises Problem if there is no such folder."""
    from pyarrow import fs

    if place.filesystem.get_file_info(place.root).type != fs.FileType.Directory:
        raise Problem(f"There is no folder {place.address} to read records from: check --input.")
