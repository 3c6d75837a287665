"""Durability of the data plane as a gateway knows it, and the times at which it asks again.

| asked again | when |
|---|---|
| KNOWN_S after the last answer; SHORT_S while a replica is away | it is wanted |
| at once | another server has become a primary: its replicas are others |
| in the background | an acknowledgement level was not reached |

Of several primaries one that does not answer keeps no append to another waiting: the last answer holds until the next one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

import redis.asyncio

from eventing.core.data_plane import ServerAddress
from eventing.store.cancellation import cancel_and_wait
from eventing.store.connection import Durability
from eventing.store.errors import RedisError
from eventing.store.routed_async import RoutedAsyncRedis

KNOWN_S = 10.0
SHORT_S = 1.0
PROMOTED_S = 1.0  # bound: seconds that appends wait for what a new primary says; then the last answer holds
log = logging.getLogger(__name__)


class KnownDurability:
    """The knowledge of one event loop.

    Args:
        client: of the data plane.
        query: asks all primaries; raises redis' errors.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        client: redis.asyncio.Redis,
        query: Callable[[], Awaitable[Durability]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._query = query
        self._clock = clock
        self._known: Durability | None = None
        self._asked_at = 0.0
        self._asked_of: frozenset[ServerAddress] = frozenset()
        self._seen: frozenset[ServerAddress] = frozenset()  # primaries since `_seen_at`
        self._seen_at = 0.0
        self._asking: asyncio.Task[None] | None = None

    async def get(self) -> Durability:
        """Return the durability. Raises redis' errors while nothing is known, or the only server is unreachable."""
        now = self._clock()
        if self._known is None:
            return await self._ask()
        if (primaries := self._primaries()) != self._seen:
            self._seen, self._seen_at = primaries, now
        is_old = now - self._asked_at > (SHORT_S if self._known.is_short else KNOWN_S)
        if not isinstance(self._client, RoutedAsyncRedis):
            return await self._ask() if is_old else self._known
        if primaries == self._asked_of and is_old:
            self._ask_apart()
        for _ in range(2):  # a question under way may be to the primary of before
            if primaries != self._asked_of and (left_s := self._seen_at + PROMOTED_S - self._clock()) > 0:
                await asyncio.wait({self._ask_apart()}, timeout=left_s)
        return self._known

    def doubt(self) -> None:
        """Ask anew: a replica that has left is waited for in vain, and one that has joined is missed."""
        if self._clock() - self._asked_at > SHORT_S:
            self._ask_apart()

    async def close(self) -> None:
        """Stop asking."""
        if self._asking is not None:
            await cancel_and_wait([self._asking])

    def _primaries(self) -> frozenset[ServerAddress]:
        if not isinstance(self._client, RoutedAsyncRedis):
            return frozenset()
        return frozenset(one.place for one in self._client.plane.topology().primaries)

    def _ask_apart(self) -> asyncio.Task[None]:
        if self._asking is None or self._asking.done():
            self._asked_at = self._clock()
            self._asking = asyncio.get_running_loop().create_task(self._try_to_ask())
        return self._asking

    async def _try_to_ask(self) -> None:
        try:
            await self._ask()
        except (RedisError, OSError) as error:
            log.debug("The durability of the data plane could not be queried: %s", error)

    async def _ask(self) -> Durability:
        self._asked_at, before = self._clock(), self._seen
        found = await self._query()
        self._known, self._asked_of = found, before or self._primaries()
        return found
