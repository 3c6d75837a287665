"""Scheduler of the domain's periodic tasks: one thread in each host's forwarder, the first of which takes what is due.

    look (each second) -> take what is due, by leases in SQL -> send it to the worker's queue, or run it here without a worker

While messages wait in the queue nothing is taken: no worker has had time for what was sent. So the queue does not grow while workers are
away, and no message is superseded only because it waited.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from celery import Celery
from django.db import Error as DatabaseError
from django.db import close_old_connections, connection

from eventing.periodic.rules import LOOK_S
from eventing.periodic.services import Run, tasks_register, tasks_standing, tasks_take
from workers.fencing import FENCE_HEADER

AGAIN_S = 2.0
"""Seconds until the next look after the database or the broker did not answer."""
RETRIES = {"max_retries": 1, "interval_start": 0.0, "interval_step": 0.0, "interval_max": 0.0}
logger = logging.getLogger(__name__)


class LeasedScheduler:
    """The scheduler of one process; `start` begins its thread.

    Args:
        periods_s: the tasks, and the period of each in seconds.
        begin: begins a run. Raises OSError or an error of the broker's client if it cannot.
        waiting: returns how many runs that were begun wait for a worker. Raises an error likewise.
        stopping: whether the process ends.
        looked: called after each look.
    """

    def __init__(
        self,
        periods_s: Mapping[str, float],
        begin: Callable[[Run], object],
        waiting: Callable[[], int],
        stopping: Callable[[], bool],
        looked: Callable[[], None] = lambda: None,
    ) -> None:
        self._periods_s, self._begin, self._waiting = dict(periods_s), begin, waiting
        self._stopping, self._looked = stopping, looked
        self._holder = f"{socket.gethostname()} {os.getpid()}"
        self._registered = False
        self.looks = 0
        """Number of looks that have ended, successful or not."""

    def start(self) -> threading.Thread:
        """Start the thread. A process that ends does not wait for it."""
        thread = threading.Thread(target=self._run, name="schedule", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        while not self._stopping():
            next_at = time.monotonic() + LOOK_S
            try:
                self.look()
            except DatabaseError as error:
                logger.warning("The schedule could not be read: %s", " ".join(str(error).split()))
                connection.close()
                next_at += AGAIN_S
            except Exception:
                logger.exception("The schedule failed; next attempt in %g s", AGAIN_S)
                next_at += AGAIN_S
            finally:
                close_old_connections()
                self.looks += 1
            time.sleep(max(0.0, next_at - time.monotonic()))

    def look(self) -> None:
        """Begin what is due. Raises DatabaseError, and what `begin` and `waiting` raise."""
        if not self._registered:
            tasks_register(self._periods_s)
            self._registered = True
        if not self._waiting():
            for run in tasks_take(tasks_standing(self._periods_s), self._periods_s, self._holder):
                self._begin(run)
        self._looked()


def in_queue(app: Celery) -> Callable[[Run], None]:
    """Return a function that sends a run to the worker's queue."""

    def send(run: Run) -> None:
        headers = {FENCE_HEADER: str(run.fence)}
        app.send_task(run.name, headers=headers, ignore_result=True, retry=True, retry_policy=RETRIES)

    return send


class ThreadRuns:
    """Runs of tasks on threads of this process, for domains without a worker; none waits for another.

    Args:
        app: the Celery application that has the tasks.
        threads: how many tasks there are.
    """

    def __init__(self, app: Celery, threads: int) -> None:
        self._app = app
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="periodic")

    def begin(self, run: Run) -> Future[None]:
        """Begin a run."""
        return self._pool.submit(self._apply, run)

    def _apply(self, run: Run) -> None:
        try:
            self._app.tasks[run.name].apply(
                headers={FENCE_HEADER: str(run.fence)}
            )  # Celery logs and counts failures of the task
        except Exception:
            logger.exception("%s could not be run; it is when it is due again", run.name)
        finally:
            close_old_connections()
