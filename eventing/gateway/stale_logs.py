"""Stale logs: before a gateway takes events, and when Redis has come back, logs are compared with their seals.

A Redis that was put back from an older copy would number new events with numbers that left the domain on others
(replication/services/sealing.py). Nothing leaves unchecked in any case; looking here as well keeps publishers from being answered
with places in an epoch that is about to end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from redis.exceptions import RedisError

from eventing.core.errors import Unavailable
from eventing.replication.services.sealing import heads_checked
from eventing.sql.threads import in_database
from eventing.store.cancellation import cancel_and_wait

CHECK_S = 10.0  # of one check: 10,000 logs take a second; a store that hangs must not keep a gateway from starting
log = logging.getLogger(__name__)
_check = in_database(heads_checked)


class StaleLogs:
    """The checks of one gateway."""

    def __init__(self) -> None:
        self._checking: set[asyncio.Task[None]] = set()

    async def check(self) -> None:
        """Compare all logs. A store that does not answer is no reason not to start: its return is a reason to look again."""
        try:
            async with asyncio.timeout(CHECK_S):
                stale = await _check()
        except (RedisError, Unavailable, TimeoutError) as error:
            log.warning("The logs were not compared with their seals: %s", error or "a store does not answer")
        else:
            if stale:
                log.error("%d logs were older than their seals and begin new epochs.", stale)

    def after(self, restored: Callable[[], None]) -> Callable[[], None]:
        """`restored`, and a check behind it, each time that Redis has come back."""

        def restored_and_checked() -> None:
            restored()
            task = asyncio.get_running_loop().create_task(self.check())
            self._checking.add(task)
            task.add_done_callback(self._checking.discard)

        return restored_and_checked

    async def close(self) -> None:
        """End the checks that are under way."""
        await cancel_and_wait(self._checking)
