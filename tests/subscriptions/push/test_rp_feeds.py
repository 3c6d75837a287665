"""Bounds of what the deliverer keeps of logs."""

from __future__ import annotations

from typing import Any, cast

from eventing.core.events.positions import LogState
from eventing.log.scripts import OWN, Notification
from eventing.subscriptions.push.process import rp_feeds
from eventing.subscriptions.push.process.rp_feeds import KeptBytes, RpFeed


def test_notifications_of_many_rps_are_kept_within_one_bound() -> None:
    kept, reader, run = KeptBytes(), cast(Any, None), [bytes(rp_feeds.RUNS_BYTES_MAX // 2)]
    feeds = [RpFeed(f"rp{number}", reader, kept) for number in range(50)]
    state = LogState("e", 1, 1)
    for feed in feeds:
        feed.follow(state)
        assert feed.notified(Notification("e", 1, run, OWN, 1))
    assert kept.total <= rp_feeds.ALL_BYTES_MAX
    assert feeds[-1].peek(1, 1) is not None, "the newest is kept"
    assert feeds[0].peek(1, 1) is None, "the oldest is read again when it is needed"
