"""Start of report runs: available input, whether reports can be made here, and the process that makes one.

A run may take an hour: it is made by a process of its own (`python -m portal.supervisor.reporting RUN ATTEMPT`), in a session of
its own, beyond the reach of tasks' time limits and a worker's end. A process that never renews its lease loses the run.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec

from django.conf import settings

from eventing.conf import config
from eventing.core.container import per_process
from eventing.reports.rules.runs import DAYS_BACK, Extent, ReportPeriod
from eventing.reports.services.reports import report_claim, report_fail, reports_due, reports_recover
from eventing.store.presence import engine_problem_note
from spark import periods, reading
from spark.java import java_check, java_identity
from spark.locations import Location
from spark.problems import JobProblem

logger = logging.getLogger(__name__)

JOINED = "joined-"
"""Prefix of the names of segments made by compaction."""
CHECK_AGAIN_S = 30.0
"""Seconds for which a problem with Java is believed. A Java that runs is asked again only when another file takes its place: the
check takes 0.1 s of a core.
"""
LOG_BYTES_MAX = 4 * 1024**2
HOUR = timedelta(hours=1)


def reports_plan() -> int:
    """Queue due reports. Returns how many."""
    if config().reports == "off":
        return 0
    return reports_due(extent=Extents().of)


def reports_start() -> int:
    """Start the next run, unless one runs. Returns how many were started."""
    reports_recover()
    if config().reports == "off":
        return 0
    problem = engine_problem()
    engine_problem_note(problem)
    if problem:
        return 0
    run = report_claim()
    if run is None:
        return 0
    try:
        spawn(run.id, run.attempt)
    except OSError as error:
        report_fail(run=run.id, attempt=run.attempt, reason=f"Its process could not be started: {error}.")
        return 0
    return 1


def engine_problem() -> str:
    """Return why reports cannot be made on this machine, in a sentence with the remedy; empty if they can."""
    engine, java = _engine(), java_identity()
    if java != engine.java or (engine.problem and time.monotonic() - engine.checked_at >= CHECK_AGAIN_S):
        engine.java, engine.problem, engine.checked_at = java, _problem(), time.monotonic()
    return engine.problem


class _Engine:
    """The last look for Java and PySpark: for which file, with which result, and when (monotonic seconds)."""

    java: tuple[object, ...] | None = None
    problem = ""
    checked_at = 0.0


_engine = per_process(_Engine)


def _problem() -> str:
    try:
        java_check()
    except JobProblem as found:
        return str(found)
    if find_spec("pyspark") is None:
        return "Reports need PySpark, which is not installed; the server's doctor command says how to install it."
    return ""


def spawn(run: int, attempt: int) -> subprocess.Popen[bytes]:
    """Start the process that makes a run; its output is in logs/reports.log. Raises OSError."""
    log = config().data_path / "logs" / "reports.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_BYTES_MAX:
        log.replace(log.with_name(f"{log.name}.1"))
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "HERALD_DATA_DIR": str(config().data_path),
        "HERALD_PROCESS": "reports",
    }
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "portal.supervisor.reporting", str(run), str(attempt)],
            cwd=settings.BASE_DIR,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


class Extents:
    """The existing segments by hour, from one listing: of `period`, or of the days that the schedule covers."""

    def __init__(self, period: ReportPeriod | None = None) -> None:
        begin = datetime.now(UTC) - timedelta(days=DAYS_BACK + 1)
        span = periods.Period(period.begin, period.end) if period else periods.Period(begin, periods.END)
        self._hours: dict[datetime, Extent] = {}
        for hour, entry in reading.listing(Location(config().records_place), span):
            if not entry.name.startswith(JOINED):
                known = self._hours.get(hour, Extent())
                self._hours[hour] = Extent(known.segments + 1, max(known.newest, entry.modified_at))

    def of(self, period: ReportPeriod) -> Extent:
        """Return the extent of a period within the listing: of all hours that it touches."""
        hour, found = period.begin.replace(minute=0, second=0, microsecond=0), Extent()
        while hour < period.end:
            one = self._hours.get(hour, Extent())
            found = Extent(found.segments + one.segments, max(found.newest, one.newest))
            hour += HOUR
        return found
