"""Presence in Redis: worker, forwarder and the schedule (`beat`) report every few seconds that they work; /readyz reads it.

A worker signs while its consumer is attached to its queue, however long its tasks take, so that peers that hang cannot make this domain
seem unready. Celery's own heartbeats are events as well, which nothing here reads: a twelfth of what a forwarder cost. The schedule signs when
it looked for what is due. What was away is found again with its next sign; nothing has to be reset.
"""

from __future__ import annotations

import logging
import time
from typing import Any, Literal

from celery import bootsteps

from eventing.store.errors import RedisError
from eventing.store.presence import present

EVERY_S = 2.0  # the schedule is looked at more often
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


def present_while_attached(part: Part) -> type[bootsteps.StartStopStep]:
    """Make the step of a Celery consumer that writes the presence of its part while it is attached to its queue."""
    presence = Presence(part)

    class PresentWhileAttached(bootsteps.StartStopStep):
        """Begins when the consumer does, ends when the consumer loses its connection."""

        requires = ("celery.worker.consumer.tasks:Tasks",)

        def __init__(self, parent: Any, **options: Any) -> None:
            super().__init__(parent, **options)
            self._timer: Any = None

        def start(self, parent: Any) -> None:
            presence.sign()
            self._timer = parent.timer.call_repeatedly(EVERY_S, presence.sign)

        def stop(self, parent: Any) -> None:
            if self._timer is not None:
                parent.timer.cancel(self._timer)
                self._timer = None

    return PresentWhileAttached
