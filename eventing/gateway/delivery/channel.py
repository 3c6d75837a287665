"""A channel: what one gateway process knows of one RP that it has readers for.

Life: made by the hub with the first reader, fed by the bell, dropped a while after the last reader left. Three offsets
matter, `flushed <= next`, both of the next event: `next` is what the bell should bring, `flushed` what live followers
will be written next; between them are the events of the present tick. A follower joins the live ones only when its own
next offset equals `flushed`, so nothing is lost or doubled at the splice.

A run that does not begin at `next` shows that the bell lost some: the hole is read from the log before anything else is
passed on ("repair"). Repair also brings a channel up to date that was just made, or whose bell was dead.

Where the RP has replicas the channel keeps the version vector as of `flushed` (`progress`), and cursors have it. A
follower that has more than that, because it comes from a replica that is ahead of this one, waits (`wait_for_more`) and
is fed until the channel has come as far: then it joins. All other RPs pay nothing for it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from time import time
from typing import Protocol

from redis.exceptions import RedisError

from eventing.core.events.cursors import Cursor
from eventing.core.events.positions import Gap, LogState
from eventing.core.events.progress import Place, Progress, feed_places
from eventing.core.events.vectors import Vector, lacking, merged
from eventing.gateway.delivery.frames import Encoding, Head, frames_of
from eventing.gateway.delivery.sinks import Sink
from eventing.gateway.delivery.start_positions import LookAgain, own_feed, places_of, vector_before, vector_of
from eventing.gateway.delivery.tally import Tally
from eventing.log.reader import LogReader
from eventing.log.scripts import RING_EPOCH, NoLog, Run, parse_bell, parse_ring
from eventing.telemetry.flows import FLOWS
from eventing.telemetry.totals import TOTALS

WRITE_BYTES_MAX = 64 * 1024  # frames joined into one write; what a stalled session may exceed its bound by
EARLY_BYTES_MAX = 4 * 1024 * 1024  # rung during a repair; beyond it they are dropped and read from the log instead
log = logging.getLogger(__name__)


class FollowingSession(Protocol):
    """A session (gateway/delivery/session.py), as its channels see it."""

    @property
    def encoding(self) -> Encoding:
        """How events look there."""

    @property
    def sink(self) -> Sink:
        """Where bytes go."""

    def feed(self) -> None:
        """Make sure that the followers which are not live are fed from the log."""


class Follower(Protocol):
    """A session's reading of the RP (gateway/delivery/session.py), as its channel sees it."""

    epoch: str
    next: int
    held: Vector | None
    live: bool
    replays: bool
    events_counted: int
    bytes_counted: int

    @property
    def session(self) -> FollowingSession:
        """Whose reading it is."""

    def count(self) -> None:
        """Add what the channel has written here since the last count to the access records."""


