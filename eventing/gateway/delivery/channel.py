"""Channels: the state in one gateway process of an RP with readers.

Life: made by the hub with the first reader, fed by notifications, dropped some time after the last reader left. Two
offsets matter, `flushed <= next`: `next` is the offset of the next notified event, `flushed` that of the next event to
be written to live followers; between them are the events of the present tick. A follower becomes live only when its own
next offset equals `flushed`, so nothing is lost or duplicated at the splice.

A run that does not begin at `next` shows that notifications were lost: the missing events are read from the log before
any other is delivered ("repair"). Repair also brings a new channel up to date, or one whose notification connection was
down.

The log continues in another epoch where its end may have been lost (core/events/lineage.py): followers that have nothing
beyond are notified that their epoch continues; the others, which events were withdrawn. A server that was promoted without the
history of the one before does not know its epoch: the channel does, and has the log learn it.

Where the RP has replicas, the channel holds the version vector at `flushed` (`progress`), and cursors contain it. A
follower whose vector is ahead, because it read from a replica that is ahead of this one, waits (`wait_for_more`) and is
fed until the channel has caught up: then it joins. Other RPs have no cost from this.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from time import time
from typing import Protocol

from eventing.core.events.cursors import Cursor
from eventing.core.events.lineage import Lineage, Rewound, root_epoch
from eventing.core.events.positions import LogState, OffsetGap
from eventing.core.events.progress import FeedPosition, ReaderProgress, feed_positions
from eventing.core.events.vectors import Vector, lacking, merged
from eventing.gateway.delivery.frames import Encoding, FrameHead, frames_of
from eventing.gateway.delivery.sinks import Sink
from eventing.gateway.delivery.start_positions import (
    LogChanged,
    feed_positions_of,
    own_feed,
    vector_before,
    vector_of,
    without_rewound,
)
from eventing.gateway.delivery.tally import AudienceTally
from eventing.log.reader import LogReader
from eventing.log.scripts import NOTIFICATION_EPOCH, LogRun, NoLog, parse_notification, parse_own_notification
from eventing.store.errors import RedisError
from eventing.telemetry.totals import flows, totals

# A stalled session may exceed its buffer by this.
WRITE_BYTES_MAX = 64 * 1024  # bound: bytes of one joined write; several writes
# bound: bytes of notifications received during a repair; the events are dropped and read from the log
EARLY_BYTES_MAX = 4 * 1024 * 1024
log = logging.getLogger(__name__)


FlushSpan = Callable[[str, list[bytes], int, int], AbstractContextManager[object]]
"""Makes the span of a flush: the RP's id, the events, the number of live followers, the first event's offset."""


class ChannelSession(Protocol):
    """A session (gateway/delivery/session.py), as its channels use it."""

    @property
    def encoding(self) -> Encoding:
        """Form of events for the session."""

    @property
    def sink(self) -> Sink:
        """Sink of the session."""

    def feed(self) -> None:
        """Ensure that followers which are not live are fed from the log."""


class ChannelFollower(Protocol):
    """A session's reading of the RP (gateway/delivery/session.py), as its channel uses it."""

    epoch: str
    next: int
    held: Vector | None
    live: bool
    replays: bool
    events_counted: int
    bytes_counted: int

    @property
    def session(self) -> ChannelSession:
        """Session of the reading."""

    def count(self) -> None:
        """Add the channel's deliveries since the last count to the access records."""


