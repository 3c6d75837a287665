"""Run of a periodic task under its lease: begun only while it is the newest run, renewed while it takes long, stopped before the lease ends
where that fails (docs/decisions/0123).
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from celery import current_task
from django.db import Error as DatabaseError
from django.db import connection

from eventing.periodic.rules import BEGIN_ABOVE_S, LEASE_S, RENEW_AFTER_SHARE, STOP_BELOW_S, is_ended_by_word
from eventing.periodic.services import Run, Superseded, run_left_s, run_release, run_renew, running
from workers.schedule import PERIODS_S

FENCE_HEADER = "herald-fence"
"""Header of a task's message: number of its run. Releases without leases ignore it."""
AGAIN_S = 0.25
logger = logging.getLogger(__name__)


def run_of_task() -> Run | None:
    """Return the run that the present task's message states; None for a task without one (task_runs.py), or started by hand."""
    if not current_task:
        return None
    fence = (current_task.request.headers or {}).get(FENCE_HEADER)
    return None if fence is None else Run(str(current_task.name), int(fence))


def run_fenced(run: Run, function: Callable[[], None]) -> None:
    """Call `function` if this is the newest run of its task, and nothing otherwise. Raises what it raises.

    A message that the broker delivers again begins nothing: its run may still go on in a process that the broker has lost. It is due again
    when its lease has ended.
    """
    if (current_task.request.delivery_info or {}).get("redelivered"):
        logger.info("%s: run %d was delivered before", run.name, run.fence)
        return
    try:
        asked = time.monotonic()
        left_s = run_left_s(run)
        renew = left_s < BEGIN_ABOVE_S
        if renew:
            run_renew(run)
            left_s = LEASE_S
        stop = _nothing if current_task.request.is_eager else _stop_task
        period_s = PERIODS_S.get(run.name, 0.0)
        due_at = asked + period_s if is_ended_by_word(period_s) else None
        with TaskLeaseKeeper(run, until=asked + left_s, release=renew, due_at=due_at, stop=stop), running(run):
            function()
    except Superseded:
        logger.info("%s: run %d has ended: a later one has begun", run.name, run.fence)


def _stop_task() -> None:
    """Have Celery raise SoftTimeLimitExceeded in the task of this process, as at its time limit."""
    if callable(signal.getsignal(signal.SIGUSR1)):
        os.kill(os.getpid(), signal.SIGUSR1)


def _nothing() -> None:
    """Leave a task on a thread, which cannot be stopped, to the checks before it writes."""


class TaskLeaseKeeper:
    """Keeps the lease of a run within its block, on a thread of its own.

    Args:
        until: when the lease ends, monotonic seconds, by a time from before the database was asked.
        release: whether the lease is released at the end, because it is longer than the task's period allows.
        due_at: when the task is due again, if the end of the run states it.
        stop: called when the lease is about to end, or has been lost, while the block runs.
    """

    def __init__(
        self, run: Run, *, until: float, release: bool, stop: Callable[[], None], due_at: float | None = None
    ) -> None:
        self._run, self._until, self._release, self._stop, self._due_at = run, until, release, stop, due_at
        self._done = threading.Event()
        self._deadline: threading.Timer | None = None

    def __enter__(self) -> Self:
        threading.Thread(target=self._keep, name="lease", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        if self._release or self._due_at is not None:
            due_in_s = None if self._due_at is None else max(0.0, self._due_at - time.monotonic())
            try:
                run_release(self._run, due_in_s)
            except DatabaseError as failure:
                logger.warning("%s: its lease ends by itself: %s", self._run.name, failure)

    def _keep(self) -> None:
        pause_s = (self._until - time.monotonic()) * RENEW_AFTER_SHARE
        try:
            while not self._done.wait(max(0.0, pause_s)):
                self._arm()
                pause_s = self._renewed_for_s() * RENEW_AFTER_SHARE or AGAIN_S
        except Superseded:
            self._end()
        finally:
            if self._deadline is not None:
                self._deadline.cancel()
            connection.close()

    def _arm(self) -> None:
        """Have the run stopped before its lease ends, however long the database takes."""
        if self._deadline is None:
            self._deadline = threading.Timer(max(0.0, self._until - STOP_BELOW_S - time.monotonic()), self._end)
            self._deadline.daemon = True
            self._deadline.start()

    def _renewed_for_s(self) -> float:
        """Renew the lease. Returns for how long; 0 if the database does not answer. Raises Superseded."""
        asked = time.monotonic()
        try:
            run_renew(self._run)
        except DatabaseError as error:
            logger.warning("%s: its lease could not be renewed: %s", self._run.name, error)
            connection.close()
            return 0.0
        self._release = True
        self._until = asked + LEASE_S
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        return LEASE_S

    def _end(self) -> None:
        if not self._done.is_set():
            logger.warning("%s: its lease has been lost; it is stopped, and run again when it is due", self._run.name)
            self._stop()
