"""How a gateway, a command or a worker starts the task that forwards to a peer: by the task queue, which only portal knows."""

from __future__ import annotations

import logging

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from workers.schedule import FORWARD, FORWARD_QUEUE

logger = logging.getLogger(__name__)

EXPIRES_S = 60  # a task that waited so long is dropped: the sweep has sent another


def send_forward(peer: str) -> None:
    """Start `workers.tasks.forward(peer)`. What cannot be sent now is found by the sweep."""
    from portal.celery import app  # it sets Django up, so it is imported when it is needed first

    try:
        app.send_task(FORWARD, args=(peer,), queue=FORWARD_QUEUE, expires=EXPIRES_S, ignore_result=True)
    except (OperationalError, RedisError, OSError) as error:
        logger.warning("Forwarding to %s could not be started, the sweep will: %s", peer, error)
