"""Batch queues of one acknowledgement level, one for each home: a primary that is away keeps no append to another waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from redis.exceptions import RedisError

from eventing.core.data_plane import ServerAddress, slot_of_tag
from eventing.core.events.ack_level import Ack
from eventing.store.plane import Plane


class Queue(Protocol):
    """A batch queue (appender.py), as seen here."""

    @property
    def is_idle(self) -> bool:
        """True while nothing waits or is being sent."""

    async def finish(self) -> None:
        """Send what waits, and close."""

    def put(self, append: Any) -> None:
        """Take an append."""


Q = TypeVar("Q", bound=Queue)


class HomeQueues(Generic[Q]):
    """The queues. Commands of a queue go to the home of their keys, whatever the queue: queues only separate what waits.

    A slot keeps its queue while that is busy, also after the slot has moved to another home, so that the appends of
    an RP stay in order.

    Args:
        ack: the acknowledgement level.
        make: makes a queue.
    """

    def __init__(self, ack: Ack, plane: Plane, make: Callable[[], Q]) -> None:
        self.ack = ack
        self._plane = plane
        self._make = make
        self._by_home: dict[ServerAddress | None, Q] = {}
        self._by_slot: dict[int, tuple[ServerAddress | None, Q]] = {}

    def put(self, append: Any) -> None:
        """Put an append into the queue of its RP's slot."""
        slot = slot_of_tag(append.descriptor.id)
        home = self._home(slot)
        held = self._by_slot.get(slot)
        if held is None or (held[0] != home and held[1].is_idle):
            queue = self._by_home.get(home)
            if queue is None:
                queue = self._by_home[home] = self._make()
            held = self._by_slot[slot] = home, queue
        held[1].put(append)

    def _home(self, slot: int) -> ServerAddress | None:
        if not self._plane.is_known:
            return None  # the queue that comes first has the topology looked up
        try:
            return self._plane.home_of_slot(slot).place
        except RedisError:
            return None

    async def finish(self) -> None:
        """Finish all queues."""
        await asyncio.gather(*(queue.finish() for queue in self._by_home.values()))
