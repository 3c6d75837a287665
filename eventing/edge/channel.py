"""A channel: what one gateway process knows of one RP that it has readers for.

Life: made by the hub with the first reader, fed by the bell, dropped a while after the last reader left. Three offsets
matter, `flushed <= next`, both of the next event: `next` is what the bell should bring, `flushed` what live followers
will be written next; between them are the events of the present tick. A follower joins the live ones only when its own
next offset equals `flushed`, so nothing is lost or doubled at the splice.

A run that does not begin at `next` shows that the bell lost some: the hole is read from the log before anything else is
passed on ("repair"). Repair also brings a channel up to date that was just made, or whose bell was dead.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from redis.exceptions import RedisError

from eventing.core.positions import Gap, LogState
from eventing.edge.frames import Encoding, Head
from eventing.log.reader import LogReader
from eventing.log.scripts import NoLog, Run, parse_bell

if TYPE_CHECKING:
    from eventing.edge.session import Follower, Sink

WRITE_BYTES_MAX = 64 * 1024  # frames joined into one write; what a stalled session may exceed its bound by
EARLY_BYTES_MAX = 4 * 1024 * 1024  # rung during a repair; beyond it they are dropped and read from the log instead
log = logging.getLogger(__name__)


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
        "_reader",
        "_repair",
        "_sinks",
        "_soon",
        "_waiters",
        "bytes",
        "dirty",
        "epoch",
        "events",
        "events_counted",
        "flushed",
        "head",
        "idle_since",
        "next",
        "readers",
        "ready_at",
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
        self.events = self.bytes = 0  # flushed in all, for counting deliveries (edge/recording.py)
        self.events_counted = 0
        self.ready_at = 0.0  # loop time until which what comes is gathered; kept by the pacer
        self._reader = reader
        self._soon = soon
        self._pending: list[bytes] = []
        self._live: dict[Encoding, dict[Follower, Sink]] = {}
        self._sinks: dict[Encoding, _Sinks] = {}
        self._waiters: set[asyncio.Future[None]] = set()
        self._early: list[tuple[str, int, list[bytes]]] = []
        self._early_bytes = 0
        self._repair: asyncio.Task[LogState] | None = None

    # What the bell brings

    def rung(self, message: bytes) -> None:
        """The bell rang with `message`."""
        self.ring(*parse_bell(message))

    def ring(self, epoch: str, first: int, events: list[bytes]) -> None:
        """Take a run of events from the bell."""
        if self._repair is not None or not self.next:
            self._keep_early(epoch, first, events)
        elif epoch != self.epoch or first > self.next:
            self._keep_early(epoch, first, events)
            self.repair()
        else:
            self._take(first, events)

    def _take(self, first: int, events: list[bytes]) -> None:
        """Events that follow `next`, or repeat what is before it."""
        if first < self.next:
            events = events[self.next - first :]
        if events:
            self._pending += events
            self.next += len(events)
            self._soon(self)

    def _keep_early(self, epoch: str, first: int, events: list[bytes]) -> None:
        self._early_bytes += sum(map(len, events))
        if self._early_bytes > EARLY_BYTES_MAX:
            self._early.clear()  # the log has them: the next run or the periodic check shows the hole
        else:
            self._early.append((epoch, first, events))

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
                self._begin(state)
                return state
            if run.first > wanted:
                self._lost(Gap(state.epoch, wanted, run.first - 1))
            self._take(run.first, run.events)
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
        for epoch, first, events in early:
            self.ring(epoch, first, events)

    def _begin(self, state: LogState) -> None:
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
        for follower in followers:
            follower.session.feed()  # it finds its own epoch gone, and says so to its reader
        self._wake()

    def _lost(self, gap: Gap) -> None:
        """The log no longer has what the bell did not bring: everyone live is told."""
        self.flush()
        for encoding, live in self._live.items():
            data = encoding.gap(self.rp, gap)
            for sink in list(live.values()):
                sink.write(data)
        self.next = self.flushed = gap.end + 1

    async def read(self, first: int) -> Run:
        """A run from the log, for followers that are not live. Raises NoLog and redis' errors."""
        return await self._reader.read(self.rp, first)

    # Live followers

    def sinks_changed(self) -> None:
        """A live follower's sink is to be written to in another way than before."""
        self._sinks.clear()

    def join(self, follower: Follower) -> None:
        """Make a follower live; its next offset must be `flushed`."""
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
            for encoding in list(self._live):
                frame, head = encoding.event, self.head
                data = b"".join([frame(head, first + index, body) for index, body in enumerate(part)])
                self._write(encoding, data, gathered)
        self._wake()

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

    def release_waiters(self) -> None:
        """Let waiting readers go with what there is."""
        self._wake()

    async def wait_beyond(self, epoch: str, offset: int, wait_s: float) -> None:
        """Return when there may be events after `offset`, the epoch is another, or `wait_s` is over."""
        if self.epoch != epoch or self.flushed > offset + 1:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            async with asyncio.timeout(wait_s):
                await waiter
        except TimeoutError:
            return
        finally:
            self._waiters.discard(waiter)


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
