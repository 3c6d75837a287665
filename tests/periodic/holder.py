"""A host that runs one periodic task by its lease: `python -m tests.periodic.holder DATABASE_NAME REDIS_URL FOLDER`.

Each run writes `begin` and, after WORK_S, `end` into the table `run_log`, under its fencing number; a write that is refused is
noted as `refused`. After a begin the host does to itself what the file named after its pid says: `stop` or `kill`.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from celery import Celery

WORK_S = 2.0
PERIOD_S = 1.0


def main(database_name: str, redis_url: str, folder: str) -> None:
    """Run until SIGTERM."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "HERALD_REDIS_URL": redis_url,
        "HERALD_DATA_DIR": folder,
    }
    from django.conf import settings

    settings.DATABASES["default"]["NAME"] = database_name
    app: Celery = importlib.import_module("portal.celery").app  # it sets Django up
    from eventing.periodic.services import Run
    from workers.leased_scheduler import LeasedScheduler, ThreadRuns
    from workers.tasks import periodic

    app.set_current()

    def work() -> None:
        run(Path(folder))

    task: Any = periodic(work)
    runs, at_work = ThreadRuns(app, 4), [0]

    def begin(made: Run) -> None:
        at_work[0] += 1
        runs.begin(made).add_done_callback(lambda _: at_work.__setitem__(0, at_work[0] - 1))

    # While it works it does not look, so that a host that stops itself holds no lock of the database.
    LeasedScheduler({task.name: PERIOD_S}, begin, lambda: at_work[0], lambda: False).start()
    print("up", flush=True)
    signal.pause()


def run(folder: Path) -> None:
    """Do the work of one run."""
    note("begin")
    order = folder / str(os.getpid())
    if order.exists():
        number = signal.SIGKILL if order.read_text() == "kill" else signal.SIGSTOP
        order.unlink()
        os.kill(os.getpid(), number)
    time.sleep(WORK_S)  # the work
    note("end")


def note(what: str) -> None:
    """Write a row, if this run may."""
    from django.db import connection, transaction

    from eventing.periodic import services

    current = services.run_present()
    assert current is not None
    try:
        with transaction.atomic():
            services.run_require()
            insert(connection, current.fence, what)
    except services.Superseded:
        insert(connection, current.fence, "refused")
        raise


def insert(connection: object, fence: int, what: str) -> None:
    """Insert the row."""
    with connection.cursor() as cursor:  # type: ignore[attr-defined]
        cursor.execute("INSERT INTO run_log (fence, pid, what) VALUES (%s, %s, %s)", [fence, os.getpid(), what])


if __name__ == "__main__":
    main(*sys.argv[1:])
