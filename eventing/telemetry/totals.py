"""Running totals of this process, in all and of each RP, for code that is too busy for metrics: one addition per batch or
flush. Counted on the event loop's thread only.

Once a second gateway/observation/metrics.py adds the differences of `totals` to the metrics, and the load samples use
them for the console.

Flows are the totals of single RPs, for load samples; idle RPs cost nothing. Life of a flow: made with the RP's first
publish, or with its channel, which holds it -> the code that counts enters the flow among the moved ones, once ->
`moved` returns these, every one or ten seconds -> a flow without a channel is removed after its sample.
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


FLOWS_MAX = 50_000  # bound: RPs without readers that are counted at a time; the others are counted together
"""Bound: RPs without a channel that are counted at a time, some 300 bytes each; further ones share one flow without an RP."""

WHO_MAX = 20  # bound: readers named in one `sessions.changed`; no reader is named, all are counted
"""Readers whose arrival and departure is reported by name between two samples; of further ones only the number."""


class Flow:
    """Totals of one RP's clients in this process since the flow was made.

    Attributes:
        publishes: requests or operations that appended; events_in, bytes_in: events of these.
        deliveries, bytes_out: events given to readers, one per reader and event.
        joined, left: readings by sessions that began and ended.
        who: readings since the last sample: (identity, kind of client) -> began, ended; at most WHO_MAX + 1 entries.
        held: number of channels that hold the flow.
        entered: whether the flow is among the moved ones.
        sampled: the totals as they were sampled last; since: when it moved first after that (Unix seconds; 0: it has
            not); seen_in, seen_out: events_in and deliveries when they were looked at last; hot_in, hot_out: by how
            much they grew then. The sampler's (eventing/operations/samples/flow_samples.py).
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "deliveries",
        "entered",
        "events_in",
        "held",
        "hot_in",
        "hot_out",
        "joined",
        "left",
        "publishes",
        "rp",
        "sampled",
        "seen_in",
        "seen_out",
        "since",
        "who",
    )

    def __init__(self, rp: str) -> None:
        self.rp = rp
        self.publishes = self.events_in = self.bytes_in = 0
        self.deliveries = self.bytes_out = 0
        self.joined = self.left = 0
        self.who: dict[tuple[str, str], list[int]] = {}
        self.held = 0
        self.entered = False
        self.sampled = (0, 0, 0, 0, 0, 0, 0)
        self.since = 0.0
        self.seen_in = self.seen_out = 0
        self.hot_in = self.hot_out = 0

    @property
    def readings(self) -> int:
        """Number of present readings."""
        return self.joined - self.left

    def totals(self) -> tuple[int, int, int, int, int, int, int]:
        """The totals: publishes, events_in, bytes_in, deliveries, bytes_out, joined, left."""
        return (
            self.publishes,
            self.events_in,
            self.bytes_in,
            self.deliveries,
            self.bytes_out,
            self.joined,
            self.left,
        )


class Flows:
    """All flows of one process."""

    def __init__(self) -> None:
        self._by_rp: dict[str, Flow] = {}
        self._moved: list[Flow] = []
        self._others = Flow("")

    def get(self, rp: str) -> Flow | None:
        """Return the flow of an RP, if it has one."""
        return self._by_rp.get(rp)

    def hold(self, rp: str) -> Flow:
        """Return the flow of an RP for a new channel, which returns it by `release`."""
        flow = self._by_rp.get(rp)
        if flow is None:
            flow = self._by_rp[rp] = Flow(rp)
        flow.held += 1
        return flow

    def release(self, flow: Flow) -> None:
        """Release a flow whose channel is removed."""
        flow.held -= 1
        self.enter(flow)  # so that it is sampled once more, and then removed

    def enter(self, flow: Flow) -> None:
        """Enter the flow among the moved ones. Harmless when repeated; callers first check `entered`, which is cheaper."""
        if not flow.entered:
            flow.entered = True
            self._moved.append(flow)

    def published(self, rp: str, publishes: int, events: int, content_bytes: int) -> None:
        """Count events of clients that were appended."""
        flow = self._by_rp.get(rp)
        if flow is None:
            flow = self._new(rp)
        flow.publishes += publishes
        flow.events_in += events
        flow.bytes_in += content_bytes
        if not flow.entered:
            self.enter(flow)

    def delivered(self, flow: Flow, events: int, content_bytes: int) -> None:
        """Count events delivered to readers: `events` counts each reader."""
        flow.deliveries += events
        flow.bytes_out += content_bytes
        if not flow.entered:
            self.enter(flow)

    def pulled(self, rp: str, events: int, content_bytes: int) -> None:
        """Count events delivered to a reader that is not a session."""
        flow = self._by_rp.get(rp)
        self.delivered(self._new(rp) if flow is None else flow, events, content_bytes)

    def joined(self, flow: Flow, identity: str, client: str) -> None:
        """Count a reading that began."""
        flow.joined += 1
        self._who(flow, identity, client, 0)

    def left(self, flow: Flow, identity: str, client: str) -> None:
        """Count a reading that ended."""
        flow.left += 1
        self._who(flow, identity, client, 1)

    def moved(self) -> list[Flow]:
        """Return the flows that moved since the last call."""
        moved, self._moved = self._moved, []
        for flow in moved:
            flow.entered = False
        return moved

    def forget(self, flow: Flow) -> None:
        """Remove the flow after its sample, if no channel holds it and nothing has moved since."""
        if not flow.held and not flow.entered and self._by_rp.get(flow.rp) is flow:
            del self._by_rp[flow.rp]

    def _new(self, rp: str) -> Flow:
        if len(self._by_rp) >= FLOWS_MAX:
            return self._others
        flow = self._by_rp[rp] = Flow(rp)
        return flow

    def _who(self, flow: Flow, identity: str, client: str, at: int) -> None:
        key = (identity, client)
        counts = flow.who.get(key)
        if counts is not None:
            counts[at] += 1
        elif len(flow.who) <= WHO_MAX:
            flow.who[key] = [1 - at, at]
        if not flow.entered:
            self.enter(flow)


flows = per_process(Flows)
