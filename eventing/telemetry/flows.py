"""Running totals of each RP in this process, for load samples: additions per batch or flush, and no cost for idle RPs.

Life of a flow: made with the RP's first publish, or with its channel, which holds it -> the code that counts enters the
flow among the moved ones, once -> `moved` returns these, every one or ten seconds -> a flow without a channel is
removed after its sample. Counted on the event loop's thread only.
"""

from __future__ import annotations

from eventing.core.container import per_process

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
            not); seen_in, seen_out: events_in and deliveries when they were looked at last; hot_in, hot_out: what came
            to them then. The sampler's (eventing/operations/samples/flow_samples.py).
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
