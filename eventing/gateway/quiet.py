"""Pauses of a gateway's periodic work: longer while nothing happens at a small domain (docs/decisions/0110).

A gateway is quiet if it has the profile small, no other gateway beside it, no reader of administrative RPs, and its totals have not moved
since the last look, a second ago or more. Whoever begins to read an administrative RP, or opens a session, ends the pauses at once;
the hot path does not, so its activity is in samples and metrics up to QUIET_S later than it would be.
"""

from __future__ import annotations

import asyncio

from eventing.core.config import Config
from eventing.gateway.delivery.hub import Hub
from eventing.telemetry.totals import totals

# Below SILENT_S of store/presence.py: a gateway that pauses is not taken for lost.
QUIET_S = 4.0
LOOK_S = 1.0


class Quiet:
    """The pauses of one gateway. Made in its event loop.

    Args:
        config: the settings.
        hub: the live connections.
    """

    def __init__(self, config: Config, hub: Hub) -> None:
        self._may_be = config.is_small and config.gateways == 1
        self._hub = hub
        self._loop = asyncio.get_running_loop()
        self._stirred = asyncio.Event()
        self._moved_at = self._looked_at = self._loop.time()
        self._seen: tuple[int, ...] = ()

    def stir(self) -> None:
        """End the present pauses."""
        if self._may_be:
            self._moved_at = self._loop.time()
            self._stirred.set()
            self._stirred.clear()  # whoever waits was released

    async def pause(self, period_s: float) -> float:
        """Sleep for `period_s`; while the gateway is quiet for QUIET_S, if that is longer. Returns how many seconds late the pause
        ended, which is the event loop's delay; 0 if it was ended early."""
        if not self._may_be or not self._is_quiet():
            due = self._loop.time() + period_s
            await asyncio.sleep(period_s)
            return max(0.0, self._loop.time() - due)
        due = self._loop.time() + max(period_s, QUIET_S)
        try:
            async with asyncio.timeout_at(due):
                await self._stirred.wait()
        except TimeoutError:
            return max(0.0, self._loop.time() - due)
        return 0.0

    def _is_quiet(self) -> bool:
        now = self._loop.time()
        if now - self._looked_at >= LOOK_S:
            self._looked_at = now
            counted = totals()
            seen = (counted.publishes, counted.deliveries, counted.readings_joined, counted.sessions_opened)
            if seen != self._seen:
                self._seen, self._moved_at = seen, now
        if now - self._moved_at < LOOK_S:
            return False
        return not any(channel.readers for channel in self._hub.administrative.values())
