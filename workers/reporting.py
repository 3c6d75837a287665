"""Starting runs of reports: what there is to read, whether they can be made here, and the process that makes one.

A run may take an hour: it is made by a process of its own (`python -m portal.reporting RUN ATTEMPT`), in a session of its
own, which neither a task's time limits nor a worker's end reach. One that never says a word loses its lease.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from eventing.conf import config
from eventing.reports.rules.runs import DAYS_BACK, Extent, Period
from eventing.reports.selectors.reports import report_engine_tell
from eventing.reports.services.reports import report_claim, report_fail, reports_due, reports_recover
from spark import periods, reading
from spark.java import java_check
from spark.places import Place
from spark.problems import Problem

logger = logging.getLogger(__name__)

JOINED = "joined-"
"""How the names of segments begin that compaction made."""
LOOK_AGAIN_S = 30.0
"""Java that was there, or was not, is believed to be so for this long: asking takes 0.1 s."""
LOG_BYTES_MAX = 4 * 1024**2
HOUR = timedelta(hours=1)

_engine: tuple[float, str] = (-LOOK_AGAIN_S, "")


def reports_plan() -> int:
    """Queue what is due. Returns how many."""
    if config().reports == "off":
        return 0
    return reports_due(extent=Extents().of)


def reports_start() -> int:
    """Start the next run, unless one runs. Returns how many were started."""
    reports_recover()
    if config().reports == "off":
        return 0
    problem = engine_problem()
    report_engine_tell(problem)
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
    """Why reports cannot be made on this machine, in a sentence that says what to do; empty if they can."""
    global _engine
    at, problem = _engine
    if time.monotonic() - at >= LOOK_AGAIN_S:
        problem = _look()
        _engine = time.monotonic(), problem
    return problem


def _look() -> str:
    try:
        java_check()
    except Problem as found:
        return str(found)
    if find_spec("pyspark") is None:
        return "Reports need PySpark, which is not installed: run make run again, or install requirements/reports.txt."
    return ""


def spawn(run: int, attempt: int) -> subprocess.Popen[bytes]:
    """Start the process that makes a run. What it says of itself is in logs/reports.log. Raises OSError."""
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
            [sys.executable, "-m", "portal.reporting", str(run), str(attempt)],
            cwd=settings.BASE_DIR,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )


class Extents:
    """The segments there are, by hour, as one listing shows them: of `period`, or of the days that the schedule looks at."""

    def __init__(self, period: Period | None = None) -> None:
        begin = datetime.now(UTC) - timedelta(days=DAYS_BACK + 1)
        span = periods.Period(period.begin, period.end) if period else periods.Period(begin, periods.END)
        self._hours: dict[datetime, Extent] = {}
        root = config().records_path
        if not Path(root).is_dir():
            return
        for hour, entry in reading.listing(Place(str(root)), span):
            if not entry.name.startswith(JOINED):
                known = self._hours.get(hour, Extent())
                self._hours[hour] = Extent(known.segments + 1, max(known.newest, entry.modified_at))

    def of(self, period: Period) -> Extent:
        """Of a period within what was listed: of all hours that it touches."""
        hour, found = period.begin.replace(minute=0, second=0, microsecond=0), Extent()
        while hour < period.end:
            one = self._hours.get(hour, Extent())
            found = Extent(found.segments + one.segments, max(found.newest, one.newest))
            hour += HOUR
        return found
