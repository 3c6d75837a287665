"""Start of a forwarder's periodic work: its own tasks, and the schedule of the domain's."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from celery import Celery
from django.db import connection

from workers.in_process_scheduler import repeat
from workers.leased_scheduler import LeasedScheduler, ThreadRuns, in_queue
from workers.schedule import FORWARDERS_PERIODIC, LEASED_S, PERIODS_S


def periodic_start(
    app: Celery,
    *,
    has_workers: bool,
    waiting: Callable[[], int],
    stopping: Callable[[], bool],
    looked: Callable[[], None] = lambda: None,
) -> Callable[[], int]:
    """Start the threads of a forwarder that begin periodic tasks. Returns a function that returns how far the schedule of the domain's has
    come: a number that rises while it continues.

    Args:
        has_workers: whether a worker runs the domain's tasks; else threads of this process do (docs/decisions/0073).
        waiting: returns the length of the worker's queue.
        stopping: whether the process ends.
        looked: called whenever the schedule has continued.
    """
    if not has_workers and connection.vendor == "sqlite":
        return _repeat_all(app, stopping, looked)
    repeat(app, FORWARDERS_PERIODIC, stopping)
    if has_workers:
        scheduler = LeasedScheduler(LEASED_S, in_queue(app), waiting, stopping, looked)
    else:
        runs = ThreadRuns(app, len(LEASED_S))
        scheduler = LeasedScheduler(LEASED_S, runs.begin, lambda: 0, stopping, looked)
    scheduler.start()
    return lambda: scheduler.looks


def _repeat_all(app: Celery, stopping: Callable[[], bool], looked: Callable[[], None]) -> Callable[[], int]:
    """Repeat all tasks without leases: this process is the only one that runs any. The data folder with SQLite's file has one supervisor, by
    its lock, and the forwarder dies with it (portal/supervisor/data_folder.py, parent_watchdog.py).
    """
    runs = count(1)
    done = [0]

    def ran() -> None:
        done[0] = next(runs)
        looked()

    repeat(app, tuple(PERIODS_S), stopping, ran)
    return lambda: done[0]
