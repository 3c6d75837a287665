"""Start of the task that forwards to a peer, for gateways, commands and workers: over the task queue, which only portal
imports; in a small domain over a list in Redis, for which a process needs no Celery."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from kombu.exceptions import OperationalError

from eventing.conf import config
from eventing.core.container import per_process
from eventing.store.errors import RedisError
from eventing.store.forward_queue import forward_enqueue, forwards_queued
from portal.queues import BrokerAway, waiting
from workers.schedule import FORWARD, FORWARD_QUEUE

logger = logging.getLogger(__name__)

# bound: seconds that a forwarding task waits in the queue; the task is discarded; the sweep has sent another
EXPIRES_S = 60


# Whoever sends would wait for each connection: a request for that of CONNECT_TIMEOUT_S, a sweep once for each peer.
AWAY_S = 1.0  # bound: seconds after a failure in which no task is sent; the sweep sends another
RETRIES = {"max_retries": 1, "interval_start": 0.0, "interval_step": 0.0, "interval_max": 0.0}
"""One: a connection that was idle while the broker restarted is lost at its next use."""


@dataclass(slots=True)
class _Broker:
    """The broker as this process found it last.

    Attributes:
        failed_at: monotonic seconds of the last failure.
    """

    failed_at: float = float("-inf")

    @property
    def away(self) -> bool:
        return time.monotonic() < self.failed_at + AWAY_S


_broker = per_process(_Broker)


def forwards_waiting() -> int:
    """Return the number of these tasks that wait for a thread of the forwarder; 0 while the broker does not answer."""
    if _broker().away:
        return 0
    try:
        return forwards_queued() if config().is_one_process else waiting(FORWARD_QUEUE)
    except (BrokerAway, RedisError) as error:
        _broker().failed_at = time.monotonic()
        logger.warning("The broker does not answer: %s", error)
        return 0


def send_forward(peer: str) -> None:
    """Start `workers.tasks.forward(peer)`. The sweep finds tasks that cannot be enqueued now."""
    if _broker().away:
        return
    try:
        if config().is_one_process:
            forward_enqueue(peer)
            return
        from portal.celery import app  # it sets Django up, so it is imported when it is needed first

        app.send_task(
            FORWARD,
            args=(peer,),
            queue=FORWARD_QUEUE,
            expires=EXPIRES_S,
            ignore_result=True,
            retry=True,
            retry_policy=RETRIES,
        )
    except (OperationalError, RedisError, OSError) as error:
        _broker().failed_at = time.monotonic()
        logger.warning("Forwarding to %s could not be started, the sweep will: %s", peer, error)
