"""The Celery application: `portal.celery:app`. Broker is the domain's Redis; there are no results, tasks report in the log.

A task is acknowledged when it is done, so one that a killed worker left is handed out again after the visibility
timeout; every task is safe to run twice and ends well before (workers/tasks.py).
"""

from __future__ import annotations

import logging
import os
from typing import Any

import django
from celery import Celery

from eventing.conf import config
from portal.broker import TRANSPORT_OPTIONS, transport_set
from workers.schedule import BEAT_SCHEDULE, FORWARD, FORWARD_QUEUE, VISIBILITY_TIMEOUT_S

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()


def broker_url(redis_url: str) -> str:
    """Return the URL of the Redis in use in Celery's form."""
    return redis_url.replace("unix://", "redis+socket://", 1) if redis_url.startswith("unix://") else redis_url


def settings() -> dict[str, Any]:
    """Return Celery's settings, derived from the domain's settings."""
    return {
        "broker_url": broker_url(config().effective_redis_url),
        "broker_transport_options": {
            **TRANSPORT_OPTIONS,
            "visibility_timeout": VISIBILITY_TIMEOUT_S,
            "global_keyprefix": f"herald:{config().domain}:celery:",  # the data plane's keys are in the same Redis
        },
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,  # a worker outlives any outage of Redis
        "task_ignore_result": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "worker_prefetch_multiplier": 1,
        "task_routes": {FORWARD: {"queue": FORWARD_QUEUE}},
        "worker_cancel_long_running_tasks_on_connection_loss": True,
        "worker_hijack_root_logger": False,
        "timezone": "UTC",
        "beat_schedule": BEAT_SCHEDULE,
        "beat_schedule_filename": str(config().data_path / "beat-schedule"),
        "beat_max_loop_interval": 1,
    }


# Lines for every task sent, received and done, several a second, would bury what matters and grow without bound.
_CHATTY = ("celery.beat", "celery.worker.strategy", "celery.app.trace")

transport_set()
app = Celery("herald", amqp="portal.broker:Broker")
app.config_from_object(settings())
app.autodiscover_tasks(["workers"])
if config().log_level != "debug":
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
