"""Limit on a session's refusals: counted as requests, and answered one by one as long as they are few.

A client that far exceeds its limits, or repeats forbidden operations, gets no more answers than REFUSALS_PER_S: no
further frames of its connection are read for a while. Its frames wait in its own socket, and nothing is dropped:
acknowledged publishes are stored, unread ones will be read and answered. A pause is far shorter than the heartbeat's
timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from eventing.access.rules.limits import Account, Limits
from eventing.access.rules.rates import Bucket, Rate
from eventing.core.errors import ApplicationError, RateLimited

REFUSALS_PER_S = 50  # bound: refusals of one connection per second; reading from the connection pauses
REFUSALS_WINDOW_S = 4.0  # 200 at once: a pipelining client may have as many in progress when it first meets a limit
PAUSE_S = 1.0  # bound: seconds that reading from a flooding connection pauses; reading continues

_RATE = Rate(REFUSALS_PER_S, REFUSALS_WINDOW_S)


class Flooding:
    """Pauses for a session with too many refusals.

    Args:
        changed: called when the session must check `now` again.

    Attributes:
        now: whether reading from the session is paused.
    """

    def __init__(self, limits: Limits, account: Account, changed: Callable[[], None]) -> None:
        self._limits = limits
        self._account = account
        self._changed = changed
        self._bucket = Bucket(_RATE)
        self._timer: asyncio.TimerHandle | None = None
        self.now = False

    def refused(self, error: ApplicationError) -> None:
        """Count an operation that was refused with `error`."""
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
        """Stop at the end of the session."""
        if self._timer is not None:
            self._timer.cancel()
