"""The Celery worker or beat as a child of the supervisor: `python -m portal.supervisor.celery_child worker|beat`.

Beside what `celery worker` does: it says when it is ready, its pool processes die with it however it ends, and it
keeps no file outside the data folder.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

from celery import signals

from eventing.conf import config
from portal.celery import app
from portal.supervisor.leash import say_ready, set_death_signal


@signals.worker_ready.connect
@signals.beat_init.connect
def _ready(**_: Any) -> None:
    say_ready()


@signals.worker_process_init.connect
def _on_leash(**_: Any) -> None:
    set_death_signal(signal.SIGKILL)


def worker() -> None:
    """Run the worker until SIGTERM; a running task is finished first, or handed out again after the next start."""
    if config().log_level != "debug":  # two lines for every task every other second would bury the rest
        for name in ("celery.worker.strategy", "celery.app.trace"):
            logging.getLogger(name).setLevel(logging.WARNING)
    app.worker_main(
        [
            "worker",
            f"--concurrency={config().workers}",
            f"--loglevel={config().log_level}",
            f"--hostname={config().domain}@%h",
            "--without-gossip",
            "--without-mingle",
        ]
    )


def beat() -> None:
    """Run beat until SIGTERM. Its memory of what it sent when is in the data folder."""
    app.start(
        ["beat", f"--loglevel={config().log_level}", f"--schedule={config().data_path / 'beat-schedule'}", "--pidfile="]
    )


if __name__ == "__main__":
    {"worker": worker, "beat": beat}[sys.argv[1]]()
