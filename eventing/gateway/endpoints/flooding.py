"""A session's refusals: counted as requests, and answered one by one as long as they are few.

A client that sends far beyond its limits, or what it may not, over and over, gets no more answers than REFUSALS_PER_S: its
connection is read no further for a while. What it sends waits in its own socket, and nothing is dropped: what was
acknowledged is stored, what was not read will be read and answered. A pause is far shorter than the heartbeat's patience.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from eventing.access.rules.limits import Account, Limits
from eventing.access.rules.rates import Bucket, Rate
from eventing.core.errors import HeraldError, RateLimited

REFUSALS_PER_S = 50
REFUSALS_WINDOW_S = 4.0  # 200 at once: what a pipelined client may have under way when it first meets a limit
PAUSE_S = 1.0

_RATE = Rate(REFUSALS_PER_S, REFUSALS_WINDOW_S)


class Flooding:
    """See the module.

    Args:
        changed: called when the session must look at `now` again.

    Attributes:
        now: whether the session is not to be read.
    """

    def __init__(self, limits: Limits, account: Account, changed: Callable[[], None]) -> None:
        self._limits = limits
        self._account = account
        self._changed = changed
        self._bucket = Bucket(_RATE)
        self._timer: asyncio.TimerHandle | None = None
        self.now = False

    def refused(self, error: HeraldError) -> None:
        """An operation was refused with `error`."""
        if not isinstance(error, RateLimited):
            self._limits.refused(self._account)
        loop = asyncio.get_running_loop()
        if not self.now and not self._bucket.take(1, loop.time()):
            self.now = True
            self._timer = loop.call_later(PAUSE_S, self._over)

    def _over(self) -> None:
        self.now = False
        self._changed()

    def end(self) -> None:
        """The session has ended."""
        if self._timer is not None:
            self._timer.cancel()
