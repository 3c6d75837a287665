"""A session: one live connection of a reader, and its followers, one per RP it reads.

Each follower is either *live* (in its channel's live set; the channel keeps its place) or *replaying* (it holds its own
place and is fed from the log). A session whose sink stalls makes all its followers replaying: it holds no queue, only
places. One task per session feeds them while there are any, at the pace at which the sink drains. The task says a gap
to the reader wherever the log no longer holds what comes next.

Where feeds count (the RP has replicas), a place is an offset and a version vector: events that the vector covers are not
given again. A follower at the front whose vector is ahead of what has come here is *parked* until more comes.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import Protocol

from redis.exceptions import RedisError

from eventing.core.errors import HeraldError
from eventing.core.events.cursors import Cursor, vector_text
from eventing.core.events.positions import Gap, Start
from eventing.core.events.progress import Progress
from eventing.core.events.vectors import lacking, merged
from eventing.core.principals import Principal
from eventing.core.request_origin import current_origin
from eventing.gateway.delivery.channel import Channel
from eventing.gateway.delivery.frames import Encoding, frames_of
from eventing.gateway.delivery.sinks import Sink, nobody_listens
from eventing.gateway.delivery.start_positions import places_of, vector_of
from eventing.gateway.recording import AccessRecords
from eventing.log.scripts import NoLog, Run
from eventing.records.rows import NOBODY
from eventing.telemetry.flows import FLOWS
from eventing.telemetry.totals import TOTALS

__all__ = ["Follower", "Session", "Sink"]

FEED_PAUSE_S = 0.5  # before the log is asked again when it did not answer
PARKED_S = 0.02  # at least so long is a parked follower not fed: it costs a read of its own each time
log = logging.getLogger(__name__)


class Follower:
    """One session's reading of one RP.

    Attributes:
        next, epoch: the place, while not live.
        held: the reader's version vector there; None where feeds do not count, or nothing of it is known yet.
        parked: done when there is more for a follower at the front that is ahead of it; None while it is not parked.
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
        "held",
        "live",
        "next",
        "op_id",
        "parked",
        "replays",
        "session",
        "subscription",
    )

    def __init__(self, session: Session, channel: Channel, start: Start) -> None:
        self.session = session
        self.channel = channel
        self.epoch = start.epoch
        self.next = start.next
        self.held = start.held
        self.live = False
        self.parked: asyncio.Future[None] | None = None
        self.subscription: str | None = None
        self.replays = False
        self.op_id: int | str | None = None
        self.events_counted = self.bytes_counted = 0

    @property
    def hungry(self) -> bool:
        """Whether it is to be fed from the log."""
        return not self.live and self.parked is None

    def count(self) -> None:
        """Add what the channel has written here since the last count to the access records. Only while live."""
        channel = self.channel
        events, content_bytes = channel.events - self.events_counted, channel.bytes - self.bytes_counted
        if events:
            self.events_counted, self.bytes_counted = channel.events, channel.bytes
            self.session.hub.records.delivered(self, events, content_bytes)


class SessionHub(Protocol):
    """The process's hub (gateway/delivery/hub.py), as its sessions see it."""

    @property
    def records(self) -> AccessRecords:
        """The access records of sessions and deliveries."""

    def released(self, channel: Channel) -> None:
        """One reader of the channel fewer."""

    def fail(self, session: Session) -> None:
        """End a session that cannot go on."""

    def check(self, channel: Channel) -> None:
        """Look at the channel's log soon."""


