"""Sessions: one live connection of a reader each, with one follower per RP it reads.

A follower is either *live* (in its channel's live set; the channel holds its position) or *replaying* (it holds its own
position and is fed from the log). When a session's sink stalls, all its followers replay: the session holds no queue,
only positions. One task per session feeds them while there are any, at the pace at which the sink drains. The task
reports a gap to the reader wherever the log no longer holds the next event.

Where feeds are known (the RP has replicas), a position is an offset and a version vector: events that the vector covers
are not delivered again. A follower at the front whose vector is ahead of this log is *parked* until more arrives.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from typing import Protocol

from eventing.core.errors import ApplicationError
from eventing.core.events.cursors import Cursor, vector_text
from eventing.core.events.lineage import Rewound
from eventing.core.events.positions import OffsetGap, Start
from eventing.core.events.progress import ReaderProgress
from eventing.core.events.vectors import lacking, merged
from eventing.core.principals import Principal
from eventing.core.request_origin import current_origin
from eventing.gateway.delivery.channel import Channel
from eventing.gateway.delivery.frames import Encoding, frames_of
from eventing.gateway.delivery.sinks import Sink, nobody_listens
from eventing.gateway.delivery.start_positions import feed_positions_of, own_feed, vector_of, without_rewound
from eventing.gateway.recording import AccessRecords
from eventing.log.scripts import LogRun, NoLog
from eventing.records.rows import NOBODY
from eventing.store.errors import RedisError
from eventing.telemetry.totals import flows, totals

__all__ = ["Follower", "Session", "Sink"]

FEED_PAUSE_S = 0.5  # pause before reading again after the log did not answer
# Each attempt costs a read of the log.
PARKED_S = 0.02  # bound: seconds that a parked reader waits; the reader is fed again
log = logging.getLogger(__name__)


class Follower:
    """One session's reading of one RP.

    Attributes:
        next, epoch: position, while not live.
        held: the reader's version vector there; None where feeds are unknown, or the vector is not known yet.
        parked: done when there is more for a follower that is ahead of the front; None while it is not parked.
        subscription: durable subscription that this reading serves, if any.
        replays: whether it began in the past, which requires `history`, and has not reached the front since.
        op_id: id of the client's subscribe operation, for reporting the end.
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
        """True if it is to be fed from the log."""
        return not self.live and self.parked is None

    def count(self) -> None:
        """Add the channel's deliveries here since the last count to the access records. Only while live."""
        channel = self.channel
        events, content_bytes = channel.events - self.events_counted, channel.bytes - self.bytes_counted
        if events:
            self.events_counted, self.bytes_counted = channel.events, channel.bytes
            self.session.hub.records.delivered(self, events, content_bytes)


class SessionHub(Protocol):
    """The process's hub (gateway/delivery/hub.py), as its sessions use it."""

    @property
    def records(self) -> AccessRecords:
        """Access records of sessions and deliveries."""

    def released(self, channel: Channel) -> None:
        """Count one reader of the channel less."""

    def fail(self, session: Session) -> None:
        """End a session that cannot continue."""

    def check(self, channel: Channel) -> None:
        """Check the channel's log soon."""


