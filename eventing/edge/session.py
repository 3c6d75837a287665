"""A session: one live connection of a reader, and its followers, one per RP it reads.

Each follower is either *live* (in its channel's live set; the channel keeps its place) or *replaying* (it holds its own
place and is fed from the log). A session whose sink stalls makes all its followers replaying: it holds no queue, only
places. One task per session feeds them while there are any, at the pace at which the sink drains. The task says a gap
to the reader wherever the log no longer holds what comes next.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from redis.exceptions import RedisError

from eventing.core.errors import HeraldError
from eventing.core.positions import Gap, Start
from eventing.core.principals import Principal
from eventing.edge.frames import Encoding
from eventing.edge.sinks import Sink
from eventing.log.scripts import NoLog, Run
from eventing.records.rows import NOBODY

if TYPE_CHECKING:
    from eventing.edge.channel import Channel
    from eventing.edge.hub import Hub

__all__ = ["Follower", "Session", "Sink"]

FEED_PAUSE_S = 0.5  # before the log is asked again when it did not answer
log = logging.getLogger(__name__)


class Follower:
    """One session's reading of one RP.

    Attributes:
        next, epoch: the place, while not live.
        subscription: the durable subscription that this reading serves, if any.
        replays: whether it was begun in the past, which takes `history`, and has not come to the front since.
        op_id: the id of the client's subscribe operation, for telling it of the end.
        events_counted, bytes_counted: the channel's totals up to which deliveries have been counted, while live.
    """

    __slots__ = (
        "bytes_counted",
        "channel",
        "epoch",
        "events_counted",
        "live",
        "next",
        "op_id",
        "replays",
        "session",
        "subscription",
    )

    def __init__(self, session: Session, channel: Channel, start: Start) -> None:
        self.session = session
        self.channel = channel
        self.epoch = start.epoch
        self.next = start.next
        self.live = False
        self.subscription: str | None = None
        self.replays = False
        self.op_id: int | str | None = None
        self.events_counted = self.bytes_counted = 0

    def count(self) -> None:
        """Add what the channel has written here since the last count to the access records. Only while live."""
        channel = self.channel
        events, content_bytes = channel.events - self.events_counted, channel.bytes - self.bytes_counted
        if events:
            self.events_counted, self.bytes_counted = channel.events, channel.bytes
            self.session.hub.records.delivered(self, events, content_bytes)


class Session:
    """One connection of a reader. Bindings subclass or use it as it is.

    Args:
        hub: the process's hub; the session must be given to `hub.opened` and `hub.closed`.
        sink: where bytes go.
        encoding: how events look there.

    Attributes:
        principal: who reads, so that a narrowed policy can end the readings it no longer allows.
        who, reader: whose access records its operations and its deliveries are; `AccessRecords.present` sets them.
    """

    def __init__(self, hub: Hub, sink: Sink, encoding: Encoding) -> None:
        self.hub = hub
        self.sink = sink
        self.encoding = encoding
        self.principal: Principal | None = None
        self.who = self.reader = NOBODY
        self.followers: dict[str, Follower] = {}
        self.unanswered_pings = 0
        self._feeder: asyncio.Task[None] | None = None
        self._drained: asyncio.Event | None = None
        self._stopped = False
        sink.on_pause = self._stalled
        sink.on_resume = self._resumed
        sink.on_fd = self._fd_changed

    # Followers

    def begin(self, follower: Follower) -> None:
        """Start reading: live at once if the follower stands at the channel's front, else from the log."""
        if self._stopped:
            return
        channel = follower.channel
        self.followers[channel.rp] = follower
        channel.readers += 1
        if follower.epoch == channel.epoch and follower.next == channel.flushed and not self.sink.paused:
            channel.join(follower)
        else:
            self.feed()

    def end(self, follower: Follower) -> None:
        """Stop reading one RP."""
        follower.channel.leave(follower)
        if self.followers.pop(follower.channel.rp, None) is not None:
            self.hub.released(follower.channel)
            self.hub.records.left(follower)

    def closed(self) -> None:
        """The connection has ended: let go of everything. Harmless when repeated."""
        self.sink.discard()
        for follower in list(self.followers.values()):
            self.end(follower)
        if self._feeder is not None:
            self._feeder.cancel()
            self._feeder = None

    def alive(self) -> None:
        """The other side gave a sign of life."""
        self.unanswered_pings = 0

    def abort(self, lost: bool = False) -> None:
        """Close the connection so that its reader connects again (`lost`: it does not answer); the binding knows how."""

    def stop_reading(self) -> None:
        """Give the reader nothing more, live or from the log; the connection is about to close."""
        self._stopped = True
        for follower in list(self.followers.values()):
            self.end(follower)

    def revoked(self) -> None:
        """The reader's token has been revoked: stop at once; the binding closes the connection. Harmless when repeated."""
        self.principal = None
        self.stop_reading()

    def reading_ended(self, follower: Follower, error: HeraldError) -> None:
        """An RP that is read here is gone or no longer open to this reader; the binding tells it."""
        self.end(follower)

    # Slow readers

    def _stalled(self) -> None:
        for follower in self.followers.values():
            follower.channel.leave(follower)

    def _fd_changed(self) -> None:
        for follower in self.followers.values():
            if follower.live:
                follower.channel.sinks_changed()

    def _resumed(self) -> None:
        self.unanswered_pings = 0  # it reads again
        if self._drained is not None:
            self._drained.set()
        self.feed()

    def feed(self) -> None:
        """Make sure that the followers which are not live are fed from the log."""
        if self._feeder is None and any(not follower.live for follower in self.followers.values()):
            self._feeder = asyncio.get_running_loop().create_task(self._feed())
            self._feeder.add_done_callback(self._fed)

    def _fed(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            log.error("Feeding a session failed; it is closed", exc_info=task.exception())
            self.hub.fail(self)
        if self._feeder is task:
            self._feeder = None
            self.feed()

    async def _feed(self) -> None:
        while True:
            replaying = [follower for follower in self.followers.values() if not follower.live]
            if not replaying:
                return
            for follower in replaying:
                if self.sink.paused:
                    self._drained = asyncio.Event()
                    await self._drained.wait()
                if self.followers.get(follower.channel.rp) is follower and not follower.live:
                    await self._feed_one(follower)

    async def _feed_one(self, follower: Follower) -> None:
        """Give a follower the next run from the log, or make it live if it has come to the front."""
        channel = follower.channel
        if follower.epoch == channel.epoch and follower.next == channel.flushed:
            channel.join(follower)
            return
        try:
            run = await channel.read(follower.next)
        except NoLog:
            self.hub.check(channel)  # gone, or lost with the data plane: the hub finds out which
            await asyncio.sleep(FEED_PAUSE_S)
        except (RedisError, OSError):
            await asyncio.sleep(FEED_PAUSE_S)  # the log is away; the place is kept
        else:
            if self.followers.get(channel.rp) is follower and not follower.live:
                self._give(follower, run)

    def _give(self, follower: Follower, run: Run) -> None:
        channel = follower.channel
        if run.state.epoch != channel.epoch or follower.next > run.state.next:
            channel.repair()  # the channel must begin the new epoch before its followers can
        if run.state.epoch != follower.epoch or follower.next > run.state.next:
            self._tell_gap(follower, Gap(run.state.epoch, 1, run.state.first - 1))
            follower.epoch, follower.next = run.state.epoch, run.state.first
            return
        if run.first > follower.next:
            self._tell_gap(follower, Gap(run.state.epoch, follower.next, run.first - 1))
            follower.next = run.first
        # Only up to the channel's front: what is beyond comes live, or the channel is behind and catches up first.
        count = min(len(run.events), channel.flushed - follower.next) if channel.epoch == follower.epoch else 0
        if count > 0:
            frame, head, first = self.encoding.event, channel.head, follower.next
            follower.next += count
            self.hub.records.delivered(follower, count, sum(map(len, run.events[:count])))
            self.sink.write(
                b"".join([frame(head, first + index, body) for index, body in enumerate(run.events[:count])])
            )
        elif follower.next < run.state.next:
            channel.repair()

    def _tell_gap(self, follower: Follower, gap: Gap) -> None:
        self.sink.write(self.encoding.gap(follower.channel.rp, gap))
