"""Leases of periodic tasks: taking, renewing and checking runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import F, FloatField, Func, Q

from eventing.periodic.models import PeriodicTask
from eventing.periodic.rules import EARLY_S, LEASE_S, TaskStanding, is_due, is_held, lease_s, next_due_in_s
from eventing.sql.locking import abandoned_after

HOLDER_CHARS_MAX = 100
TAKING_S = 2.0  # bound: seconds that a process which takes tasks sends nothing meanwhile; it takes none, and blocks no other host


class DatabaseClock(Func):
    """The present time of the database's clock, Unix seconds; of the moment, not of the transaction's beginning."""

    output_field = FloatField()

    def as_sqlite(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, tuple[str | int, ...]]:
        """Return SQLite's expression."""
        return "((julianday('now') - 2440587.5) * 86400.0)", ()

    def as_postgresql(self, compiler: Any, connection: Any, **_: Any) -> tuple[str, tuple[str | int, ...]]:
        """Return PostgreSQL's expression."""
        return "extract(epoch from clock_timestamp())::double precision", ()


class Superseded(Exception):
    """Another run of the periodic task has begun: this one must not write any more."""


class Run(NamedTuple):
    """One run of a periodic task, valid while `fence` is its newest number."""

    name: str
    fence: int


_run: ContextVar[Run | None] = ContextVar("periodic_run", default=None)


def tasks_register(names: Iterable[str]) -> None:
    """Make the rows of tasks that have none; they are due at once."""
    PeriodicTask.objects.bulk_create([PeriodicTask(name=name) for name in names], ignore_conflicts=True)


def tasks_standing(names: Iterable[str]) -> list[TaskStanding]:
    """Return how the tasks stand."""
    now = DatabaseClock()
    rows = PeriodicTask.objects.filter(name__in=list(names)).order_by("name")
    found = rows.values_list("name", "fence", F("due_at") - now, F("lease_until") - now)
    return [TaskStanding(*row) for row in found]


def tasks_take(tasks: Iterable[TaskStanding], periods_s: Mapping[str, float], holder: str) -> list[Run]:
    """Take those of the tasks that are due and that no other process has taken since. Returns their runs.

    Args:
        tasks: from `tasks_standing`.
        periods_s: their periods.
        holder: this process, for people.
    """
    due = sorted(task for task in tasks if is_due(task, periods_s[task.name]))
    if not due:
        return []
    with transaction.atomic():  # one write to the disk for all of them
        abandoned_after(TAKING_S)
        return [run for task in due if (run := _take(task, periods_s[task.name], holder)) is not None]


def _take(task: TaskStanding, period_s: float, holder: str) -> Run | None:
    now = DatabaseClock()
    free = Q(lease_until__lte=now) | Q(lease_until__gt=now + LEASE_S)
    due = Q(due_at__lte=now + EARLY_S) | Q(due_at__gt=now + period_s + EARLY_S)
    taken = PeriodicTask.objects.filter(free, due, name=task.name, fence=task.fence).update(
        fence=task.fence + 1,
        holder=holder[:HOLDER_CHARS_MAX],
        due_at=now + next_due_in_s(task.due_in_s, period_s),
        lease_until=now + lease_s(period_s),
    )
    return Run(task.name, task.fence + 1) if taken else None


def run_left_s(run: Run) -> float:
    """Return how long the lease of a run still lasts; 0 or negative if it has ended. Raises Superseded."""
    found = PeriodicTask.objects.filter(name=run.name, fence=run.fence).values_list(
        F("lease_until") - DatabaseClock(), flat=True
    )
    for left_s in found:
        return float(left_s) if is_held(left_s) else 0.0
    raise Superseded(run.name)


def run_renew(run: Run) -> None:
    """Renew the lease of a run for LEASE_S, also if it has ended and nobody has taken the task since. Raises Superseded."""
    if not PeriodicTask.objects.filter(name=run.name, fence=run.fence).update(lease_until=DatabaseClock() + LEASE_S):
        raise Superseded(run.name)


def run_release(run: Run, due_in_s: float | None = None) -> None:
    """End the lease of a run before its time. Harmless when repeated, or if another run has begun.

    Args:
        due_in_s: when the task is due again; None: as when it was taken.
    """
    due = {} if due_in_s is None else {"due_at": DatabaseClock() + due_in_s}
    PeriodicTask.objects.filter(name=run.name, fence=run.fence).update(lease_until=0.0, **due)


@contextmanager
def running(run: Run) -> Iterator[None]:
    """Have `run_require` check this run within the block."""
    token = _run.set(run)
    try:
        yield
    finally:
        _run.reset(token)


def run_present() -> Run | None:
    """Return the run that this thread carries out; None outside of runs."""
    return _run.get()


def run_require() -> None:
    """Check within the caller's transaction, before it writes what must not be written twice, that the present run is the newest one,
    and keep others from being taken until the transaction ends. Outside of a run it checks nothing. Raises Superseded.
    """
    run = run_present()
    if run is None:
        return
    rows = PeriodicTask.objects.select_for_update().filter(
        name=run.name, fence=run.fence, lease_until__gt=DatabaseClock()
    )
    if not list(rows):
        raise Superseded(run.name)
