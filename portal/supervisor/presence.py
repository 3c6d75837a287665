"""Presence: worker, forwarder and beat say in Redis every few seconds that they do their part; /readyz looks for it.

A worker's word is Celery's heartbeat: it beats while the process is attached to its queue, however long its tasks take, so
that peers that hang cannot make this domain seem unready. Beat's word is that it sends tasks. What was away is found again
with its next word; nothing has to be reset.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Literal

from celery import signals
from redis.exceptions import RedisError

from eventing.log.control import present

EVERY_S = 2.0  # Celery's own period; beat sends more often
Child = Literal["worker", "forwarder", "beat"]
logger = logging.getLogger(__name__)


class Presence:
    """Says that a child does its part, whenever Celery gives a sign of it."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._said_at = float("-inf")
        sign = signals.after_task_publish if child == "beat" else signals.heartbeat_sent
        sign.connect(self.sign, weak=False)

    def sign(self, **_: Any) -> None:
        """It does its part. An outage of Redis is no more than that: /readyz names it by itself."""
        now = time.monotonic()
        if now - self._said_at < EVERY_S / 2:
            return
        try:
            present(self._child)
            self._said_at = now
        except RedisError as error:
            logger.debug("The presence of %s is not noted: %s", self._child, error)
