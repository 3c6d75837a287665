"""In-process scheduler of the forwarder: periodic tasks, each on a thread of its own, so that none waits for a thread
that forwards to a peer, nor for another task. They are measured, traced and logged like all tasks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from celery import Celery
from django.db import close_old_connections

from workers.schedule import PERIODS_S
from workers.task_runs import task_run

POLL_S = 5.0  # seconds between two checks whether to stop; the threads end with the process anyway
logger = logging.getLogger(__name__)


def repeat(
    app: Celery, names: Sequence[str], stopping: Callable[[], bool], ran: Callable[[], None] = lambda: None
) -> list[threading.Thread]:
    """Start the tasks of these names, each repeated a period after its last begin, until `stopping()`.

    A process that ends does not wait for them: like all tasks they may be cut short anywhere.

    Args:
        ran: called after each run, successful or not, on the thread of its task.
    """
    threads = [
        threading.Thread(target=_repeat, args=(app, name, PERIODS_S[name], stopping, ran), name=name, daemon=True)
        for name in names
    ]
    for thread in threads:
        thread.start()
    return threads


def _repeat(app: Celery, name: str, period_s: float, stopping: Callable[[], bool], ran: Callable[[], None]) -> None:
    while not stopping():
        next_at = time.monotonic() + period_s
        try:
            task_run(app.tasks[name])  # failures of the task are logged there
            ran()
        except Exception:
            logger.exception("%s could not be run; next attempt in %g s", name, period_s)
        finally:
            close_old_connections()
        while (left_s := next_at - time.monotonic()) > 0 and not stopping():
            time.sleep(min(left_s, POLL_S))
