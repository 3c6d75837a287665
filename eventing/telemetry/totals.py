"""Running totals of this process, for code that is too busy for metrics: one addition per batch.

Once a second gateway/observation/metrics.py adds the differences to the metrics, and the load samples use them for the
console. Counted on the event loop's thread only.
"""

from __future__ import annotations

from bisect import bisect_left

from eventing.core.container import per_process

BOUNDS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of durations, in seconds: an fsync of a good disk takes 0.5 ms, an append is abandoned after 8 s."""

REASONS_MAX = 100  # bound: refusal codes with labels of their own; the label `other`
"""Reasons of refusals that are distinguished; there are some thirty codes, and statuses of Django's answers. The rest
is `other`."""


class Durations:
    """A histogram in plain numbers.

    Attributes:
        counts: observations by bucket of BOUNDS_S, the last one beyond all of them.
        sum_s: sum of all observations, seconds.
    """

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds


class Totals:
    """Totals of one process since its start.

    Attributes:
        publishes: appends that succeeded: requests or operations, each of one event or a batch.
        fast_path: publishes over HTTP that took the fast path (gateway/server/fast_path.py).
        fast_path_declined: publishes that the fast path passed to the ASGI application, by reason.
        events_in, bytes_in: events of the publishes, repeated ones included, and their bytes.
        duplicates: events that the log already held.
        pipelines: durations of the pipelines of appends to Redis.
        deliveries, bytes_out: events delivered to readers, one per reader and event, and their bytes.
        lag: time from an event's storing to its writing to readers, of some flushes each second.
        gaps: gaps reported to readers.
        refused: refusals, by code.
        sessions_opened, sessions_closed: WebSocket and SSE connections.
        readings_joined, readings_left: readings of an RP by a session.
        redis_failures: failures of the appender's own connections to Redis.
        loop_lag: delay of the event loop, once a second; loop_lag_s: the last of these, seconds.
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "deliveries",
        "duplicates",
        "events_in",
        "fast_path",
        "fast_path_declined",
        "gaps",
        "lag",
        "loop_lag",
        "loop_lag_s",
        "pipelines",
        "publishes",
        "readings_joined",
        "readings_left",
        "redis_failures",
        "refused",
        "sessions_closed",
        "sessions_opened",
    )

    def __init__(self) -> None:
        self.publishes = self.events_in = self.bytes_in = self.duplicates = 0
        self.deliveries = self.bytes_out = self.gaps = 0
        self.sessions_opened = self.sessions_closed = 0
        self.readings_joined = self.readings_left = 0
        self.redis_failures = 0
        self.refused: dict[str, int] = {}
        self.fast_path = 0
        self.fast_path_declined: dict[str, int] = {}
        self.pipelines, self.lag, self.loop_lag = Durations(), Durations(), Durations()
        self.loop_lag_s = 0.0

    @property
    def readings(self) -> int:
        """Number of present readings."""
        return self.readings_joined - self.readings_left

    def refuse(self, code: str) -> None:
        """Count a refusal by its code."""
        refused = self.refused
        if code not in refused and len(refused) >= REASONS_MAX:
            code = "other"
        refused[code] = refused.get(code, 0) + 1

    def decline(self, reason: str) -> None:
        """Count a publish that the fast path passed to the ASGI application; the reasons are a closed list."""
        self.fast_path_declined[reason] = self.fast_path_declined.get(reason, 0) + 1


totals = per_process(Totals)