class Channel:
    """The live state of one RP. Only the hub makes one; see the module for its life.

    Args:
        rp: the RP's id.
        reader: reads of the log.
        soon: called when there is something to flush; the pacer decides when.
    """

    __slots__ = (
        "_early",
        "_early_bytes",
        "_live",
        "_pending",
        "_places",
        "_reader",
        "_repair",
        "_sinks",
        "_soon",
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
        "replicated",
        "rp",
    )  # fmt: skip

    def __init__(self, rp: str, reader: LogReader, soon: Callable[[Channel], None]) -> None:
        self.rp = rp
        self.epoch = ""
        self.next = 0  # 0: not known yet
        self.flushed = 0
        self.head = Head.of(rp, "")
        self.readers = 0
        self.idle_since = 0.0
        self.dirty = False
        self.events = self.bytes = 0  # flushed in all, for counting deliveries (gateway/recording.py)
        self.events_counted = 0
        self.flow = FLOWS.hold(rp)
        self.audience: Tally | None = None  # counts those that must be reading, where the RP declares any
        self.ready_at = 0.0  # loop time until which what comes is gathered; kept by the pacer
        self.flushed_at = 0.0  # when live readers were last written something, Unix seconds
        self._reader = reader
        self._soon = soon
        self.replicated = False  # whether cursors have vectors here also while the log has no foreign event
        self.progress: Progress | None = None  # the vector as of `flushed`, where feeds count
        self._pending: list[bytes] = []
        self._places: list[Place] = []  # of the pending events, where feeds count
        self._live: dict[Encoding, dict[Follower, Sink]] = {}
        self._sinks: dict[Encoding, _Sinks] = {}
        self._waiters: set[asyncio.Future[None]] = set()
        self._early: list[tuple[str, int, list[bytes], list[Place] | None]] = []
        self._early_bytes = 0
        self._repair: asyncio.Task[LogState] | None = None

    # What the bell brings

    def rung(self, message: bytes) -> None:
        """The bell rang with `message`."""
        if message[0] > RING_EPOCH:
            ring = parse_ring(message)
            places = feed_places(ring.feed or own_feed(ring.epoch), ring.sequence, len(ring.events))
            self.ring(ring.epoch, ring.first, ring.events, places)
        else:
            self.ring(*parse_bell(message))

    def ring(self, epoch: str, first: int, events: list[bytes], places: list[Place] | None = None) -> None:
        """Take a run of events from the bell. `places`: None while no event of another domain has come to the log."""
        if self._repair is not None or not self.next:
            self._keep_early(epoch, first, events, places)
        elif epoch != self.epoch or first > self.next:
            self._keep_early(epoch, first, events, places)
            self.repair()
        else:
            self._take(first, events, places)

    def _take(self, first: int, events: list[bytes], places: list[Place] | None) -> None:
        """Events that follow `next`, or repeat what is before it."""
        if places is not None or self.progress is not None:
            self._take_places(first, len(events), places)
        if first < self.next:
            events = events[self.next - first :]
        if events:
            self._pending += events
            self.next += len(events)
            self._soon(self)

    def _keep_early(self, epoch: str, first: int, events: list[bytes], places: list[Place] | None) -> None:
        self._early_bytes += sum(map(len, events))
        if self._early_bytes > EARLY_BYTES_MAX:
            self._early.clear()  # the log has them: the next run or the periodic check shows the hole
        else:
            self._early.append((epoch, first, events, places))

    # Feeds

    def replicate(self) -> None:
        """The RP has replicas: cursors have vectors from here on."""
        self.replicated = True
        if self.next and self.progress is None:
            self._count_feeds()

    def _take_places(self, first: int, count: int, places: list[Place] | None) -> None:
        """The places of the events that are about to be taken."""
        if self.progress is None:
            self._count_feeds()
        self._places += (places or feed_places(own_feed(self.epoch), first, count))[max(0, self.next - first) :]

    def _count_feeds(self) -> None:
        """Keep the vector from here on. All events up to now were our own, so that their sequences are their offsets."""
        own = own_feed(self.epoch)
        self.progress = Progress({own: self.flushed - 1})
        self._places = feed_places(own, self.flushed, len(self._pending))

    # Repair: from the log

    def repair(self) -> asyncio.Task[LogState]:
        """Read from the log whatever it holds beyond `next`; one task at a time, shared by all who ask.

        The task gives the log's extent. It raises NoLog and redis' errors.
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
            if not wanted or state.epoch != self.epoch or state.next < wanted:
                try:
                    vector = await vector_before(self._reader, self.rp, state, state.next) if state.foreign else None
                except LookAgain:
                    continue
                self._begin(state, vector)
                return state
            if run.first > wanted:
                self._lost(wanted, run)
            self._take(run.first, run.events, places_of(run, len(run.events)) if state.foreign else None)
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
            return  # the bell's return or the periodic check tries again
        for one in early:
            self.ring(*one)

    def _begin(self, state: LogState, vector: Vector | None) -> None:
        """Start, or start anew, at the end of the log: a new epoch, or a log shorter than what we saw of it."""
        had_readers = bool(self.next)
        self.flush()
        if had_readers:
            log.warning("The log of %s goes on as epoch %s at offset %d", self.rp, state.epoch, state.next)
        followers = self.followers()
        for follower in followers:
            self.leave(follower)
        self.epoch = state.epoch
        self.head = Head.of(self.rp, state.epoch)
        self.next = self.flushed = state.next
        self._places = []
        self.progress = None if vector is None else Progress(vector)
        if self.replicated and vector is None:
            self._count_feeds()
        for follower in followers:
            follower.session.feed()  # it finds its own epoch gone, and says so to its reader
        self._wake()

    def _lost(self, wanted: int, run: Run) -> None:
        """The log no longer has what the bell did not bring: everyone live is told."""
        self.flush()
        if run.state.foreign and self.progress is None:
            self._count_feeds()
        gap = Gap(run.state.epoch, wanted, run.first - 1)
        if self.progress is not None:
            held = merged(self.progress.held, vector_of(run))
            cursor = str(Cursor(gap.epoch, gap.end, held))
            gap = replace(gap, feeds=lacking(self.progress.held, held), cursor=cursor)
            self.progress = Progress(held)
        self.next = self.flushed = gap.end + 1
        for encoding in list(self._live):
            data = encoding.gap(self.rp, gap)
            for sink in list(self._live.get(encoding, {}).values()):
                TOTALS.gaps += 1
                sink.write(data)

    async def read(self, first: int) -> Run:
        """A run from the log, for followers that are not live. Raises NoLog and redis' errors."""
        return await self._reader.read(self.rp, first)

    # Live followers

    def sinks_changed(self) -> None:
        """A live follower's sink is to be written to in another way than before."""
        self._sinks.clear()

    def at_front(self, follower: Follower) -> bool:
        """Whether a follower stands at `flushed`: nothing is left for it but what is to come."""
        return follower.next == self.flushed and follower.epoch == self.epoch

    def meets(self, follower: Follower) -> bool:
        """Whether a follower at the front may join: whatever it has from elsewhere has come here as well."""
        held = follower.held
        if held is None:
            return True
        progress = self.progress or Progress({own_feed(self.epoch): self.flushed - 1})
        return progress.covers(held)

    def join(self, follower: Follower) -> None:
        """Make a follower live; it must be at the front and meet what came here."""
        follower.live = True
        follower.events_counted, follower.bytes_counted = self.events, self.bytes
        follower.replays = False
        self._live.setdefault(follower.session.encoding, {})[follower] = follower.session.sink
        self._sinks.clear()

    def leave(self, follower: Follower) -> None:
        """Stop writing to a follower, if it is live; it holds its place from now on."""
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

    def followers(self) -> list[Follower]:
        """The live followers."""
        return [follower for live in self._live.values() for follower in live]

    def flush(self, gathered: dict[Sink, list[bytes]] | None = None) -> None:
        """Write the pending events to every live follower: one join, then the same bytes to each.

        With `gathered`, the bytes are put there per sink instead, for sinks that follow several busy channels.
        """
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
            TOTALS.deliveries += count * readers
            TOTALS.bytes_out += size * readers
            if readers:
                FLOWS.delivered(self.flow, count * readers, size * readers)
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
        self, progress: Progress, first: int, part: list[bytes], gathered: dict[Sink, list[bytes]] | None
    ) -> None:
        """As `flush` for a part of the pending events, where cursors have vectors and feeds may have holes."""
        places, self._places = self._places[: len(part)], self._places[len(part) :]
        passed = progress.passes(self.epoch, first, places)
        for encoding in list(self._live):
            self._write(encoding, b"".join(frames_of(encoding, self.head, first, part, passed)), gathered)

    def _write(self, encoding: Encoding, data: bytes, gathered: dict[Sink, list[bytes]] | None) -> None:
        sinks = self._sinks.get(encoding)
        if sinks is None:
            # A snapshot: a sink that stalls while it is written to leaves the live ones.
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
        """A future that is done when more has come, or the epoch is another. Cancel it when it is not waited for any more."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        waiter.add_done_callback(self._waiters.discard)
        return waiter

    def release_waiters(self) -> None:
        """Let waiting readers go with what there is."""
        self._wake()

    async def wait_beyond(self, epoch: str, offset: int, wait_s: float) -> None:
        """Return when there may be events after `offset`, the epoch is another, or `wait_s` is over."""
        if self.epoch != epoch or self.flushed > offset + 1:
            return
        try:
            async with asyncio.timeout(wait_s):
                await self.wait_for_more()
        except TimeoutError:
            return


class _Sinks:
    """The live sinks of one encoding: those with a descriptor to write to, and the others."""

    __slots__ = ("_direct", "_fds", "_others", "all")

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self.all = list(sinks)
        self._direct = [sink for sink in self.all if sink.fd >= 0]
        self._fds = [sink.fd for sink in self._direct]
        self._others = [sink for sink in self.all if sink.fd < 0]

    def write(self, data: bytes) -> None:
        """The same bytes to each. What the kernel does not take goes to the sink, which waits for its reader."""
        size, write = len(data), os.write
        for index, fd in enumerate(self._fds):
            try:
                sent = write(fd, data)
            except OSError:
                sent = 0  # full, or lost: the transport finds out which
            if sent != size:
                self._direct[index].write(data[sent:])
        for sink in self._others:
            sink.write(data)
