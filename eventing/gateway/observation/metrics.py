"""Metrics of the gateway: its totals are copied once a second, and before it answers a scrape itself.

So the hot path has no cost from them. The same periodic task measures the event loop's delay, and the delivery lag of
some events: for the channels that wrote last, the log is queried for the newest event's time of storing.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import time

from eventing.gateway.admission.access import Descriptors
from eventing.gateway.delivery.channel import Channel
from eventing.gateway.delivery.hub import Hub
from eventing.gateway.quiet import Quiet
from eventing.log.reader import LogReader
from eventing.store.cancellation import cancel_and_wait
from eventing.store.errors import RedisError
from eventing.telemetry import folder, metrics
from eventing.telemetry.metrics import add_durations
from eventing.telemetry.process import PERIOD_S, ProcessMeasures
from eventing.telemetry.totals import Totals, totals

LAG_CHANNELS_MAX = 8  # bound: channels whose delivery lag is sampled per second; the others are not sampled
"""Channels whose delivery lag is measured each second: one round trip to Redis, which reads one entry of each."""

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
    """Metrics of one gateway process.

    Args:
        hub, descriptors: sources of the state.
        reader: reads the times of storing.
        quiet: the pauses.
    """

    def __init__(self, hub: Hub, descriptors: Descriptors, reader: LogReader, quiet: Quiet) -> None:
        self._hub = hub
        self._descriptors = descriptors
        self._reader = reader
        self._quiet = quiet
        self._reported = Totals()
        self._descriptor_reads = 0
        self._lag_seen = time.time()
        self._task: asyncio.Task[None] | None = None
        self._process: ProcessMeasures | None = None

    def start(self) -> None:
        """Begin the periodic task."""
        self._process = ProcessMeasures(folder.process_name())
        self._task = asyncio.get_running_loop().create_task(self._forever())

    async def close(self) -> None:
        """Stop, after copying the last totals."""
        if self._task is not None:
            await cancel_and_wait([self._task])
            self._task = None
            self.copy()

    def copy(self) -> None:
        """Copy the totals of the process into the metrics."""
        reported, counted = self._reported, totals()
        for name, counter in _COUNTERS:
            now = getattr(counted, name)
            if now != (before := getattr(reported, name)):
                counter.inc(now - before)
                setattr(reported, name, now)
        self._copy_events(reported, counted)
        for code, count in counted.refused.items():
            if count != (before := reported.refused.get(code, 0)):
                metrics.REFUSALS.labels(code).inc(count - before)
                reported.refused[code] = count
        for reason, count in counted.fast_path_declined.items():
            if count != (before := reported.fast_path_declined.get(reason, 0)):
                metrics.FAST_PATH_DECLINED.labels(reason).inc(count - before)
                reported.fast_path_declined[reason] = count
        add_durations(metrics.APPENDS, counted.pipelines, reported.pipelines)
        add_durations(metrics.DELIVERY_LAG, counted.lag, reported.lag)
        add_durations(metrics.LOOP_LAG, counted.loop_lag, reported.loop_lag)
        hub, descriptors = self._hub, self._descriptors
        metrics.SESSIONS.set(len(hub.sessions))
        metrics.READINGS.set(counted.readings)
        metrics.CHANNELS.set(hub.channel_count)
        metrics.DESCRIPTORS.set(len(descriptors))
        metrics.DESCRIPTOR_READS.inc(descriptors.reads - self._descriptor_reads)
        self._descriptor_reads = descriptors.reads
        if self._process is not None:
            self._process.copy()

    def _copy_events(self, reported: Totals, counted: Totals) -> None:
        """Count new events: those accepted, less duplicates. Called after the duplicates are copied."""
        new = counted.events_in - counted.duplicates
        metrics.EVENTS_PUBLISHED.inc(new - reported.events_in)
        reported.events_in = new  # as copied: net of repetitions

    async def _forever(self) -> None:
        while True:
            counted = totals()
            counted.loop_lag_s = await self._quiet.pause(PERIOD_S)
            counted.loop_lag.observe(counted.loop_lag_s)
            try:
                await self._measure_lag()
                self.copy()
            except (RedisError, OSError):
                self.copy()  # Redis is unreachable, which is counted where it is called
            except Exception:
                log.exception("Measuring failed; trying again in %g s", PERIOD_S)

    async def _measure_lag(self) -> None:
        """Compare the times at which some channels wrote their newest event with the times of storing."""
        since, self._lag_seen = self._lag_seen, time.time()
        recent = (channel for channel in self._hub.channels() if channel.flushed_at > since)
        chosen = heapq.nlargest(LAG_CHANNELS_MAX, recent, key=_flushed_at)
        wrote = [(channel.flushed_at, channel.rp, channel.flushed - 1) for channel in chosen]
        if wrote:
            stored = await self._reader.stored_at([(rp, offset) for _, rp, offset in wrote])
            for (at, _, _), stored_at in zip(wrote, stored, strict=True):
                if stored_at is not None:
                    totals().lag.observe(max(0.0, at - stored_at))


def _flushed_at(channel: Channel) -> float:
    return channel.flushed_at
