"""In-process scheduler of a small domain: one thread that sleeps until a task is due, and as many more as tasks are slow.

Each second it asks SQLite whether something was committed (eventing/sql/changes.py), which takes some microseconds. A task runs on a
thread of a pool. The next one waits for it SLOW_S at most, so tasks use one thread, and one that waits for a peer delays the
others by that only. Connections to SQL stay for the tasks of one turn.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from celery import Celery
from django.db import Error as DatabaseError
from django.db import close_old_connections, connection

from eventing.operations.selectors.idleness import domain_is_alone, lease_due_at
from eventing.sql.changes import SqlChanges
from workers.quiet_schedule import QuietSchedule
from workers.schedule import PERIODS_S
from workers.task_runs import task_run

LOOK_S = 1.0
"""Seconds between two looks whether SQL changed, and whether the process ends."""
SLOW_S = 0.5
logger = logging.getLogger(__name__)


class QuietScheduler:
    """The scheduler of one process; `start` begins its thread.

    Args:
        app: the Celery application that has the tasks.
        names: the tasks.
        stopping: whether the process ends.
        changes: of SQL.
    """

    def __init__(self, app: Celery, names: Sequence[str], stopping: Callable[[], bool], changes: SqlChanges) -> None:
        self._app, self._stopping, self._changes = app, stopping, changes
        self._schedule = QuietSchedule({name: PERIODS_S[name] for name in names}, time.monotonic())
        self._pool = ThreadPoolExecutor(len(names), thread_name_prefix="periodic")
        self._running: dict[str, Future[None]] = {}

    def start(self) -> None:
        """Start the thread. A process that ends does not wait for it."""
        threading.Thread(target=self._run, name="schedule", daemon=True).start()

    def _run(self) -> None:
        while not self._stopping():
            try:
                self._turn()
            except Exception:
                logger.exception("The schedule failed; trying again in %g s", LOOK_S)
                time.sleep(LOOK_S)

    def _turn(self) -> None:
        if self._changes.changed():
            self._note_change()
        now = time.monotonic()
        due = [name for name in self._schedule.due(now) if name not in self._running or self._running[name].done()]
        for name in due:
            if self._stopping():
                return
            self._schedule.began(name, time.monotonic())
            self._running[name] = self._pool.submit(self._run_task, name, name == due[-1])
            wait([self._running[name]], timeout=SLOW_S)
        left_s = self._schedule.next_at(time.monotonic()) - time.monotonic()
        time.sleep(min(max(left_s, 0.01), LOOK_S))

    def _note_change(self) -> None:
        try:
            alone, lease_at = domain_is_alone(), lease_due_at()
        except DatabaseError as error:
            logger.warning("SQL does not answer: %s", error)
            alone, lease_at = False, None
        finally:
            connection.close()
        if lease_at is not None:
            lease_at += time.monotonic() - time.time()
        self._schedule.changed(time.monotonic(), alone=alone, lease_at=lease_at)

    def _run_task(self, name: str, last: bool) -> None:
        began = time.monotonic()
        try:
            task_run(self._app.tasks[name])
        except Exception:
            logger.exception("%s could not be run; it is when it is due again", name)
        finally:
            if last or time.monotonic() - began >= SLOW_S or connection.errors_occurred:
                close_old_connections()
                connection.close()
