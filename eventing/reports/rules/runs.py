"""Runs of reports: the jobs, the states of a run and their transitions, and the due runs. Pure.

The life of a run: requested, by a user or the schedule -> `queued` -> one runner claims it -> `running`, with its stage
and a lease that the runner renews -> `done`, or `failed` with the reason in words. A failure that may pass by itself,
and a runner whose lease expired, lead back to `queued` until ATTEMPTS_MAX; a domain that stops releases the run without
counting. When a later run of the same job and period is done, the earlier one is `superseded`.

A run's attempt is its fencing token: every claim increments it, and only the runner with the present one may write
(reports/services/reports.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from eventing.core.errors import Conflict, InvalidRequest

REPORTS = ("access", "load", "placement", "overlap", "federation")
"""Jobs that make a report from access records (docs/reports.md)."""
COMPACTION = "compaction"
JOBS = (*REPORTS, COMPACTION)
HOURLY = ("access", "load")
"""Jobs that run for every hour; the others need days of records."""
DAILY = JOBS
"""Jobs that run for every day; compaction last, when its input has been read."""

GRACE = timedelta(minutes=10)
"""Time after a period's end until its report is due: gateways write segments within two minutes (docs/records.md)."""
HOURS_BACK = 24
DAYS_BACK = 7
"""Days for which a domain that was stopped makes up reports and searches for late segments."""

ATTEMPTS_MAX = 3
BACK_OFF = (timedelta(minutes=1), timedelta(minutes=10))
"""Pauses before the second and the third attempt."""
LEASE = timedelta(seconds=30)
"""Lease of a runner, which renews it every BEAT_S."""
BEAT_S = 2.0
START_LEASE = timedelta(seconds=90)
"""Lease from the claim to the runner's first renewal: the start of a Python process on a busy machine."""

PERIOD_MIN = timedelta(minutes=1)
PERIOD_MAX = timedelta(days=3660)
DEFAULT_PERIOD = timedelta(days=1)
OPEN_MAX = 500
"""Most queued runs; beyond it a request is refused."""
REASON_CHARS_MAX = 500
STAGE_CHARS_MAX = 100


class ReportRunState(StrEnum):
    """State of a run."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SUPERSEDED = "superseded"


class RunTransition(StrEnum):
    """Action on a run."""

    CLAIM = "claim"  # a runner takes it
    PROGRESS = "progress"
    FINISH = "finish"
    FAIL = "fail"  # for good
    RETRY = "retry"  # the attempt failed, or its runner's lease expired; retry
    RELEASE = "release"  # the domain stops
    CANCEL = "cancel"
    SUPERSEDE = "supersede"  # a later run of the same is done


OPEN = frozenset({ReportRunState.QUEUED, ReportRunState.RUNNING})
GRAPH: Mapping[tuple[ReportRunState, RunTransition], ReportRunState] = MappingProxyType(
    {
        (ReportRunState.QUEUED, RunTransition.CLAIM): ReportRunState.RUNNING,
        (ReportRunState.QUEUED, RunTransition.CANCEL): ReportRunState.FAILED,
        (ReportRunState.RUNNING, RunTransition.PROGRESS): ReportRunState.RUNNING,
        (ReportRunState.RUNNING, RunTransition.FINISH): ReportRunState.DONE,
        (ReportRunState.RUNNING, RunTransition.FAIL): ReportRunState.FAILED,
        (ReportRunState.RUNNING, RunTransition.RETRY): ReportRunState.QUEUED,
        (ReportRunState.RUNNING, RunTransition.RELEASE): ReportRunState.QUEUED,
        (ReportRunState.RUNNING, RunTransition.CANCEL): ReportRunState.FAILED,
        (ReportRunState.DONE, RunTransition.SUPERSEDE): ReportRunState.SUPERSEDED,
    }
)
"""State after an act. An act without an entry is refused."""


def acted(state: ReportRunState, act: RunTransition) -> ReportRunState:
    """Return the state after an act. Raises Conflict if the act is not possible in this state."""
    try:
        return GRAPH[state, act]
    except KeyError:
        raise Conflict(f"The run is {state}; there is nothing to {act}.", state=state) from None


def after_failure(failures: int, passing: bool) -> tuple[RunTransition, timedelta]:
    """Return the act after a failure, and the pause before it.

    Args:
        failures: failures of this run so far, the present one included.
        passing: whether a retry may help: False for a run that took too long, or was given a wrong order.
    """
    if passing and failures < ATTEMPTS_MAX:
        return RunTransition.RETRY, BACK_OFF[min(failures, len(BACK_OFF)) - 1]
    return RunTransition.FAIL, timedelta(0)


@dataclass(frozen=True, slots=True)
class ReportPeriod:
    """A period from an instant to another, exclusive; both UTC."""

    begin: datetime
    end: datetime

    @property
    def name(self) -> str:
        """Return the name of its folder, as 20261121T200000Z-20261121T210000Z."""
        return f"{self.begin:%Y%m%dT%H%M%SZ}-{self.end:%Y%m%dT%H%M%SZ}"


def period_asked(begin: datetime | None, end: datetime | None, now: datetime) -> ReportPeriod:
    """Return the requested period, in whole seconds; without an end up to `now`, without a begin a day long.

    Raises InvalidRequest when it is empty, too long, or ends in the future.
    """
    end = (end or now).replace(microsecond=0)
    try:
        begin = (begin or end - DEFAULT_PERIOD).replace(microsecond=0)
    except OverflowError:
        begin = end
    if end - begin < PERIOD_MIN:
        raise InvalidRequest("`to` must be at least a minute later than `from`.")
    if end - begin > PERIOD_MAX:
        raise InvalidRequest(f"A period must have at most {PERIOD_MAX.days} days.")
    if end > now + timedelta(days=1):
        raise InvalidRequest("`to` must not be in the future.")
    return ReportPeriod(begin, end)


@dataclass(frozen=True, slots=True)
class DueReport:
    """A scheduled report that is due."""

    job: str
    period: ReportPeriod
    cadence: str
    """hourly or daily."""


def due(now: datetime) -> Iterator[DueReport]:
    """Yield the reports due by `now` (UTC), oldest first, hours before days; compaction last."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    for back in range(HOURS_BACK, 0, -1):
        period = ReportPeriod(hour - timedelta(hours=back), hour - timedelta(hours=back - 1))
        if period.end + GRACE <= now:
            yield from (DueReport(job, period, "hourly") for job in HOURLY)
    day = hour.replace(hour=0)
    for back in range(DAYS_BACK, 0, -1):
        period = ReportPeriod(day - timedelta(days=back), day - timedelta(days=back - 1))
        if period.end + GRACE <= now:
            yield from (DueReport(job, period, "daily") for job in DAILY)


@dataclass(frozen=True, slots=True)
class Extent:
    """The segments of a period; those that compaction made are not counted, because they contain nothing new.

    Attributes:
        segments: how many.
        newest: when the newest was written, Unix seconds; 0 if there is none.
    """

    segments: int = 0
    newest: float = 0.0

    def later_than(self, known: Extent) -> bool:
        """Return whether segments were added since `known`. Compaction and retention only remove."""
        return self.segments > known.segments or self.newest > known.newest
