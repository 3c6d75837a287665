"""A Celery worker with the schedule on a test's stores: `python -m tests.workers.celery_process DATABASE_NAME REDIS_URL FOLDER`."""

from __future__ import annotations

import os
import sys


def main(database_name: str, redis_url: str, folder: str) -> None:
    """Run until SIGTERM."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "portal.settings",
        "HERALD_REDIS_URL": redis_url,
        "HERALD_DATA_DIR": folder,
    }
    from django.conf import settings

    settings.DATABASES["default"]["NAME"] = database_name
    from celery import signals

    from portal.celery import app
    from portal.queues import waiting
    from workers.leased_scheduler import LeasedScheduler, in_queue
    from workers.schedule import LEASED_S

    queue = app.conf.task_default_queue
    scheduler = LeasedScheduler(LEASED_S, in_queue(app), lambda: waiting(queue), lambda: False)
    signals.worker_ready.connect(lambda **_: scheduler.start(), weak=False)
    app.worker_main(["worker", "-c", "1", "-l", "warning", "--without-gossip", "--without-mingle"])


if __name__ == "__main__":
    main(*sys.argv[1:])
