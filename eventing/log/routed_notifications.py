"""Notification channels of a data plane of several primaries: each at the home of its slot, one connection for each primary.

In a cluster the channels are sharded, so that a notification reaches the servers of its slot only. When a slot has
another home, its channels are subscribed to there, and `on_restored` makes the hub read the logs for what was published
meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from functools import partial
from time import monotonic

import redis.asyncio
from redis.exceptions import RedisError

from eventing.core.data_plane import ServerAddress, Topology
from eventing.log.notifications import NotificationChannels
from eventing.store.cancellation import cancel_and_wait
from eventing.store.plane import Plane
from eventing.store.routed_async import RoutedAsyncRedis, known, look_again

WATCH_S = 0.5  # seconds between two comparisons of the channels' places with the topology
log = logging.getLogger(__name__)


class RoutedNotificationChannels:
    """Subscriptions as of NotificationChannels; arguments likewise."""

    def __init__(
        self,
        client: RoutedAsyncRedis,
        on_notification: Callable[[str, bytes], None],
        on_restored: Callable[[], None],
    ) -> None:
        self._client = client
        self._plane: Plane = client.plane
        self._on_notification = on_notification
        self._on_restored = on_restored
        self._places: dict[str, ServerAddress | None] = {}  # None: not known yet
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._at: dict[ServerAddress, NotificationChannels] = {}
        self._topology: Topology | None = None
        self._lost = asyncio.Event()
        self._ending: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin connecting; returns at once."""
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        """Close all connections."""
        if self._task:
            await cancel_and_wait([self._task])
        await asyncio.gather(*self._ending, *(channels.close() for channels in self._at.values()))

    def subscribe(self, channel: str) -> asyncio.Future[None]:
        """Subscribe; the future is done when the channel's home has confirmed it (at once if it already has)."""
        if channel in self._waiting:
            return self._waiting[channel]
        fresh: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if channel in self._places:
            fresh.set_result(None)
            return fresh
        self._places[channel] = None
        self._waiting[channel] = fresh
        fresh.add_done_callback(lambda _: self._waiting.pop(channel, None))
        if self._topology is None:
            self._lost.set()
        else:
            self._place([channel])
        return fresh

    def unsubscribe(self, channel: str) -> None:
        """Unsubscribe from `channel`."""
        place = self._places.pop(channel, None)
        self._waiting.pop(channel, None)
        if place is not None and place in self._at:
            self._at[place].unsubscribe(channel)

    def restart(self) -> None:
        """Replace connections that are suspected dead."""
        for channels in self._at.values():
            channels.restart()

    async def _watch(self) -> None:
        """Keep each channel at its home."""
        while True:
            try:
                await known(self._plane)
                self._plane.refresh()
                if (topology := self._plane.topology()) is not self._topology or None in self._places.values():
                    self._topology = topology
                    self._place(list(self._places))
                    self._end_unused({primary.place for primary in topology.primaries})
            except RedisError as error:
                log.warning("The topology of the data plane is not known (%s); looking again.", error)
            began = monotonic()
            try:
                await asyncio.wait_for(self._lost.wait(), WATCH_S)
            except TimeoutError:
                continue
            self._lost.clear()
            with contextlib.suppress(
                RedisError
            ):  # none is known yet, and no server states it: the next turn looks again
                await look_again(self._plane, began)

    def _place(self, channels: Iterable[str]) -> None:
        """Subscribe at their homes to those channels that are elsewhere."""
        moved: list[asyncio.Future[None]] = []
        for channel in channels:
            try:
                home = self._plane.home_of_key(channel).place
            except RedisError:
                continue  # the slot has no home now
            before = self._places[channel]
            if before == home:
                continue
            self._places[channel] = home
            subscribed = self._channels_at(home).subscribe(channel)
            subscribed.add_done_callback(partial(self._confirm, channel))
            if before is not None:
                self._at[before].unsubscribe(channel)
                moved.append(subscribed)
        if moved:
            self._restored_when(moved)

    def _confirm(self, channel: str, _: asyncio.Future[None]) -> None:
        future = self._waiting.get(channel)
        if future is not None and not future.done():
            future.set_result(None)

    def _restored_when(self, moved: list[asyncio.Future[None]]) -> None:
        """Have the logs read when all of these are subscribed to."""
        left = len(moved)

        def done(_: asyncio.Future[None]) -> None:
            nonlocal left
            left -= 1
            if not left:
                log.info("%d notification channels were moved to other servers.", len(moved))
                self._on_restored()

        for future in moved:
            future.add_done_callback(done)

    def _channels_at(self, place: ServerAddress) -> NotificationChannels:
        channels = self._at.get(place)
        if channels is None:
            channels = self._at[place] = NotificationChannels(
                self._client.node(place),
                self._on_notification,
                self._on_restored,
                on_lost=self._lost.set,
                sharded=self._plane.sharded,
            )
            channels.start()
        return channels

    def _end_unused(self, homes: set[ServerAddress]) -> None:
        for place in [one for one in self._at if one not in homes and one not in self._places.values()]:
            task = asyncio.get_running_loop().create_task(self._at.pop(place).close())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


Channels = NotificationChannels | RoutedNotificationChannels


def notification_channels(
    client: redis.asyncio.Redis, on_notification: Callable[[str, bytes], None], on_restored: Callable[[], None]
) -> Channels:
    """Make the notification channels of a client's data plane; arguments as of NotificationChannels."""
    if isinstance(client, RoutedAsyncRedis):
        return RoutedNotificationChannels(client, on_notification, on_restored)
    return NotificationChannels(client, on_notification, on_restored)
