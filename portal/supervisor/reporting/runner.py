"""Creation of one report: start Spark, watch it, store its result. Life cycle: see the package."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import close_old_connections

from eventing.conf import config
from eventing.reports.models import ReportRun
from eventing.reports.rules.runs import BEAT_S, Extent, ReportPeriod
from eventing.reports.selectors.report_output import reports_place
from eventing.reports.selectors.reports import report_found
from eventing.reports.services.reports import report_fail, report_finish, report_progress, report_release
from eventing.rps.selectors.quotas import rps_in_domain
from portal.supervisor.reporting import reporter
from portal.supervisor.reporting.process import JobProgress, SparkProcess
from spark.locations import Location
from spark.writing import MANIFEST, REPORT, current
from workers.reporting import Extents

logger = logging.getLogger(__name__)

POLL_S = 0.25
SUMMARY_BYTES_MAX = 64 * 1024
"""Of the part of a report that its row holds; the whole is a file."""
WORK = "reports-work"
"""Of the data folder: where Spark spills; a folder for each run, while it is made."""
WRONG_ORDER = 2
"""Exit status of a job with an invalid command line: a retry would not help."""


class ReportRunner:
    """Makes the report of one run, as its attempt `attempt`."""

    def __init__(self, run: int, attempt: int) -> None:
        self._run, self._attempt = run, attempt
        self._data = config().data_path
        self._stop = threading.Event()
        self._supervised = reporter.supervisor_of(self._data) is not None
        self._told: JobProgress | None = None
        self._told_at = float("-inf")

    def make(self) -> None:
        """Make the report and store its result or failure in the run."""
        signal.signal(signal.SIGTERM, lambda *_: self._stop.set())
        signal.signal(signal.SIGINT, lambda *_: self._stop.set())
        row = report_found(self._run)
        if row is None or not self._alive():
            logger.info("run %d is not this process's any more", self._run)
            return
        work = self._data / WORK / str(self._run)
        reporter.note(self._data)
        try:
            self._make(row, work)
        except Exception as error:  # the outermost: the run must learn how it ended
            logger.exception("run %d failed", self._run)
            report_fail(run=self._run, attempt=self._attempt, reason=f"The report could not be made: {error}")
        finally:
            shutil.rmtree(work, ignore_errors=True)
            reporter.forget(self._data)

    def _make(self, row: ReportRun, work: Path) -> None:
        period = ReportPeriod(row.period_from, row.period_to)
        output = reports_place().inside(period.name)
        there = Extents(period).of(period)  # before Spark reads: later segments are late, and the report is made again
        make_room(work)
        before = _runs(output, row.job)
        spark = SparkProcess(
            _command(row, output.address, work),
            Path(settings.BASE_DIR),
            os.environ,
            memory_mb=config().report_memory_mb,
            nice=config().report_nice,
        )
        try:
            self._watch(spark, row, period.name, there)
        finally:
            spark.end()
            _remove_unfinished(output, row.job, before)

    def _watch(self, spark: SparkProcess, row: ReportRun, folder: str, there: Extent) -> None:
        mine: dict[str, Any] = {"run": self._run, "attempt": self._attempt}
        deadline = time.monotonic() + config().report_max_s
        while (status := spark.wait(POLL_S)) is None:
            if self._must_stop():
                spark.end()
                report_release(**mine)
                logger.info("run %d is given back: the domain stops", self._run)
                return
            if time.monotonic() > deadline:
                spark.end()
                reason = (
                    f"It took longer than {config().report_max_s} s (HERALD_REPORT_MAX_S) and was stopped; ask for a "
                    "shorter period, or raise the limit."
                )
                report_fail(**mine, reason=reason, passing=False)
                return
            if not self._say(spark.progress):
                logger.info("run %d was cancelled, or taken from this process", self._run)
                return
        if self._must_stop() and status != 0:
            report_release(**mine)
        elif status == 0:
            self._finish(row, folder, there)
        else:
            report_fail(**mine, reason=_reason(status, spark.said), passing=status != WRONG_ORDER)

    def _finish(self, row: ReportRun, folder: str, there: Extent) -> None:
        output = reports_place().inside(folder)
        made = current(output, row.job)
        if made is None:
            report_fail(
                run=self._run,
                attempt=self._attempt,
                reason=f"The job ended well and left no report in {output.address}.",
            )
            return
        path = f"{folder}/{row.job}/run={made['run']}"
        report_finish(run=self._run, attempt=self._attempt, output=path, summary=_summary(made), there=there)
        logger.info("run %d is done in %s s", self._run, made["took_s"])

    def _alive(self) -> bool:
        return report_progress(run=self._run, attempt=self._attempt)

    def _say(self, progress: JobProgress | None) -> bool:
        """Report progress and renew the lease, at most every BEAT_S. Returns False when the run has another owner."""
        now = time.monotonic()
        if now - self._told_at < BEAT_S:
            return True
        self._told_at = now
        close_old_connections()
        if progress is None or progress == self._told:
            return self._alive()
        self._told = progress
        return report_progress(
            run=self._run, attempt=self._attempt, stage=progress.stage, done=progress.done, total=progress.total
        )

    def _must_stop(self) -> bool:
        if self._supervised and reporter.supervisor_of(self._data) is None:
            self._stop.set()
        return self._stop.is_set()


def make_room(work: Path) -> None:
    """Create the empty folder of a run. Other folders were left by killed runs, because one report is made at a
    time."""
    shutil.rmtree(work.parent, ignore_errors=True)
    work.mkdir(parents=True, mode=0o700)


def _command(row: ReportRun, output: str, work: Path) -> list[str]:
    """Return the command line of the Spark job."""
    limits = work / "limits.json"
    limits.write_text(json.dumps(_limits()))
    return [
        *(sys.executable, "-m", "spark", row.job),
        *("--input", config().records_place, "--output", output),
        *("--from", row.period_from.isoformat(), "--to", row.period_to.isoformat()),
        *("--domain", config().domain, "--limits", str(limits)),
        *("--master", config().spark_master, "--memory", f"{config().report_memory_mb}m"),
        *("--work", str(work), "--progress", "json"),
    ]


def _limits() -> dict[str, int]:
    """The limits that the load report forecasts the reaching of; 0 is none."""
    chosen = config()
    limits = {
        "rp-publish-events": chosen.rp_events_per_s,
        "rp-publish-bytes": chosen.rp_bytes_per_s,
        "domain-publish-events": chosen.domain_events_per_s,
        "domain-publish-bytes": chosen.domain_bytes_per_s,
        "domain-rps": chosen.rps_max,
        "domain-rps-used": rps_in_domain(),
    }
    return {name: value for name, value in limits.items() if value or name == "domain-rps-used"}


def _summary(made: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a report that the row stores; without the names of skipped segments where they are too
    long."""
    found = {"took_s": made["took_s"], "headline": made["headline"], "input": made["input"]}
    if len(json.dumps(found)) > SUMMARY_BYTES_MAX:
        found["input"] = {**found["input"], "skipped": []}
    return found


def _reason(status: int, said: str) -> str:
    if said:
        return said
    if status < 0:
        return f"Its process was killed by {signal.Signals(-status).name}; the machine may have run out of memory."
    return f"Its process ended with exit status {status} and said nothing."


def _runs(place: Location, job: str) -> set[str]:
    return {entry.path for entry in place.entries(place.path(job)) if not entry.is_file}


def _remove_unfinished(place: Location, job: str, before: set[str]) -> None:
    """Remove partial output of a killed job, whose own cleanup may not have run."""
    try:
        for path in _runs(place, job) - before:
            if place.read(f"{path}/{REPORT}") is None:
                place.remove_folder(path)
        if place.read(place.path(job, MANIFEST)) is None and not _runs(place, job):
            place.remove_folder(place.path(job))
    except OSError as error:
        logger.warning("what the job had begun to write is left: %s", error)
