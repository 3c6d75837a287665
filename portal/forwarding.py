"""How a gateway, a command or a worker starts the task that forwards to a peer: by the task queue, which only portal knows."""

from __future__ import annotations

import logging
from typing import Any

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from eventing.log import control
from workers.schedule import FORWARD, FORWARD_QUEUE

logger = logging.getLogger(__name__)

EXPIRES_S = 60  # a task that waited so long is dropped: the sweep has sent another


def forwards_waiting() -> int:
    """How many of these tasks wait for a thread of the forwarder. Raises redis.RedisError."""
    from portal.celery import app

    prefix = app.conf.broker_transport_options["global_keyprefix"]
    count: Any = control.client().llen(f"{prefix}{FORWARD_QUEUE}")
    return int(count)


def send_forward(peer: str) -> None:
    """Start `workers.tasks.forward(peer)`. What cannot be sent now is found by the sweep."""
    from portal.celery import app  # it sets Django up, so it is imported when it is needed first

    try:
        app.send_task(FORWARD, args=(peer,), queue=FORWARD_QUEUE, expires=EXPIRES_S, ignore_result=True)
    except (OperationalError, RedisError, OSError) as error:
        logger.warning("Forwarding to %s could not be started, the sweep will: %s", peer, error)
