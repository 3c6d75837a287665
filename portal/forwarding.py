"""Start of the task that forwards to a peer, for gateways, commands and workers: over the task queue, which only portal
imports."""

from __future__ import annotations

import logging

from kombu.exceptions import OperationalError

from eventing.store.errors import RedisError
from eventing.store.inspection import queue_length
from workers.schedule import FORWARD, FORWARD_QUEUE

logger = logging.getLogger(__name__)

# bound: seconds that a forwarding task waits in the queue; the task is discarded; the sweep has sent another
EXPIRES_S = 60


def forwards_waiting() -> int:
    """Return the number of these tasks that wait for a thread of the forwarder. Raises redis.RedisError."""
    from portal.celery import app

    prefix = app.conf.broker_transport_options["global_keyprefix"]
    return queue_length(f"{prefix}{FORWARD_QUEUE}")


def send_forward(peer: str) -> None:
    """Start `workers.tasks.forward(peer)`. The sweep finds tasks that cannot be enqueued now."""
    from portal.celery import app  # it sets Django up, so it is imported when it is needed first

    try:
        app.send_task(FORWARD, args=(peer,), queue=FORWARD_QUEUE, expires=EXPIRES_S, ignore_result=True)
    except (OperationalError, RedisError, OSError) as error:
        logger.warning("Forwarding to %s could not be started, the sweep will: %s", peer, error)
