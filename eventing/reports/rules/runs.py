"""Runs of reports: which jobs there are, what each state of a run means, what leads from one to another, which are due. Pure.

The life of a run: it is asked for, by somebody or by the schedule -> `queued` -> one runner claims it -> `running`, with its
stage and a lease that the runner prolongs -> `done`, or `failed` with the reason in words. A failure that may pass by itself,
and a runner that fell silent, lead back to `queued` until ATTEMPTS_MAX; a domain that stops gives the run back without
counting. When a later run of the same job and period is done, the earlier one is `superseded`.

A run's attempt is its fence: every claim counts it up, and only who names the present one may write (reports/services/reports.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from eventing.core.errors import Conflict, InvalidRequest

REPORTS = ("access", "load", "placement", "overlap", "federation")
"""Jobs that make a report of records (docs/reports.md)."""
COMPACTION = "compaction"
JOBS = (*REPORTS, COMPACTION)
HOURLY = ("access", "load")
"""Made of every hour; the others need days to say anything."""
DAILY = JOBS
"""Made of every day; compaction last, when what it joins has been read."""

GRACE = timedelta(minutes=10)
"""After a period's end until its report is due: gateways write segments within two minutes (docs/records.md)."""
HOURS_BACK = 24
DAYS_BACK = 7
"""So far back a domain that was away makes up for reports, and looks for segments that came late."""

ATTEMPTS_MAX = 3
BACK_OFF = (timedelta(minutes=1), timedelta(minutes=10))
"""Before the second and the third attempt."""
LEASE = timedelta(seconds=30)
"""A runner says every BEAT_S that it lives; one that was silent for so long has died."""
BEAT_S = 2.0
START_LEASE = timedelta(seconds=90)
"""From the claim to the runner's first word: a Python process that starts on a machine that is busy."""

PERIOD_MIN = timedelta(minutes=1)
PERIOD_MAX = timedelta(days=3660)
DEFAULT_PERIOD = timedelta(days=1)
OPEN_MAX = 500
"""Runs queued at a time; beyond it nobody may ask for more."""
REASON_CHARS_MAX = 500
STAGE_CHARS_MAX = 100


class State(StrEnum):
    """How far a run is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SUPERSEDED = "superseded"


class Act(StrEnum):
    """What happens to a run."""

    CLAIM = "claim"  # a runner takes it
    PROGRESS = "progress"
    FINISH = "finish"
    FAIL = "fail"  # for good
    RETRY = "retry"  # it failed, or its runner fell silent, and is tried again
    RELEASE = "release"  # the domain stops
    CANCEL = "cancel"
    SUPERSEDE = "supersede"  # a later run of the same is done


OPEN = frozenset({State.QUEUED, State.RUNNING})
GRAPH: Mapping[tuple[State, Act], State] = MappingProxyType(
    {
        (State.QUEUED, Act.CLAIM): State.RUNNING,
        (State.QUEUED, Act.CANCEL): State.FAILED,
        (State.RUNNING, Act.PROGRESS): State.RUNNING,
        (State.RUNNING, Act.FINISH): State.DONE,
        (State.RUNNING, Act.FAIL): State.FAILED,
        (State.RUNNING, Act.RETRY): State.QUEUED,
        (State.RUNNING, Act.RELEASE): State.QUEUED,
        (State.RUNNING, Act.CANCEL): State.FAILED,
        (State.DONE, Act.SUPERSEDE): State.SUPERSEDED,
    }
)
"""Where an act leads. What is not here is refused."""


def acted(state: State, act: Act) -> State:
    """The state after an act. Raises Conflict, saying how it is, where the act makes no sense."""
    try:
        return GRAPH[state, act]
    except KeyError:
        raise Conflict(f"The run is {state}; there is nothing to {act}.", state=state) from None


def after_failure(failures: int, passing: bool) -> tuple[Act, timedelta]:
    """What a failure leads to, and after which wait.

    Args:
        failures: of this run so far, the present one counted.
        passing: whether trying again may help: False for one that took too long, or was given a wrong order.
    """
    if passing and failures < ATTEMPTS_MAX:
        return Act.RETRY, BACK_OFF[min(failures, len(BACK_OFF)) - 1]
    return Act.FAIL, timedelta(0)


@dataclass(frozen=True, slots=True)
class Period:
    """From an instant to another, which is not part of it; both UTC."""

    begin: datetime
    end: datetime

    @property
    def name(self) -> str:
        """As folders call it: 20261121T200000Z-20261121T210000Z."""
        return f"{self.begin:%Y%m%dT%H%M%SZ}-{self.end:%Y%m%dT%H%M%SZ}"


def period_asked(begin: datetime | None, end: datetime | None, now: datetime) -> Period:
    """The period somebody asks for, in whole seconds; without an end up to `now`, without a begin a day long.

    Raises InvalidRequest when it is empty, too long, or not over before tomorrow.
    """
    end = (end or now).replace(microsecond=0)
    try:
        begin = (begin or end - DEFAULT_PERIOD).replace(microsecond=0)
    except OverflowError:
        begin = end
    if end - begin < PERIOD_MIN:
        raise InvalidRequest("`to` must be at least a minute later than `from`.")
    if end - begin > PERIOD_MAX:
        raise InvalidRequest(f"A period has at most {PERIOD_MAX.days} days.")
    if end > now + timedelta(days=1):
        raise InvalidRequest("`to` is in the future: a report is about what was.")
    return Period(begin, end)


@dataclass(frozen=True, slots=True)
class Due:
    """A report that the schedule wants."""

    job: str
    period: Period
    cadence: str
    """hourly or daily."""


def due(now: datetime) -> Iterator[Due]:
    """What should have been made by `now` (UTC), oldest first, hours before days; compaction last."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    for back in range(HOURS_BACK, 0, -1):
        period = Period(hour - timedelta(hours=back), hour - timedelta(hours=back - 1))
        if period.end + GRACE <= now:
            yield from (Due(job, period, "hourly") for job in HOURLY)
    day = hour.replace(hour=0)
    for back in range(DAYS_BACK, 0, -1):
        period = Period(day - timedelta(days=back), day - timedelta(days=back - 1))
        if period.end + GRACE <= now:
            yield from (Due(job, period, "daily") for job in DAILY)


@dataclass(frozen=True, slots=True)
class Extent:
    """The segments of a period as a listing shows them; those that compaction made are not counted: they hold nothing new.

    Attributes:
        segments: how many.
        newest: when the newest was written, Unix seconds; 0 if there is none.
    """

    segments: int = 0
    newest: float = 0.0

    def later_than(self, known: Extent) -> bool:
        """Whether something came since `known`. Compaction and retention only take away."""
        return self.segments > known.segments or self.newest > known.newest
