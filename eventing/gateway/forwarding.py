"""Wake-up of forwarding: events were appended at an RP with links, so its peers must be woken.

The hot path notes the RP and its peers, two dictionary operations. A dedicated thread then notifies Redis, and the task
queue if no task is at work yet (replication/forwarding/wakeups.py); notes made meanwhile are included in the next
notification. The sweep covers failures.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from eventing.log.appender import Destination
from eventing.replication.forwarding import wakeups
from eventing.store.errors import RedisError

GATHER_S = 0.005  # after a notification, so that a busy gateway reports many events at once
log = logging.getLogger(__name__)


class ForwardingNotifier:
    """Wake-ups of one gateway process."""

    def __init__(self) -> None:
        self._noted: dict[str, set[str]] = {}
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waking")

    def appended(self, descriptor: Destination) -> None:
        """Note that events were appended at an RP with links."""
        for peer in descriptor.links:
            noted = self._noted.get(peer)
            if noted is None:
                self._noted[peer] = {descriptor.id}
            else:
                noted.add(descriptor.id)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._notify())

    async def close(self) -> None:
        """Send the noted wake-ups, and stop."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown(wait=False)

    async def _notify(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._noted:
                noted, self._noted = self._noted, {}
                await loop.run_in_executor(self._thread, _wake, noted)
                await asyncio.sleep(GATHER_S)
        finally:
            self._task = None


def _wake(noted: dict[str, set[str]]) -> None:
    try:
        for peer, rps in noted.items():
            wakeups.wake(peer, rps)
    except RedisError as error:
        log.warning("Peers could not be woken; the sweep will find their backlog: %s", error)
