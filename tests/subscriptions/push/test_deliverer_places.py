"""The place of a new feed in its log: an event that is published while its extent is on the way is not missed."""

from __future__ import annotations

import struct
from typing import Any

from eventing.core.events.positions import LogState
from eventing.store.keys import notification_channel
from eventing.subscriptions.push.process.deliverer import Deliverer
from eventing.subscriptions.push.process.rp_feeds import KeptBytes, RpFeed

RP, EPOCH = "a" * 26, "e"


class LateReader:
    """Answers the extent of a log as it was before an event, of which the notification arrives first: two connections."""

    def __init__(self, deliverer: Deliverer) -> None:
        self._deliverer = deliverer
        self._next = 1

    async def state(self, rp: str) -> LogState:
        read = LogState(EPOCH, 1, self._next)
        if self._next == 1:
            self._next = 2
            event = b"{}"
            message = bytes([len(EPOCH)]) + EPOCH.encode() + struct.pack(">QI", 1, len(event)) + event
            self._deliverer._notified(notification_channel(rp), message)
        return read

    async def subscription_cursors(self, rp: str, subscriptions: list[str]) -> list[Any]:
        return []


class Channels:
    """Subscriptions that are confirmed at once."""

    async def subscribe(self, channel: str) -> None:
        """Confirm."""


class NoShares:
    """A course that others look after."""

    is_shared, delivers, window, id = True, False, None, "sub_a"

    def __init__(self, feed: RpFeed) -> None:
        self.feed = feed


async def test_a_notification_before_the_extent_has_it_read_again() -> None:
    deliverer: Any = Deliverer(lambda: False)
    deliverer._reader = LateReader(deliverer)
    deliverer._channels = Channels()
    feed = deliverer._feeds[RP] = RpFeed(RP, deliverer._reader, KeptBytes())
    await deliverer._place_at(RP, [NoShares(feed)])
    assert (feed.epoch, feed.end) == (EPOCH, 2)
