"""A Celery worker with its beat on a test's stores: `python -m tests.workers.celery_process DATABASE_NAME REDIS_URL FOLDER`."""

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
    from portal.celery import app

    app.worker_main(["worker", "-B", "-c", "1", "-l", "warning", "--without-gossip", "--without-mingle"])


if __name__ == "__main__":
    main(*sys.argv[1:])
