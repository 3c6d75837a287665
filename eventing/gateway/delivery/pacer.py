"""The pacer decides when a channel's gathered events are written: at once when it is idle, once per tick under load.

A tick is `tick_s` long, and longer where writing is expensive: a flush that took t seconds is followed by a pause of
`GATHERED_FLUSHES` times t, up to `tick_max_s`. So a channel of a thousand sessions spends at most a sixth of the process on
sending small segments, and gathers new events into fewer and larger ones; a channel of ten sessions keeps the short
tick. Cheap work is never delayed for expensive work: each channel has a pause of its own.

Of several idle channels that get events in one turn of the loop, the first is written within it and the others at its end,
together: a reader of several of them gets one write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import perf_counter
from typing import Protocol

from eventing.gateway.delivery.sinks import Sink

AT_ONCE_MAX = 8  # bound: channels flushed immediately per tick; the others gather until the next tick
GATHERED_FLUSHES = 5  # bound: durations of a flush; the channel gathers for that long
SLACK_S = 0.001  # channels due within this time of a flush are flushed with it: the resolution of the loop's timers


class Paced(Protocol):
    """A channel (gateway/delivery/channel.py), as the pacer uses it; the pacer sets `dirty` and `ready_at`."""

    dirty: bool
    ready_at: float

    def flush(self, gathered: dict[Sink, list[bytes]] | None = None) -> None:
        """Write the pending events, or collect them in `gathered`."""


class Pacer:
    """Scheduler of flushes. One per hub; bound to the running loop at its first call.

    Args:
        tick_s: shortest pause between two flushes of one channel, seconds; 0 gathers nothing but while the loop is
            busy.
        tick_max_s: longest, seconds.
        clock: seconds, for the durations of flushes; unlike the loop's time it advances within a callback.
    """

    def __init__(self, tick_s: float, tick_max_s: float, clock: Callable[[], float] = perf_counter) -> None:
        self._tick_s = tick_s
        self._tick_max_s = max(tick_s, tick_max_s)
        self._clock = clock
        self._dirty: list[Paced] = []
        self._timer: asyncio.Handle | None = None
        self._wakes_at = (
            0.0  # not every loop's handle has it: uvloop gives one without a time for callbacks already due
        )
        self._tick_ends = 0.0
        self._at_once = 0
        self._turn: list[Paced] = []  # to be written at the end of this turn of the loop
        self._loop: asyncio.AbstractEventLoop | None = None  # getting the running loop is a system call

    def soon(self, channel: Paced) -> None:
        """Flush `channel` now, or at the end of this turn, if it has been quiet and this tick has room for it, else at the end of its
        pause or the tick."""
        if channel.dirty:
            return
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        if now >= self._tick_ends:
            self._tick_ends = now + self._tick_s
            self._at_once = 0
        if channel.ready_at <= now and self._at_once < AT_ONCE_MAX:
            self._at_once += 1
            if self._at_once == 1:
                self._flush([channel], now)
                return
            channel.dirty = True
            if not self._turn:
                self._loop.call_soon(self._flush_turn, self._loop)
            self._turn.append(channel)
            return
        channel.dirty = True
        self._dirty.append(channel)
        self._wake_at(self._loop, channel.ready_at if channel.ready_at > now else self._tick_ends)

    def _pause_s(self, began: float) -> float:
        return min(max(self._tick_s, GATHERED_FLUSHES * (self._clock() - began)), self._tick_max_s)

    def _wake_at(self, loop: asyncio.AbstractEventLoop, when: float) -> None:
        if self._timer is not None:
            if self._wakes_at <= when:
                return
            self._timer.cancel()
        self._wakes_at = when
        self._timer = loop.call_at(when, self._flush_due, loop)

    def _flush_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        due, self._turn = self._turn, []
        self._flush(due, loop.time())

    def _flush_due(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        now = loop.time()
        horizon = now + SLACK_S
        due = [channel for channel in self._dirty if channel.ready_at <= horizon]
        self._dirty = (
            [channel for channel in self._dirty if channel.ready_at > horizon] if len(due) < len(self._dirty) else []
        )
        self._tick_ends = now + self._flush(due, now)
        self._at_once = 0
        if self._dirty:
            self._wake_at(loop, min(channel.ready_at for channel in self._dirty))

    def _flush(self, due: list[Paced], now: float) -> float:
        """Flush these channels; sinks that follow several of them get one write for all. Returns the seconds of their pause."""
        began = self._clock()
        if len(due) == 1:
            due[0].flush()
        else:
            gathered: dict[Sink, list[bytes]] = {}
            for channel in due:
                channel.flush(gathered)
            for sink, parts in gathered.items():
                sink.write(parts[0] if len(parts) == 1 else b"".join(parts))
        pause_s = self._pause_s(began)
        for channel in due:
            channel.ready_at = now + pause_s
        return pause_s
