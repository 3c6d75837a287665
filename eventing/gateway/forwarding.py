"""Forwarding as the gateway sees it: events were appended at an RP with links, so its peers are to be woken.

The hot path notes the RP and its peers, two dictionary operations. A thread of its own then tells Redis, and the task
queue where no task is at work yet (replication/forwarding/wakeups.py); what is noted meanwhile goes with the next telling. What fails
here is found by the sweep.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from redis.exceptions import RedisError

from eventing.log.appender import Destination
from eventing.replication.forwarding import wakeups

GATHER_S = 0.005  # after a telling, so that a busy gateway tells of many events at once
log = logging.getLogger(__name__)


class Forwarding:
    """See the module. One per gateway process."""

    def __init__(self) -> None:
        self._noted: dict[str, set[str]] = {}
        self._task: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waking")

    def appended(self, descriptor: Destination) -> None:
        """Events were appended at an RP that has links."""
        for peer in descriptor.links:
            noted = self._noted.get(peer)
            if noted is None:
                self._noted[peer] = {descriptor.id}
            else:
                noted.add(descriptor.id)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._tell())

    async def close(self) -> None:
        """Tell what is noted, and end."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        self._thread.shutdown(wait=False)

    async def _tell(self) -> None:
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
        log.warning("Peers could not be woken, the sweep will find what they lack: %s", error)
