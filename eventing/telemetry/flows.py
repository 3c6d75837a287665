"""Running totals of each RP in this process, for load samples: additions for a batch or a flush, and nothing for idle RPs.

The life of a flow: made with the RP's first publish, or with its channel, which holds it -> whoever counts in it enters it
among those that moved, once -> `moved` hands these out, each second or ten -> an RP that has no channel and was sampled
is forgotten. Counted on the event loop's thread only.
"""

from __future__ import annotations

FLOWS_MAX = 50_000
"""RPs without a channel that are counted at a time, some 300 bytes each; what more there are share one flow, of no RP."""

WHO_MAX = 20
"""Readers whose coming and going is told by name between two samples; of more there are only numbers."""


class Flow:
    """What one RP's clients did in this process since it was made.

    Attributes:
        publishes: requests or operations that appended; events_in, bytes_in: events of these.
        deliveries, bytes_out: events given to readers, one per reader and event.
        joined, left: readings by sessions that began and ended.
        who: of these since the last sample, (identity, kind of client) -> began, ended; at most WHO_MAX + 1 entries.
        held: how many channels hold it.
        entered: whether it is among those that moved.
        sampled: the totals as they were sampled last; since: when it moved first after that (Unix seconds; 0: it has not);
            seen_in, seen_out: events_in and deliveries when they were looked at last; hot_in, hot_out: what came to them
            then. The sampler's (eventing/operations/samples/flow_samples.py).
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
        """Readings there are now."""
        return self.joined - self.left

    def totals(self) -> tuple[int, int, int, int, int, int, int]:
        """publishes, events_in, bytes_in, deliveries, bytes_out, joined, left."""
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
    """The flows of one process."""

    def __init__(self) -> None:
        self._by_rp: dict[str, Flow] = {}
        self._moved: list[Flow] = []
        self._others = Flow("")

    def get(self, rp: str) -> Flow | None:
        """The flow of an RP, if it has one."""
        return self._by_rp.get(rp)

    def hold(self, rp: str) -> Flow:
        """The flow of an RP that gets a channel; give it back by `release`."""
        flow = self._by_rp.get(rp)
        if flow is None:
            flow = self._by_rp[rp] = Flow(rp)
        flow.held += 1
        return flow

    def release(self, flow: Flow) -> None:
        """The channel goes."""
        flow.held -= 1
        self.enter(flow)  # so that it is looked at once more, and forgotten then

    def enter(self, flow: Flow) -> None:
        """It moved. Harmless when repeated; callers look at `entered` first, which is cheaper."""
        if not flow.entered:
            flow.entered = True
            self._moved.append(flow)

    def published(self, rp: str, publishes: int, events: int, content_bytes: int) -> None:
        """Events of clients were appended."""
        flow = self._by_rp.get(rp)
        if flow is None:
            flow = self._new(rp)
        flow.publishes += publishes
        flow.events_in += events
        flow.bytes_in += content_bytes
        if not flow.entered:
            self.enter(flow)

    def delivered(self, flow: Flow, events: int, content_bytes: int) -> None:
        """Events were given to readers: `events` counts each reader."""
        flow.deliveries += events
        flow.bytes_out += content_bytes
        if not flow.entered:
            self.enter(flow)

    def pulled(self, rp: str, events: int, content_bytes: int) -> None:
        """Events were given to a reader that is no session."""
        flow = self._by_rp.get(rp)
        self.delivered(self._new(rp) if flow is None else flow, events, content_bytes)

    def joined(self, flow: Flow, identity: str, client: str) -> None:
        """A reading began."""
        flow.joined += 1
        self._who(flow, identity, client, 0)

    def left(self, flow: Flow, identity: str, client: str) -> None:
        """A reading ended."""
        flow.left += 1
        self._who(flow, identity, client, 1)

    def moved(self) -> list[Flow]:
        """Those that moved since the last call."""
        moved, self._moved = self._moved, []
        for flow in moved:
            flow.entered = False
        return moved

    def forget(self, flow: Flow) -> None:
        """It has been sampled: if no channel holds it and nothing has moved since, it goes."""
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


FLOWS = Flows()
"""Of this process."""
