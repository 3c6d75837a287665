"""Start of a forwarder's periodic work: its own tasks, and the schedule of the domain's."""

from __future__ import annotations

from collections.abc import Callable

from celery import Celery

from workers.in_process_scheduler import repeat
from workers.leased_scheduler import LeasedScheduler, ThreadRuns, in_queue
from workers.schedule import FORWARDERS_PERIODIC, LEASED_S


def periodic_start(
    app: Celery,
    *,
    has_workers: bool,
    waiting: Callable[[], int],
    stopping: Callable[[], bool],
    looked: Callable[[], None] = lambda: None,
) -> LeasedScheduler:
    """Start the threads of a forwarder that begin periodic tasks. Returns the scheduler of the domain's.

    Args:
        has_workers: whether a worker runs the domain's tasks; else threads of this process do (docs/decisions/0073).
        waiting: returns the length of the worker's queue.
        stopping: whether the process ends.
        looked: called after each look at the schedule.
    """
    repeat(app, FORWARDERS_PERIODIC, stopping)
    if has_workers:
        scheduler = LeasedScheduler(LEASED_S, in_queue(app), waiting, stopping, looked)
    else:
        runs = ThreadRuns(app, len(LEASED_S))
        scheduler = LeasedScheduler(LEASED_S, runs.begin, lambda: 0, stopping, looked)
    scheduler.start()
    return scheduler
