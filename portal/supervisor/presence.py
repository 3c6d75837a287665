"""Presence in Redis: worker, forwarder and beat report every few seconds that they work; /readyz reads it.

A worker's word is Celery's heartbeat: it beats while the process is attached to its queue, however long its tasks take, so
that peers that hang cannot make this domain seem unready. Beat's word is that it sends tasks. What was away is found again
with its next word; nothing has to be reset.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Literal

from celery import signals

from eventing.store.errors import RedisError
from eventing.store.presence import present

EVERY_S = 2.0  # Celery's own period; beat sends more often
Child = Literal["worker", "forwarder", "beat"]
logger = logging.getLogger(__name__)


class ChildPresence:
    """Writes the presence of a child at each of Celery's signals."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._said_at = float("-inf")
        sign = signals.after_task_publish if child == "beat" else signals.heartbeat_sent
        sign.connect(self.sign, weak=False)

    def sign(self, **_: Any) -> None:
        """Write the presence. An outage of Redis is ignored: /readyz reports it."""
        now = time.monotonic()
        if now - self._said_at < EVERY_S / 2:
            return
        try:
            present(self._child)
            self._said_at = now
        except RedisError as error:
            logger.debug("The presence of %s is not noted: %s", self._child, error)
