"""Bounds on unanswered publishes in memory."""

from __future__ import annotations

import asyncio
from collections import deque

IN_FLIGHT_MAX = 256  # publishes; a gateway stops reading a connection beyond 1024
IN_FLIGHT_CHARS_MAX = 8 * 1024 * 1024  # sum of unanswered frames; a single larger frame is sent alone


class InFlight:
    """Admits publishes in order while fewer than `count_max` and `chars_max` are unanswered."""

    def __init__(self, count_max: int = IN_FLIGHT_MAX, chars_max: int = IN_FLIGHT_CHARS_MAX) -> None:
        self._count_max = count_max
        self._chars_max = chars_max
        self._count = 0
        self._chars = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def count(self) -> int:
        """Return how many are unanswered."""
        return self._count

    async def enter(self, chars: int) -> None:
        """Wait for room for a frame of `chars`; it counts until `leave(chars)`."""
        if not self._waiting and self._fits(chars):
            self._take(chars)
            return
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((chars, admitted))
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                self.leave(chars)
            raise

    def leave(self, chars: int) -> None:
        """Free the room of a frame of `chars` that was answered or abandoned."""
        self._count -= 1
        self._chars -= chars
        while self._waiting and (self._waiting[0][1].done() or self._fits(self._waiting[0][0])):
            size, admitted = self._waiting.popleft()
            if not admitted.done():
                self._take(size)
                admitted.set_result(None)

    def _fits(self, chars: int) -> bool:
        return self._count == 0 or (self._count < self._count_max and self._chars + chars <= self._chars_max)

    def _take(self, chars: int) -> None:
        self._count += 1
        self._chars += chars
