"""The gateway's metrics: what it counts anyway is copied once a second, and before it answers a scrape itself.

So the hot path pays nothing for them. The same second's turn measures the event loop's lag, and how late some events
reached their readers: of the channels that wrote last, the newest event's time of storing is asked of the log.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time

from redis.exceptions import RedisError

from eventing.gateway.admission.access import Descriptors
from eventing.gateway.delivery.channel import Channel
from eventing.gateway.delivery.hub import Hub
from eventing.log.reader import LogReader
from eventing.store.cancellation import cancel_and_wait
from eventing.telemetry import folder, metrics
from eventing.telemetry.metrics import add_durations
from eventing.telemetry.process import PERIOD_S, ProcessMeasures
from eventing.telemetry.totals import TOTALS, Totals

LAG_CHANNELS_MAX = 8
"""Channels whose delivery lag is looked at each second: one round trip to Redis, which reads one entry of each."""

_COUNTERS = (
    ("publishes", metrics.PUBLISHES),
    ("fast_path", metrics.FAST_PATH),
    ("duplicates", metrics.EVENTS_REPEATED),
    ("bytes_in", metrics.PUBLISHED_BYTES),
    ("deliveries", metrics.EVENTS_DELIVERED),
    ("bytes_out", metrics.DELIVERED_BYTES),
    ("gaps", metrics.GAPS),
    ("sessions_opened", metrics.SESSIONS_OPENED),
    ("sessions_closed", metrics.SESSIONS_CLOSED),
    ("readings_joined", metrics.READINGS_BEGUN),
    ("redis_failures", metrics.REDIS_FAILURES),
)
log = logging.getLogger(__name__)


class Measuring:
    """Of one gateway process.

    Args:
        hub, descriptors: whose state is told.
        reader: asked when events were stored.
    """

    def __init__(self, hub: Hub, descriptors: Descriptors, reader: LogReader) -> None:
        self._hub = hub
        self._descriptors = descriptors
        self._reader = reader
        self._told = Totals()
        self._descriptor_reads = 0
        self._lag_seen = time.time()
        self._task: asyncio.Task[None] | None = None
        self._process: ProcessMeasures | None = None

    def start(self) -> None:
        """Begin the second's turn."""
        self._process = ProcessMeasures(folder.process_name())
        self._task = asyncio.get_running_loop().create_task(self._forever())

    async def close(self) -> None:
        """End, having told what was counted last."""
        if self._task is not None:
            await cancel_and_wait([self._task])
            self._task = None
            self.copy()

    def copy(self) -> None:
        """Put what the process has counted into the metrics."""
        told = self._told
        for name, counter in _COUNTERS:
            now = getattr(TOTALS, name)
            if now != (before := getattr(told, name)):
                counter.inc(now - before)
                setattr(told, name, now)
        self._copy_events(told)
        for code, count in TOTALS.refused.items():
            if count != (before := told.refused.get(code, 0)):
                metrics.REFUSALS.labels(code).inc(count - before)
                told.refused[code] = count
        for reason, count in TOTALS.fast_path_declined.items():
            if count != (before := told.fast_path_declined.get(reason, 0)):
                metrics.FAST_PATH_DECLINED.labels(reason).inc(count - before)
                told.fast_path_declined[reason] = count
        add_durations(metrics.APPENDS, TOTALS.flights, told.flights)
        add_durations(metrics.DELIVERY_LAG, TOTALS.lag, told.lag)
        add_durations(metrics.LOOP_LAG, TOTALS.loop_lag, told.loop_lag)
        hub, descriptors = self._hub, self._descriptors
        metrics.SESSIONS.set(len(hub.sessions))
        metrics.READINGS.set(TOTALS.readings)
        metrics.CHANNELS.set(hub.channel_count)
        metrics.DESCRIPTORS.set(len(descriptors))
        metrics.DESCRIPTOR_READS.inc(descriptors.reads - self._descriptor_reads)
        self._descriptor_reads = descriptors.reads
        if self._process is not None:
            self._process.copy()

    def _copy_events(self, told: Totals) -> None:
        """Events that were new: those taken, less those that the log had. After the repeated ones are told."""
        new = TOTALS.events_in - TOTALS.duplicates
        metrics.EVENTS_PUBLISHED.inc(new - told.events_in)
        told.events_in = new  # as told: net of repetitions

    async def _forever(self) -> None:
        while True:
            asked = time.monotonic() + PERIOD_S
            await asyncio.sleep(PERIOD_S)
            TOTALS.loop_lag_s = max(0.0, time.monotonic() - asked)
            TOTALS.loop_lag.observe(TOTALS.loop_lag_s)
            try:
                await self._look_at_lag()
                self.copy()
            except (RedisError, OSError):
                self.copy()  # Redis is away: that is counted where it is called
            except Exception:
                log.exception("Measuring failed; trying again in %g s", PERIOD_S)

    async def _look_at_lag(self) -> None:
        """Compare when some channels wrote their newest event with when it was stored."""
        since, self._lag_seen = self._lag_seen, time.time()
        recent = (channel for channel in self._hub.channels() if channel.flushed_at > since)
        chosen = heapq.nlargest(LAG_CHANNELS_MAX, recent, key=_flushed_at)
        wrote = [(channel.flushed_at, channel.rp, channel.flushed - 1) for channel in chosen]
        if wrote:
            stored = await self._reader.stored_at([(rp, offset) for _, rp, offset in wrote])
            for (at, _, _), stored_at in zip(wrote, stored, strict=True):
                if stored_at is not None:
                    TOTALS.lag.observe(max(0.0, at - stored_at))


def _flushed_at(channel: Channel) -> float:
    return channel.flushed_at