class Session:
    """One connection of a reader. Bindings subclass or use it as it is.

    Args:
        hub: the process's hub; the session must be given to `hub.opened` and `hub.closed`.
        sink: sink of the connection.
        encoding: form of events for the connection.

    Attributes:
        principal: the reader, so that a narrowed policy can end the readings it no longer allows.
        who, reader: actors in the access records of its operations and of its deliveries; set by
            `AccessRecords.present`.
        since: time of creation, Unix seconds; `address`: the client's address.
        hops: redirects that its client has followed lately, as it states; None: it does not support moves of readers.
    """

    __slots__ = (  # sessions are many, and mostly idle: a dictionary each would cost another kilobyte
        "_drained",
        "_feeder",
        "_stopped",
        "address",
        "encoding",
        "followers",
        "hops",
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
        self.hops: int | None = None
        self._feeder: asyncio.Task[None] | None = None
        self._drained: asyncio.Event | None = None
        self._stopped = False
        sink.on_pause = self._stalled
        sink.on_resume = self._resumed
        sink.on_fd = self._fd_changed

    # Followers

    def begin(self, follower: Follower) -> None:
        """Start reading: live at once if the follower is at the channel's front, else from the log."""
        if self._stopped:
            return
        channel = follower.channel
        self.followers[channel.rp] = follower
        channel.readers += 1
        totals().readings_joined += 1
        flows().joined(channel.flow, self.who.principal, self.who.client)
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
            totals().readings_left += 1
            flows().left(follower.channel.flow, self.who.principal, self.who.client)
            if follower.channel.audience is not None:
                follower.channel.audience.left(self)
            self.hub.released(follower.channel)
            self.hub.records.left(follower)

    def closed(self) -> None:
        """Release everything after the end of the connection. Harmless when repeated."""
        self.sink.discard()
        self.sink.on_pause = self.sink.on_resume = self.sink.on_fd = nobody_listens
        for follower in list(self.followers.values()):
            self.end(follower)
        if self._feeder is not None:
            self._feeder.cancel()
            self._feeder = None

    def alive(self) -> None:
        """Note a sign of life from the client."""
        self.unanswered_pings = 0

    def abort(self, lost: bool = False) -> None:
        """Close the connection so that its reader connects again (`lost`: it does not answer); implemented by the binding."""

    def stop_reading(self) -> None:
        """Deliver nothing more, live or from the log; the connection is about to close."""
        self._stopped = True
        for follower in list(self.followers.values()):
            self.end(follower)

    def revoked(self) -> None:
        """Stop at once after revocation of the reader's token; the binding closes the connection. Harmless when repeated."""
        self.principal = None
        self.stop_reading()

    def disconnect(self, retry: bool) -> None:
        """Close the connection at an operator's request; with `retry` its reader shall connect again. Implemented by
        the binding."""
        self.stop_reading()

    def reading_ended(self, follower: Follower, error: ApplicationError) -> None:
        """Report to the reader that an RP was removed or is no longer open to this reader; implemented by the binding."""
        self.end(follower)

    def uses(self, rp: str) -> bool:
        """Return whether it reads the RP; bindings that publish add where it has published."""
        return rp in self.followers

    def redirect(self, rp: str, urls: list[str], *, hops: int, valid_s: float) -> None:
        """Advise the client to continue at one of these domains; implemented by bindings whose clients may support it.

        Args:
            hops: redirects that the client will have followed then.
            valid_s: seconds for which the advice is good.
        """

    # Slow readers

    def _stalled(self) -> None:
        for follower in self.followers.values():
            follower.channel.leave(follower)

    def _fd_changed(self) -> None:
        for follower in self.followers.values():
            if follower.live:
                follower.channel.sinks_changed()

    def _resumed(self) -> None:
        self.unanswered_pings = 0  # the client reads again
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
        """Ensure that followers which are not live are fed from the log."""
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
        """Deliver the next run from the log to a follower, or make it live if it has reached the front."""
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
            self.hub.check(channel)  # removed, or lost with the data plane: the hub finds out which
            await asyncio.sleep(FEED_PAUSE_S)
        except (RedisError, OSError):
            await asyncio.sleep(FEED_PAUSE_S)  # the log does not answer; the position is kept
        else:
            if self.followers.get(channel.rp) is follower and not follower.live:
                self._give(follower, run)

    def _park(self, follower: Follower) -> None:
        """Feed a follower again when more has arrived."""
        loop = asyncio.get_running_loop()

        def unpark() -> None:
            if follower.parked is waiter:
                follower.parked = None
                if self.followers.get(follower.channel.rp) is follower:
                    self.feed()

        waiter = follower.parked = follower.channel.wait_for_more()
        waiter.add_done_callback(lambda _: loop.call_later(PARKED_S, unpark))

    def _give(self, follower: Follower, run: LogRun) -> None:
        channel = follower.channel
        if run.state.epoch != channel.epoch or follower.next > run.state.next:
            channel.repair()  # the channel must begin the new epoch before its followers can
        if (ended := channel.ended(follower.epoch)) is not None:
            self._continue(follower, *ended)
            return
        if run.state.epoch != follower.epoch or follower.next > run.state.next:
            behind = run.state.epoch == follower.epoch and channel.next > run.state.next
            if (
                run.state.epoch == channel.epoch and not behind
            ):  # otherwise the channel is to find out what the log continues
                self._begin_anew(follower, run)
            return
        if channel.epoch != follower.epoch:
            return  # the channel must catch up first
        if run.first > follower.next:
            self._pass_over(follower, run)
        # Only up to the channel's front: later events are delivered live, or the channel is behind and catches up
        # first.
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

    def _give_uncovered(self, follower: Follower, first: int, events: list[bytes], run: LogRun) -> None:
        """Deliver those of a run's first events that the reader lacks, and extend its vector by all of them."""
        progress = ReaderProgress(merged(vector_of(run), follower.held or {}))
        passed = progress.passes(run.state.epoch, first, feed_positions_of(run, len(events)))
        follower.held = progress.held
        given = [len(body) for body, event in zip(events, passed, strict=True) if not event.covered]
        if given:
            self._delivered(follower, len(given), sum(given))
        self.sink.write(b"".join(frames_of(self.encoding, follower.channel.head, first, events, passed)))

    def _delivered(self, follower: Follower, events: int, content_bytes: int) -> None:
        """Count deliveries from the log; the channel counts live deliveries."""
        counted = totals()
        counted.deliveries += events
        counted.bytes_out += content_bytes
        flows().delivered(follower.channel.flow, events, content_bytes)
        self.hub.records.delivered(follower, events, content_bytes)

    def _continue(self, follower: Follower, end: int, own_end: int) -> None:
        """Go on in the channel's epoch, which continues the follower's up to the offset `end`; events beyond were withdrawn.

        Args:
            own_end: sequence of the own feed there.
        """
        channel, previous = follower.channel, follower.epoch
        follower.epoch = channel.epoch
        own = own_feed(channel.epoch)
        if follower.held is not None and own in follower.held:
            follower.held = without_rewound(follower.held, {own: own_end}, own)
        if follower.next - 1 <= end:
            vector = b"" if follower.held is None else vector_text(follower.held).encode()
            self.sink.write(self.encoding.continued(channel.head, follower.next - 1, vector, (previous, end)))
            return
        gap = OffsetGap(channel.epoch, end + 1, end, rewound=Rewound(previous, end + 1, follower.next - 1))
        follower.next = end + 1
        if follower.held is not None:
            gap = replace(gap, cursor=str(Cursor(gap.epoch, gap.end, follower.held)))
        totals().gaps += 1
        self.sink.write(self.encoding.gap(channel.rp, gap))

    def _begin_anew(self, follower: Follower, run: LogRun) -> None:
        """Restart after a change of epoch, or at a log that ends before the follower's position: the missing events are unknown."""
        gap = OffsetGap(run.state.epoch, 1, run.state.first - 1)
        if follower.held is not None:
            # In another epoch the feeds are others, or the same as elsewhere; a truncated log reuses its numbers.
            follower.held = follower.held if run.state.epoch != follower.epoch else {}
            if (renumbered := follower.channel.renumbered) is not None and renumbered[0] in follower.held:
                follower.held = without_rewound(follower.held, dict([renumbered]), renumbered[0])
            gap = replace(gap, cursor=str(Cursor(gap.epoch, gap.end, follower.held)))
        totals().gaps += 1
        self.sink.write(self.encoding.gap(follower.channel.rp, gap))
        follower.epoch, follower.next = run.state.epoch, run.state.first

    def _pass_over(self, follower: Follower, run: LogRun) -> None:
        """Skip the trimmed history before `run`. If the reader's vector covers all of it, that is reported instead of a gap."""
        gap, head = OffsetGap(run.state.epoch, follower.next, run.first - 1), follower.channel.head
        follower.next = run.first
        if follower.held is None and run.state.foreign:
            # The first events of another domain are among the lost ones: before them, sequences were offsets.
            follower.held = {own_feed(gap.epoch): gap.start - 1}
        if follower.held is None:
            totals().gaps += 1
            self.sink.write(self.encoding.gap(head.rp, gap))
            return
        before = vector_of(run)
        lost, follower.held = lacking(follower.held, before), merged(before, follower.held)
        if lost:
            totals().gaps += 1
            cursor = str(Cursor(gap.epoch, gap.end, follower.held))
            self.sink.write(self.encoding.gap(head.rp, replace(gap, feeds=lost, cursor=cursor)))
        else:
            self.sink.write(self.encoding.covered(head, gap.start, gap.end, vector_text(follower.held).encode()))
