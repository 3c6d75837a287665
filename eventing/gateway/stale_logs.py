"""Detection of logs that are older than their seals, before a gateway accepts events and after Redis has returned.

A Redis that was restored from an older copy would number new events with numbers of events that already left the domain
(replication/services/sealing.py). Nothing leaves unchecked in any case; the check here also keeps publishers from
receiving positions in an epoch that is about to end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from eventing.core.errors import Unavailable
from eventing.replication.services.sealing import heads_checked
from eventing.sql.threads import in_database
from eventing.store.cancellation import cancel_and_wait
from eventing.store.errors import RedisError

# bound: seconds of comparing logs with their seal heads at start; the other logs are compared before they are sealed
# 10,000 logs take a second; a store that hangs must not delay the start of a gateway.
CHECK_S = 10.0
log = logging.getLogger(__name__)
_check = in_database(heads_checked)


class StaleLogs:
    """Checks of logs by one gateway."""

    def __init__(self) -> None:
        self._checking: set[asyncio.Task[None]] = set()

    async def check(self) -> None:
        """Compare all logs. A store that does not answer does not prevent the start: the logs are compared after its return."""
        try:
            async with asyncio.timeout(CHECK_S):
                stale = await _check()
        except (RedisError, Unavailable, TimeoutError) as error:
            log.warning("The logs were not compared with their seals: %s", error or "a store does not answer")
        else:
            if stale:
                log.error("%d logs were older than their seals and begin new epochs.", stale)

    def after(self, restored: Callable[[], None]) -> Callable[[], None]:
        """Return a callback that calls `restored` and then checks, each time that Redis has returned."""

        def restored_and_checked() -> None:
            restored()
            task = asyncio.get_running_loop().create_task(self.check())
            self._checking.add(task)
            task.add_done_callback(self._checking.discard)

        return restored_and_checked

    async def close(self) -> None:
        """Stop the checks in progress."""
        await cancel_and_wait(self._checking)
