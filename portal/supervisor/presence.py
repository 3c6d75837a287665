"""Presence in Redis: worker, forwarder and the schedule (`beat`) report every few seconds that they work; /readyz reads it.

A worker's word is Celery's heartbeat: it beats while the process is attached to its queue, however long its tasks take, so
that peers that hang cannot make this domain seem unready. The schedule's word is that it looked for what is due. What was away is found
again with its next word; nothing has to be reset.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Literal

from celery import signals

from eventing.store.errors import RedisError
from eventing.store.presence import present

EVERY_S = 2.0  # Celery's own period; the schedule is looked at more often
Part = Literal["worker", "forwarder", "beat"]
logger = logging.getLogger(__name__)


class Presence:
    """The presence of a part of the domain; each `sign` that it works writes it."""

    def __init__(self, part: Part) -> None:
        self._part = part
        self._said_at = float("-inf")

    def sign(self, **_: Any) -> None:
        """Write the presence. An outage of Redis is ignored: /readyz reports it."""
        now = time.monotonic()
        if now - self._said_at < EVERY_S / 2:
            return
        try:
            present(self._part)
            self._said_at = now
        except RedisError as error:
            logger.debug("The presence of %s is not noted: %s", self._part, error)


class ChildPresence(Presence):
    """The presence of a Celery worker, written at each of its heartbeats."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        signals.heartbeat_sent.connect(self.sign, weak=False)