class Channel:
    """Live state of one RP. Made only by the hub.

    Args:
        rp: the RP's id.
        reader: reader of the log.
        soon: called when there is something to flush; the pacer decides when.
        span: makes the span of a flush; None where none are made.
    """

    __slots__ = (
        "_earlier",
        "_early",
        "_early_bytes",
        "_ended",
        "_ended_own",
        "_feed_positions",
        "_live",
        "_pending",
        "_reader",
        "_readings",
        "_repair",
        "_sinks",
        "_soon",
        "_span",
        "_waiters",
        "audience",
        "bytes",
        "dirty",
        "epoch",
        "events",
        "events_counted",
        "flow",
        "flushed",
        "flushed_at",
        "head",
        "idle_since",
        "next",
        "progress",
        "readers",
        "ready_at",
        "renumbered",
        "replicated",
        "rp",
    )  # fmt: skip

    def __init__(
        self, rp: str, reader: LogReader, soon: Callable[[Channel], None], span: FlushSpan | None = None
    ) -> None:
        self.rp = rp
        self._readings: dict[tuple[str, int], asyncio.Task[LogRun]] = {}  # under way, by their places
        self.epoch = ""
        self.next = 0  # 0: not known yet
        self.flushed = 0
        self.head = FrameHead.of(rp, "")
        self.readers = 0
        self.idle_since = 0.0
        self.dirty = False
        self.events = self.bytes = 0  # total flushed, for counting deliveries (gateway/recording.py)
        self.events_counted = 0
        self.flow = flows().hold(rp)
        self.audience: AudienceTally | None = None  # counts those that must be reading, where the RP declares any
        self.ready_at = 0.0  # loop time until which what comes is gathered; kept by the pacer
        self.flushed_at = 0.0  # when live readers were last written something, Unix seconds
        self._reader = reader
        self._soon = soon
        self._span = span
        self.replicated = False  # whether cursors have vectors here although the log has no foreign event
        # The own feed before the log was renewed after a failover, and its last sequence that is of one event only: the promoted server
        # had numbered others beyond when it was found that sealed ones were lost, and those come back from other domains.
        self.renumbered: tuple[str, int] | None = None
        self.progress: ReaderProgress | None = None  # vector at `flushed`, where feeds are known
        self._pending: list[bytes] = []
        self._feed_positions: list[FeedPosition] = []  # places of the pending events, where feeds are known
        self._live: dict[Encoding, dict[ChannelFollower, Sink]] = {}
        self._sinks: dict[Encoding, _Sinks] = {}
        self._waiters: set[asyncio.Future[None]] = set()
        self._early: list[tuple[str, int, list[bytes], list[FeedPosition] | None]] = []
        self._early_bytes = 0
        self._ended: Mapping[str, int] = {}  # earlier epochs that the log continues, with their last offsets
        self._earlier: Mapping[str, int] = {}  # as `_ended`, also those of before the channel began
        self._ended_own = 0  # last sequence of the own feed where the last of them ended
        self._repair: asyncio.Task[LogState] | None = None

    # Notifications

    def on_notification(self, message: bytes) -> None:
        """Handle a notification."""
        if message[0] > NOTIFICATION_EPOCH:
            notification = parse_notification(message)
            event_positions = feed_positions(
                notification.feed or own_feed(notification.epoch), notification.sequence, len(notification.events)
            )
            self.on_events(notification.epoch, notification.first, notification.events, event_positions)
        else:
            self.on_events(*parse_own_notification(message))

    def on_events(
        self, epoch: str, first: int, events: list[bytes], event_positions: list[FeedPosition] | None = None
    ) -> None:
        """Take a run of events from a notification. `event_positions`: None while the log has no event of another domain."""
        if self._repair is not None or not self.next:
            self._keep_early(epoch, first, events, event_positions)
        elif epoch in self._ended:
            pass  # a server that was replaced and has not noticed it yet
        elif epoch != self.epoch or first > self.next:
            self._keep_early(epoch, first, events, event_positions)
            self.repair()
        else:
            self._take(first, events, event_positions)

    def _take(self, first: int, events: list[bytes], event_positions: list[FeedPosition] | None) -> None:
        """Take events that follow `next`, or repeat earlier ones."""
        if event_positions is not None or self.progress is not None:
            self._take_positions(first, len(events), event_positions)
        if first < self.next:
            events = events[self.next - first :]
        if events:
            self._pending += events
            self.next += len(events)
            self._soon(self)

    def _keep_early(
        self, epoch: str, first: int, events: list[bytes], event_positions: list[FeedPosition] | None
    ) -> None:
        self._early_bytes += sum(map(len, events))
        if self._early_bytes > EARLY_BYTES_MAX:
            self._early.clear()  # the log has them: the next run or the periodic check finds the hole
        else:
            self._early.append((epoch, first, events, event_positions))

    # Feeds

    def replicate(self) -> None:
        """Put vectors into cursors from now on: the RP has replicas."""
        self.replicated = True
        if self.next and self.progress is None:
            self._count_feeds()

    def _take_positions(self, first: int, count: int, event_positions: list[FeedPosition] | None) -> None:
        """Store the places of the events that are about to be taken."""
        if self.progress is None:
            self._count_feeds()
        self._feed_positions += (event_positions or feed_positions(own_feed(self.epoch), first, count))[
            max(0, self.next - first) :
        ]

    def _count_feeds(self) -> None:
        """Maintain the vector from now on. All events so far are own ones, so their sequences are their offsets."""
        own = own_feed(self.epoch)
        self.progress = ReaderProgress({own: self.flushed - 1})
        self._feed_positions = feed_positions(own, self.flushed, len(self._pending))

    # Repair from the log

    def repair(self) -> asyncio.Task[LogState]:
        """Read from the log everything beyond `next`; one task at a time, shared by all callers.

        The task returns the log's extent. It raises NoLog and redis' errors.
        """
        if self._repair is None:
            self._repair = asyncio.get_running_loop().create_task(self._run_repair())
            self._repair.add_done_callback(self._repaired)
        return self._repair

    async def _run_repair(self) -> LogState:
        while True:
            wanted = self.next
            run = await self._reader.read(self.rp, wanted or 1, *(() if wanted else (0, 0)))
            state = run.state
            if state.epoch in self._ended:
                if (await self._reader.lineage(self.rp)).epoch in self._ended:
                    raise RedisError("A server answered that was replaced by another.")
                continue  # one that was promoted without the history of the one before
            if wanted and (state.epoch != self.epoch or state.next < wanted):
                lineage = await self._reader.lineage(self.rp)
                if lineage.epoch != state.epoch or await self._continue(lineage, state):
                    continue
            if not wanted or state.epoch != self.epoch or state.next < wanted:
                earlier: Mapping[str, int] = {}
                if root_epoch(state.epoch) != state.epoch:
                    lineage = await self._reader.lineage(self.rp)
                    if lineage.epoch != state.epoch:
                        continue
                    earlier = lineage.ends
                try:
                    vector = await vector_before(self._reader, self.rp, state, state.next) if state.foreign else None
                except LogChanged:
                    continue
                self._begin(state, vector, earlier)
                return state
            if run.first > wanted:
                self._lost(wanted, run)
            self._take(run.first, run.events, feed_positions_of(run, len(run.events)) if state.foreign else None)
            if self.next >= state.next:
                return state

    def _repaired(self, task: asyncio.Task[LogState]) -> None:
        self._repair = None
        early, self._early, self._early_bytes = self._early, [], 0
        if task.cancelled():
            return
        if task.exception() is not None:
            if not isinstance(task.exception(), NoLog | RedisError | OSError):
                log.error("Reading the log of %s failed", self.rp, exc_info=task.exception())
            return  # the restored notification connection or the periodic check tries again
        for one in early:
            if one[0] == self.epoch:
                self.on_events(*one)
            elif one[0] not in self._ended:
                self.repair()  # the log has them, or they are of a log that is there no more

    async def _continue(self, lineage: Lineage, state: LogState) -> bool:
        """Go on in the log's present epoch, if that continues the channel's. Returns False if it does not."""
        if self.epoch == lineage.epoch:
            return False
        end = lineage.ends.get(self.epoch)
        if end is None:
            end = lineage.shared_with(self._earlier)
            if end is None:
                return False
            await self._reader.lineage_learn(self.rp, lineage.epoch, self.epoch, end)
            lineage = Lineage(lineage.epoch, {**lineage.ends, self.epoch: end})
        before: Vector = {}
        if self.progress is not None:
            try:
                before = await vector_before(self._reader, self.rp, state, max(end + 1, state.first))
            except LogChanged:
                return True
        if (withdrawn := self.next - 1 - end) > 0 and self._pending:  # nobody has been given these
            kept = max(0, len(self._pending) - withdrawn)
            del self._pending[kept:], self._feed_positions[kept:]
        self.flush()
        log.warning("The log of %s continues after offset %d in the epoch %s", self.rp, end, lineage.epoch)
        previous, self.epoch = self.epoch, lineage.epoch
        self._ended = self._earlier = lineage.ends
        self.head = FrameHead.of(self.rp, lineage.epoch)
        own = own_feed(lineage.epoch)
        self._ended_own = before.get(own, end)
        if self.progress is not None:
            self.progress = ReaderProgress(without_rewound(self.progress.held, before, own))
        if self.flushed - 1 <= end:
            self.next = self.flushed
            vector = b"" if self.progress is None else self.progress.vector
            self._tell(lambda encoding: encoding.continued(self.head, self.flushed - 1, vector, (previous, end)))
        else:
            rewound = Rewound(previous, end + 1, self.flushed - 1)
            self.next = self.flushed = end + 1
            gap = OffsetGap(self.epoch, end + 1, end, rewound=rewound)
            if self.progress is not None:
                gap = replace(gap, cursor=str(Cursor(self.epoch, end, self.progress.held)))
            totals().gaps += sum(map(len, self._live.values()))
            self._tell(lambda encoding: encoding.gap(self.rp, gap))
        self._wake()
        return True

    def ended(self, epoch: str) -> tuple[int, int] | None:
        """Return the last offset of an earlier epoch that the channel's continues, and the own feed's sequence there; None if
        it does not."""
        end = self._ended.get(epoch)
        return None if end is None or epoch == self.epoch else (end, self._ended_own)

    def _tell(self, frame: Callable[[Encoding], bytes]) -> None:
        """Write a frame of each encoding to its live followers."""
        for encoding in list(self._live):
            data = frame(encoding)
            for sink in list(self._live.get(encoding, {}).values()):
                sink.write(data)

    def _begin(self, state: LogState, vector: Vector | None, earlier: Mapping[str, int]) -> None:
        """Start, or start anew, at the end of the log: a new epoch, or a log shorter than seen before.

        Args:
            earlier: epochs that the log continues.
        """
        had_readers = bool(self.next)
        self.flush()
        if had_readers:
            log.warning("The log of %s continues as epoch %s at offset %d", self.rp, state.epoch, state.next)
        followers = self.followers()
        for follower in followers:
            self.leave(follower)
        if self._ended and root_epoch(state.epoch) != root_epoch(self.epoch):
            self.renumbered = own_feed(self.epoch), self._ended_own
        self.epoch, self._ended, self._earlier = state.epoch, {}, earlier
        self.head = FrameHead.of(self.rp, state.epoch)
        self.next = self.flushed = state.next
        self._feed_positions = []
        self.progress = None if vector is None else ReaderProgress(vector)
        if self.replicated and vector is None:
            self._count_feeds()
        for follower in followers:
            follower.session.feed()  # the session detects the new epoch and reports it to its reader
        self._wake()

    def _lost(self, wanted: int, run: LogRun) -> None:
        """Report to live readers that the log no longer holds events whose notifications were lost."""
        self.flush()
        if run.state.foreign and self.progress is None:
            self._count_feeds()
        gap = OffsetGap(run.state.epoch, wanted, run.first - 1)
        if self.progress is not None:
            held = merged(self.progress.held, vector_of(run))
            cursor = str(Cursor(gap.epoch, gap.end, held))
            gap = replace(gap, feeds=lacking(self.progress.held, held), cursor=cursor)
            self.progress = ReaderProgress(held)
        self.next = self.flushed = gap.end + 1
        totals().gaps += sum(map(len, self._live.values()))
        self._tell(lambda encoding: encoding.gap(self.rp, gap))

    async def read(self, first: int) -> LogRun:
        """Read a run from the log, for followers that are not live. Raises NoLog and redis' errors.

        Followers at the same place share a read: the readers of a lost gateway that resume here together cost one read for each run.
        """
        place = self.epoch, first
        reading = self._readings.get(place)
        if reading is None:
            reading = self._readings[place] = asyncio.get_running_loop().create_task(self._reader.read(self.rp, first))
            reading.add_done_callback(lambda done: self._has_read(place, done))
        return await asyncio.shield(reading)  # a reader that goes away must not end it for the others

    def _has_read(self, place: tuple[str, int], reading: asyncio.Task[LogRun]) -> None:
        del self._readings[place]
        if not reading.cancelled():
            reading.exception()  # there may be no waiter left

    # Live followers

    def sinks_changed(self) -> None:
        """Regroup the sinks after a live follower's sink changed its way of writing."""
        self._sinks.clear()

    def at_front(self, follower: ChannelFollower) -> bool:
        """Return True if a follower stands at `flushed`: it lacks only future events."""
        return follower.next == self.flushed and follower.epoch == self.epoch

    def meets(self, follower: ChannelFollower) -> bool:
        """Return True if a follower at the front may join: everything it has from elsewhere has arrived here too."""
        held = follower.held
        if held is None:
            return True
        progress = self.progress or ReaderProgress({own_feed(self.epoch): self.flushed - 1})
        return progress.covers(held)

    def join(self, follower: ChannelFollower) -> None:
        """Make a follower live; it must be at the front and covered by the channel's vector."""
        follower.live = True
        follower.events_counted, follower.bytes_counted = self.events, self.bytes
        follower.replays = False
        self._live.setdefault(follower.session.encoding, {})[follower] = follower.session.sink
        self._sinks.clear()

    def leave(self, follower: ChannelFollower) -> None:
        """Stop writing to a follower, if it is live; it holds its own position from now on."""
        if follower.live:
            follower.count()
            follower.live = False
            follower.next = self.flushed
            follower.epoch = self.epoch
            follower.held = None if self.progress is None else dict(self.progress.held)
            live = self._live[follower.session.encoding]
            del live[follower]
            if not live:
                del self._live[follower.session.encoding]
            self._sinks.clear()

    def followers(self) -> list[ChannelFollower]:
        """The live followers."""
        return [follower for live in self._live.values() for follower in live]

    def flush(self, gathered: dict[Sink, list[bytes]] | None = None) -> None:
        """Write the pending events to every live follower: joined once, then the same bytes to each.

        With `gathered`, the bytes are collected there per sink instead, for sinks that follow several busy channels.
        """
        if self._span is None:
            self._flush(gathered)
        else:
            readers = sum(map(len, self._live.values()))
            with self._span(self.rp, self._pending, readers, self.flushed):
                self._flush(gathered)

    def _flush(self, gathered: dict[Sink, list[bytes]] | None) -> None:
        self.dirty = False
        pending, self._pending = self._pending, []
        written = bool(pending and self._live)
        while pending:
            size = count = 0
            while count < len(pending) and size < WRITE_BYTES_MAX:
                size += len(pending[count])
                count += 1
            part, pending = pending[:count], pending[count:]
            first = self.flushed
            self.flushed += count
            self.events += count
            self.bytes += size
            readers = sum(map(len, self._live.values()))
            counted = totals()
            counted.deliveries += count * readers
            counted.bytes_out += size * readers
            if readers:
                flows().delivered(self.flow, count * readers, size * readers)
            if self.progress is not None:
                self._flush_feeds(self.progress, first, part, gathered)
                continue
            for encoding in list(self._live):
                frame, head = encoding.event, self.head
                data = b"".join([frame(head, first + index, body) for index, body in enumerate(part)])
                self._write(encoding, data, gathered)
        if written:
            self.flushed_at = time()
        self._wake()

    def _flush_feeds(
        self, progress: ReaderProgress, first: int, part: list[bytes], gathered: dict[Sink, list[bytes]] | None
    ) -> None:
        """Flush a part of the pending events as `flush` does, where cursors have vectors and feeds may have holes."""
        event_positions, self._feed_positions = self._feed_positions[: len(part)], self._feed_positions[len(part) :]
        passed = progress.passes(self.epoch, first, event_positions)
        for encoding in list(self._live):
            self._write(encoding, b"".join(frames_of(encoding, self.head, first, part, passed)), gathered)

    def _write(self, encoding: Encoding, data: bytes, gathered: dict[Sink, list[bytes]] | None) -> None:
        sinks = self._sinks.get(encoding)
        if sinks is None:
            # a copy: a sink that stalls while it is written to leaves the live ones
            sinks = self._sinks[encoding] = _Sinks(self._live.get(encoding, {}).values())
        if gathered is None:
            sinks.write(data)
        else:
            for sink in sinks.all:
                gathered.setdefault(sink, []).append(data)

    # Waiting readers (pull)

    def _wake(self) -> None:
        if self._waiters:
            waiters, self._waiters = self._waiters, set()
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def wait_for_more(self) -> asyncio.Future[None]:
        """Return a future that is done when more has arrived, or the epoch has changed. Cancel it when it is no longer awaited."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        waiter.add_done_callback(self._waiters.discard)
        return waiter

    def release_waiters(self) -> None:
        """Wake waiting readers, whatever has arrived."""
        self._wake()

    async def wait_beyond(self, epoch: str, offset: int, wait_s: float) -> None:
        """Return when there may be events after `offset`, the epoch has changed, or `wait_s` has passed."""
        if self.epoch != epoch or self.flushed > offset + 1:
            return
        try:
            async with asyncio.timeout(wait_s):
                await self.wait_for_more()
        except TimeoutError:
            return


class _Sinks:
    """Live sinks of one encoding: those with a descriptor to write to, and the others."""

    __slots__ = ("_direct", "_fds", "_others", "all")

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self.all = list(sinks)
        self._direct = [sink for sink in self.all if sink.fd >= 0]
        self._fds = [sink.fd for sink in self._direct]
        self._others = [sink for sink in self.all if sink.fd < 0]

    def write(self, data: bytes) -> None:
        """Write the same bytes to each. Bytes that the kernel does not accept go to the sink, which waits for its reader."""
        size, write = len(data), os.write
        for index, fd in enumerate(self._fds):
            try:
                sent = write(fd, data)
            except OSError:
                sent = 0  # full, or lost: the transport detects which
            if sent != size:
                self._direct[index].write(data[sent:])
        for sink in self._others:
            sink.write(data)