class Session:
    """One connection of a reader. Bindings subclass or use it as it is.

    Args:
        hub: the process's hub; the session must be given to `hub.opened` and `hub.closed`.
        sink: where bytes go.
        encoding: how events look there.

    Attributes:
        principal: who reads, so that a narrowed policy can end the readings it no longer allows.
        who, reader: whose access records its operations and its deliveries are; `AccessRecords.present` sets them.
        since: when it was made, Unix seconds; `address`: where its client is.
    """

    __slots__ = (  # sessions are many, and mostly idle: a dictionary each would be a kilobyte more
        "_drained",
        "_feeder",
        "_stopped",
        "address",
        "encoding",
        "followers",
        "hub",
        "principal",
        "reader",
        "since",
        "sink",
        "unanswered_pings",
        "who",
    )

    def __init__(self, hub: SessionHub, sink: Sink, encoding: Encoding) -> None:
        self.hub = hub
        self.sink = sink
        self.encoding = encoding
        self.principal: Principal | None = None
        self.who = self.reader = NOBODY
        self.since = time.time()
        self.address = current_origin.get().address
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
        TOTALS.readings_joined += 1
        FLOWS.joined(channel.flow, self.who.principal, self.who.client)
        if channel.audience is not None:
            channel.audience.joined(self)
        if not self.sink.paused and channel.at_front(follower) and channel.meets(follower):
            channel.join(follower)
        else:
            self.feed()

    def end(self, follower: Follower) -> None:
        """Stop reading one RP."""
        follower.channel.leave(follower)
        if follower.parked is not None:
            follower.parked.cancel()
        if self.followers.pop(follower.channel.rp, None) is not None:
            TOTALS.readings_left += 1
            FLOWS.left(follower.channel.flow, self.who.principal, self.who.client)
            if follower.channel.audience is not None:
                follower.channel.audience.left(self)
            self.hub.released(follower.channel)
            self.hub.records.left(follower)

    def closed(self) -> None:
        """The connection has ended: let go of everything. Harmless when repeated."""
        self.sink.discard()
        self.sink.on_pause = self.sink.on_resume = self.sink.on_fd = nobody_listens
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

    def disconnect(self, retry: bool) -> None:
        """An operator ends the connection; with `retry` its reader shall connect again. The binding knows how."""
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

    async def drained(self) -> None:
        """Return when the sink is below its bound."""
        while self.sink.paused:
            if self._drained is None or self._drained.is_set():
                self._drained = asyncio.Event()
            await self._drained.wait()

    def feed(self) -> None:
        """Make sure that the followers which are not live are fed from the log."""
        if self._feeder is None and any(follower.hungry for follower in self.followers.values()):
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
            replaying = [follower for follower in self.followers.values() if follower.hungry]
            if not replaying:
                return
            for follower in replaying:
                await self.drained()
                if self.followers.get(follower.channel.rp) is follower and follower.hungry:
                    await self._feed_one(follower)

    async def _feed_one(self, follower: Follower) -> None:
        """Give a follower the next run from the log, or make it live if it has come to the front."""
        channel = follower.channel
        if channel.at_front(follower):
            if channel.meets(follower):
                channel.join(follower)
            else:
                self._park(follower)
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

    def _park(self, follower: Follower) -> None:
        """Feed a follower again when more has come."""
        loop = asyncio.get_running_loop()

        def unpark() -> None:
            if follower.parked is waiter:
                follower.parked = None
                if self.followers.get(follower.channel.rp) is follower:
                    self.feed()

        waiter = follower.parked = follower.channel.wait_for_more()
        waiter.add_done_callback(lambda _: loop.call_later(PARKED_S, unpark))

    def _give(self, follower: Follower, run: Run) -> None:
        channel = follower.channel
        if run.state.epoch != channel.epoch or follower.next > run.state.next:
            channel.repair()  # the channel must begin the new epoch before its followers can
        if run.state.epoch != follower.epoch or follower.next > run.state.next:
            self._begin_anew(follower, run)
            return
        if channel.epoch != follower.epoch:
            return  # the channel comes first
        if run.first > follower.next:
            self._pass_over(follower, run)
        # Only up to the channel's front: what is beyond comes live, or the channel is behind and catches up first.
        count = min(len(run.events), channel.flushed - follower.next)
        if count > 0:
            first, events = follower.next, run.events[:count]
            follower.next += count
            if channel.progress is None and follower.held is None:
                frame, head = self.encoding.event, channel.head
                self._delivered(follower, count, sum(map(len, events)))
                self.sink.write(b"".join([frame(head, first + index, body) for index, body in enumerate(events)]))
            else:
                self._give_uncovered(follower, first, events, run)
        elif follower.next < run.state.next:
            channel.repair()

    def _give_uncovered(self, follower: Follower, first: int, events: list[bytes], run: Run) -> None:
        """Give of a run's first events those that the reader has not, and let its vector grow by all of them."""
        progress = Progress(merged(vector_of(run), follower.held or {}))
        passed = progress.passes(run.state.epoch, first, places_of(run, len(events)))
        follower.held = progress.held
        given = [len(body) for body, event in zip(events, passed, strict=True) if not event.covered]
        if given:
            self._delivered(follower, len(given), sum(given))
        self.sink.write(b"".join(frames_of(self.encoding, follower.channel.head, first, events, passed)))

    def _delivered(self, follower: Follower, events: int, content_bytes: int) -> None:
        """Count what was given from the log; what is given live, the channel counts."""
        TOTALS.deliveries += events
        TOTALS.bytes_out += content_bytes
        FLOWS.delivered(follower.channel.flow, events, content_bytes)
        self.hub.records.delivered(follower, events, content_bytes)

    def _begin_anew(self, follower: Follower, run: Run) -> None:
        """The log has another epoch, or ends before the follower's place: what is missing nobody knows."""
        gap = Gap(run.state.epoch, 1, run.state.first - 1)
        if follower.held is not None:
            # In another epoch the feeds are others, or the same as elsewhere; a log that was cut gives its numbers again.
            follower.held = follower.held if run.state.epoch != follower.epoch else {}
            gap = replace(gap, cursor=str(Cursor(gap.epoch, gap.end, follower.held)))
        TOTALS.gaps += 1
        self.sink.write(self.encoding.gap(follower.channel.rp, gap))
        follower.epoch, follower.next = run.state.epoch, run.state.first

    def _pass_over(self, follower: Follower, run: Run) -> None:
        """History before `run` is gone. By its vector a reader may have all of it, and is told that instead of a gap."""
        gap, head = Gap(run.state.epoch, follower.next, run.first - 1), follower.channel.head
        follower.next = run.first
        if follower.held is None:
            TOTALS.gaps += 1
            self.sink.write(self.encoding.gap(head.rp, gap))
            return
        before = vector_of(run)
        lost, follower.held = lacking(follower.held, before), merged(before, follower.held)
        if lost:
            TOTALS.gaps += 1
            cursor = str(Cursor(gap.epoch, gap.end, follower.held))
            self.sink.write(self.encoding.gap(head.rp, replace(gap, feeds=lost, cursor=cursor)))
        else:
            self.sink.write(self.encoding.covered(head, gap.start, gap.end, vector_text(follower.held).encode()))
