"""Due times of periodic tasks, and leases of their runs. Pure; times are seconds."""

from __future__ import annotations

from typing import NamedTuple

LEASE_S = 4.0
"""Time for which a run holds its task without a renewal: a task whose holder was killed is run elsewhere LEASE_S + LOOK_S later at most."""
BEGIN_ABOVE_S = 0.75
"""A run that begins with less left renews its lease first."""
RENEW_AFTER_SHARE = 1 / 3
"""Share of what is left of a lease after which a run renews it; most runs end before."""
STOP_BELOW_S = 0.5
"""A run that could not renew its lease is stopped when less than this is left."""
LOOK_S = 1.0
"""Time between two looks of a scheduler."""
EARLY_S = LOOK_S / 2
"""A task is taken that much before it is due, so that looks which are a little late keep the period."""
LEASE_SHARE = 0.75
"""Share of a short period for which a run holds its task, so that it is free at the next look without a word at the run's end."""


PERIOD_S_SHORT = 5.0
"""Up to this period a task is due again a period later whatever became of its run, so that its run's end needs no write; above it, the end
of a run states it: what a killed holder began is then due when its lease has ended, and not a period later."""


class TaskStanding(NamedTuple):
    """A task in the database.

    Attributes:
        name: its name.
        fence: number of its newest run.
        due_in_s: time until it is due; negative: since when.
        left_s: time until the lease of its newest run ends; 0 or negative: it has ended.
    """

    name: str
    fence: int
    due_in_s: float
    left_s: float


def lease_s(period_s: float) -> float:
    """Return the lease of a new run of a task with this period."""
    return min(LEASE_S, period_s * LEASE_SHARE)


def is_held(left_s: float) -> bool:
    """Return whether a run holds a task. A lease longer than any that is granted is of a clock that was set back: it counts as ended."""
    return 0 < left_s <= LEASE_S


def is_due(task: TaskStanding, period_s: float) -> bool:
    """Return whether a task can be taken. A time later than any that is set is of a clock that was set back: it is due."""
    return not EARLY_S < task.due_in_s <= period_s + EARLY_S and not is_held(task.left_s)


def is_ended_by_word(period_s: float) -> bool:
    """Return whether the end of a run states when its task is due again."""
    return period_s > PERIOD_S_SHORT


def next_due_in_s(due_in_s: float, period_s: float) -> float:
    """Return when a task that is taken now is due again, unless its lease lasts longer. It keeps its phase; periods that were missed are not
    made up for. One whose end states it is due at once.
    """
    if is_ended_by_word(period_s):
        return 0.0
    next_s = due_in_s + period_s
    return next_s if EARLY_S < next_s <= period_s + EARLY_S else period_s
