"""Samples: differences of the flows of RPs (eventing/telemetry/totals.py). No I/O: the sampler decides when, and gets
data.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from eventing.core.ids import ADMIN_SUFFIX
from eventing.core.timestamps import timestamp
from eventing.telemetry.totals import WHO_MAX, Flow, Flows, flows

HOT_MAX = 20
"""RPs in a gateway's sample: those with most activity, then those with most readers."""

CROWD_MIN = 100
"""Readers from which an RP is listed without activity too: planner and balancing go by its readers, who cost something while nothing is published."""

_MEMBERS = ("publishes", "events_in", "bytes_in", "deliveries", "bytes_out", "joined", "left")


class Sample(NamedTuple):
    """One RP's sample: its row, and if readings began or ended, the data of `sessions.changed`."""

    rp: str
    row: dict[str, Any]
    sessions: dict[str, Any] | None


class FlowSamples:
    """The samples of one gateway.

    Args:
        gateway: its id.
        of: the flows to sample; None for those of the process.
    """

    def __init__(self, gateway: str, of: Flows | None = None) -> None:
        self._gateway = gateway
        self._flows = of or flows()
        self._dirty: dict[Flow, None] = {}
        self._crowded: dict[Flow, None] = {}  # with CROWD_MIN readers when they moved last
        self._sampled_at = 0.0
        self._shown: dict[
            str, tuple[bool, float]
        ] = {}  # of watched RPs: whether the last row had activity, and its time

    def hot(self, now: float, leaving: Mapping[str, int]) -> list[dict[str, Any]]:
        """Return the RPs with most activity since the last call, and then those with most readers; reads all active flows.

        Args:
            leaving: by RP, sessions that were redirected and are still here.
        """
        found = dict.fromkeys(self._read_flows(now))
        self._crowded = {flow: None for flow in self._crowded if flow.readings >= CROWD_MIN}
        for flow in self._crowded:
            if flow not in found:
                flow.hot_in = flow.hot_out = 0
                found[flow] = None
        return [
            {
                "rp": flow.rp,
                "events_in": flow.hot_in,
                "deliveries": flow.hot_out,
                "readings": flow.readings,
                "leaving": leaving.get(flow.rp, 0),
            }
            for flow in heapq.nlargest(HOT_MAX, found, key=_hot)
        ]

    def _read_flows(self, now: float) -> list[Flow]:
        """Add active flows to those to sample; `hot_in`, `hot_out` are the counts since the last call."""
        found: list[Flow] = []
        since, self._sampled_at = self._sampled_at or now, now
        for flow in self._flows.moved():
            if not flow.rp or flow.rp.endswith(ADMIN_SUFFIX):
                self._flows.forget(flow)
                continue
            if not flow.since:
                flow.since = since
                self._dirty[flow] = None
            flow.hot_in, flow.hot_out = flow.events_in - flow.seen_in, flow.deliveries - flow.seen_out
            flow.seen_in, flow.seen_out = flow.events_in, flow.deliveries
            if flow.readings >= CROWD_MIN:
                self._crowded[flow] = None
            if flow.hot_in or flow.hot_out:
                found.append(flow)
        return found

    def round(self, now: float, most: int) -> list[str]:
        """Return the RPs to sample in this turn: of all active ones not sampled since, those with most activity."""
        self._read_flows(now)
        moved: dict[Flow, None] = {}
        for flow in self._dirty:
            if flow.since and flow.totals() != flow.sampled:
                moved[flow] = None
            else:  # sampled while it was watched
                flow.since = 0.0
                self._flows.forget(flow)
        self._dirty = moved
        return [flow.rp for flow in heapq.nlargest(max(0, most), moved, key=_moved)]

    def take(self, rp: str, now: float) -> Sample | None:
        """Return the sample of an RP; None without activity."""
        flow = self._flows.get(rp)
        if flow is None or flow.totals() == flow.sampled:
            return None
        return self._sample(flow, now)

    def watched(self, rp: str, now: float, *, begins: bool) -> Sample | None:
        """Return the sample of a watched RP: with activity, once more when it stopped, and, as the watch `begins`, if
        it has readers.
        """
        moving, since = self._shown.get(rp, (False, self._sampled_at or now))
        flow = self._flows.get(rp)
        if flow is None:
            flow = Flow(rp)  # forgotten; if the last row had activity, another one states the end
        moved = flow.totals() != flow.sampled
        self._shown[rp] = moved, now
        if not moved and not moving and not (begins and flow.readings):
            return None
        flow.since = since
        return self._sample(flow, now)

    def unwatch(self, rps: Collection[str]) -> None:
        """Stop watching these RPs."""
        for rp in rps:
            self._shown.pop(rp, None)

    def _sample(self, flow: Flow, now: float) -> Sample:
        totals = flow.totals()
        delta = dict(
            zip(_MEMBERS, (one - before for one, before in zip(totals, flow.sampled, strict=True)), strict=True)
        )
        interval_s = round(max(0.001, now - (flow.since or now - 1.0)), 3)
        flow.sampled, flow.since = totals, 0.0
        who, flow.who = flow.who, {}
        self._flows.forget(flow)
        at = timestamp(datetime.fromtimestamp(now, UTC))
        row = {"gateway": self._gateway, "at": at, "interval_s": interval_s, **delta, "readings": flow.readings}
        if not delta["joined"] and not delta["left"]:
            return Sample(flow.rp, row, None)
        named = len(who) <= WHO_MAX
        sessions = {
            "gateway": self._gateway,
            "interval_s": interval_s,
            "joined": delta["joined"],
            "left": delta["left"],
            "readings": flow.readings,
            "who": [
                {"principal": identity, "client": client, "joined": joined, "left": left}
                for (identity, client), (joined, left) in (sorted(who.items()) if named else ())
            ],
        }
        return Sample(flow.rp, row, sessions)


def _hot(flow: Flow) -> tuple[int, int]:
    return flow.hot_in + flow.hot_out, flow.readings


def _moved(flow: Flow) -> int:
    """Return the amount of activity since the last sample."""
    return sum(flow.totals()) - sum(flow.sampled)
