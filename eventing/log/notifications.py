"""Notification channels (bells): one Redis pub/sub connection of a gateway process, on which each log announces its new
events.

A lost connection is made again automatically. Notifications during the interruption are lost, so `on_restored` makes
the hub read the logs. Delivery is best effort: the channel only accelerates what the log holds.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable

import redis.asyncio
from redis.exceptions import ConnectionError, RedisError

from eventing.store.bulk_connection import BulkConnection
from eventing.store.cancellation import cancel_and_wait

SUBSCRIBE_CHANNELS_MAX = 500  # bound: notification channels of one SUBSCRIBE; several commands
PAUSE_S = (0.05, 2.0)  # between attempts to connect, doubling with jitter
PING_S = 10.0  # bound: seconds without an answer on the notification connection; the connection is replaced
log = logging.getLogger(__name__)


class NotificationChannels:
    """Subscriptions to pub/sub channels that survive a lost connection.

    Args:
        client: the Redis client, of which one connection is held.
        on_notification: called with channel and message; must not block.
        on_restored: called after every channel is subscribed again on a new connection.
        on_lost: called when the connection is lost.
        sharded: the channels are those of a cluster's slots.
    """

    def __init__(
        self,
        client: redis.asyncio.Redis,
        on_notification: Callable[[str, bytes], None],
        on_restored: Callable[[], None],
        *,
        on_lost: Callable[[], None] = lambda: None,
        sharded: bool = False,
    ) -> None:
        self._on_notification = on_notification
        self._on_restored = on_restored
        self._on_lost = on_lost
        self._prefix = "S" if sharded else ""
        self._wanted: dict[str, asyncio.Future[None] | None] = {}  # None: confirmed
        self._connection = BulkConnection(client)
        self._task: asyncio.Task[None] | None = None
        self._changes = asyncio.Event()
        self._to_subscribe: list[str] = []
        self._to_unsubscribe: list[str] = []
        self._ending: set[str] = set()  # sharded channels whose end was requested, and is not confirmed
        self._unconfirmed: set[str] = set()  # of a new connection
        self._answered = False  # since the last ping

    def start(self) -> None:
        """Begin connecting; returns at once."""
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Close the connection."""
        if self._task:
            await cancel_and_wait([self._task])

    def subscribe(self, channel: str) -> asyncio.Future[None]:
        """Subscribe; the future is done when Redis has confirmed it (at once if it already has)."""
        future = self._wanted.get(channel, ...)
        if isinstance(future, asyncio.Future):
            return future
        fresh: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if future is None:
            fresh.set_result(None)
            return fresh
        self._wanted[channel] = fresh
        self._to_subscribe.append(channel)
        self._changes.set()
        return fresh

    def unsubscribe(self, channel: str) -> None:
        """Unsubscribe from `channel`."""
        future = self._wanted.pop(channel, ...)
        if future is not ...:
            if future is not None and not future.done():
                future.set_result(None)  # whoever waits for others too
            self._to_unsubscribe.append(channel)
            self._changes.set()

    def restart(self) -> None:
        """Replace a connection that is suspected dead."""
        self._connection.close()

    async def _work(self) -> None:
        pause_s = PAUSE_S[0]
        while True:
            try:
                await self._connection.open()
                await self._subscribe_all()
                pause_s = PAUSE_S[0]
                await self._listen()
            except (RedisError, OSError) as error:
                log.warning("The notification connection to Redis is lost (%s); connecting again.", error)
            except Exception:
                log.exception("The notification connection to Redis failed; connecting again.")
            finally:
                self._connection.close()
            self._on_lost()
            await asyncio.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 - jitter, not a secret
            pause_s = min(pause_s * 2, PAUSE_S[1])

    async def _subscribe_all(self) -> None:
        self._to_subscribe, self._to_unsubscribe = [], []
        self._ending.clear()
        self._unconfirmed = set(self._wanted)
        await self._send("SUBSCRIBE", list(self._wanted))

    async def _send(self, command: str, channels: list[str]) -> None:
        """Send a command about channels. One about sharded channels has a single one, because all of one command have to be of
        one slot."""
        for part in _parts(channels):
            if self._prefix:
                await self._connection.send([(self._prefix + command, channel) for channel in part])
            else:
                await self._connection.send([(command, *part)])

    async def _listen(self) -> None:
        """Dispatch messages from Redis; other tasks send pings and callers' changes of subscriptions."""
        loop = asyncio.get_running_loop()
        helpers = [loop.create_task(self._change()), loop.create_task(self._ping())]
        try:
            while True:
                for reply in await self._connection.more():
                    if isinstance(reply, Exception):
                        raise reply
                    self._answered = True
                    kind, channel, *data = reply
                    if kind in (b"message", b"smessage"):
                        self._on_notification(channel.decode(), data[0])
                    elif kind in (b"subscribe", b"ssubscribe"):
                        self._confirm(channel.decode())
                    elif kind == b"sunsubscribe" and channel.decode() not in self._ending:
                        raise ConnectionError("a channel's slot was moved to another server")
                    elif kind == b"sunsubscribe":
                        self._ending.discard(channel.decode())
        finally:
            await cancel_and_wait(helpers)

    async def _ping(self) -> None:
        """Detect a dead connection that neither side has closed."""
        while True:
            self._answered = False
            try:
                await self._connection.send([("PING",)])
            except (RedisError, OSError):
                break
            await asyncio.sleep(PING_S)
            if not self._answered:
                log.warning("Redis has not answered a ping on the notification connection for %.0f s.", PING_S)
                break
        self.restart()

    async def _change(self) -> None:
        while True:
            await self._changes.wait()
            self._changes.clear()
            await asyncio.sleep(0)  # gather the requests of this turn of the loop into one command
            ends = [channel for channel in self._to_unsubscribe if channel not in self._wanted]
            begins = [channel for channel in self._to_subscribe if channel in self._wanted]
            self._to_subscribe, self._to_unsubscribe = [], []
            if self._prefix:
                self._ending.update(ends)
            try:
                await self._send("UNSUBSCRIBE", ends)
                await self._send("SUBSCRIBE", begins)
            except (RedisError, OSError):
                self.restart()  # the listener reconnects and subscribes again
                return

    def _confirm(self, channel: str) -> None:
        future = self._wanted.get(channel)
        if future is not None:
            self._wanted[channel] = None
            if not future.done():
                future.set_result(None)
        if channel in self._unconfirmed:
            self._unconfirmed.remove(channel)
            if not self._unconfirmed:
                log.info("The notification connection to Redis is restored; reading the logs for missed events.")
                self._on_restored()


def _parts(channels: list[str]) -> Iterable[list[str]]:
    for begin in range(0, len(channels), SUBSCRIBE_CHANNELS_MAX):
        yield channels[begin : begin + SUBSCRIBE_CHANNELS_MAX]
