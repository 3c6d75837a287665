"""The periodic tasks that the forwarder runs beside its queue: each on a thread of its own, so that none ever waits for a
thread that forwards to a peer, nor for another of them. They are tasks all the same: measured, traced and logged as such.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from celery import Celery
from django.db import close_old_connections

from workers.schedule import FORWARDERS_PERIODIC, PERIODS_S

LOOK_S = 0.5  # between two looks whether to stop
logger = logging.getLogger(__name__)


def repeat(app: Celery, stopping: Callable[[], bool]) -> list[threading.Thread]:
    """Begin to run FORWARDERS_PERIODIC, each again when its period has passed since it began, until `stopping()`.

    A process that ends does not wait for them: they are safe to be cut short anywhere, as any task.
    """
    threads = [
        threading.Thread(target=_repeat, args=(app, name, PERIODS_S[name], stopping), name=name, daemon=True)
        for name in FORWARDERS_PERIODIC
    ]
    for thread in threads:
        thread.start()
    return threads


def _repeat(app: Celery, name: str, period_s: float, stopping: Callable[[], bool]) -> None:
    while not stopping():
        next_at = time.monotonic() + period_s
        try:
            app.tasks[name].apply()  # what fails in it is logged and counted by Celery
        except Exception:
            logger.exception("%s could not be run; it is again in %g s", name, period_s)
        finally:
            close_old_connections()
        while (left_s := next_at - time.monotonic()) > 0 and not stopping():
            time.sleep(min(left_s, LOOK_S))
