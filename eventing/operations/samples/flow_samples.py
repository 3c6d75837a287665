"""Differences of the flows of RPs (eventing/telemetry/flows.py), as samples. No I/O: the sampler says when, and gets data."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, NamedTuple

from eventing.core.ids import ADMIN_SUFFIX
from eventing.core.timestamps import timestamp
from eventing.telemetry.flows import FLOWS, WHO_MAX, Flow, Flows

HOT_MAX = 20
"""RPs that a gateway's sample names: those that moved most."""

_MEMBERS = ("publishes", "events_in", "bytes_in", "deliveries", "bytes_out", "joined", "left")


class Sample(NamedTuple):
    """One RP's sample: its row, and if readings began or ended, the data of `sessions.changed`."""

    rp: str
    row: dict[str, Any]
    sessions: dict[str, Any] | None


class FlowSamples:
    """Of one gateway.

    Args:
        gateway: its id.
    """

    def __init__(self, gateway: str, flows: Flows = FLOWS) -> None:
        self._gateway = gateway
        self._flows = flows
        self._dirty: dict[Flow, None] = {}
        self._looked_at = 0.0
        self._shown: dict[
            str, tuple[bool, float]
        ] = {}  # of watched RPs: whether something moved in the last row, and when

    def hot(self, now: float) -> list[dict[str, Any]]:
        """The RPs that moved most since this was last asked; looks at all that moved."""
        return [
            {"rp": flow.rp, "events_in": flow.hot_in, "deliveries": flow.hot_out, "readings": flow.readings}
            for flow in heapq.nlargest(HOT_MAX, self._look(now), key=_hot)
        ]

    def _look(self, now: float) -> list[Flow]:
        """Enter what moved among what is to be sampled; `hot_in`, `hot_out` say how much since it was looked at last."""
        found: list[Flow] = []
        since, self._looked_at = self._looked_at or now, now
        for flow in self._flows.moved():
            if not flow.rp or flow.rp.endswith(ADMIN_SUFFIX):
                self._flows.forget(flow)
                continue
            if not flow.since:
                flow.since = since
                self._dirty[flow] = None
            flow.hot_in, flow.hot_out = flow.events_in - flow.seen_in, flow.deliveries - flow.seen_out
            flow.seen_in, flow.seen_out = flow.events_in, flow.deliveries
            if flow.hot_in or flow.hot_out:
                found.append(flow)
        return found

    def round(self, now: float, most: int) -> list[str]:
        """The RPs whose turn it is to be sampled: of all that moved and were not sampled since, those that moved most."""
        self._look(now)
        moved: dict[Flow, None] = {}
        for flow in self._dirty:
            if flow.since and flow.totals() != flow.sampled:
                moved[flow] = None
            else:  # sampled while somebody looked at it
                flow.since = 0.0
                self._flows.forget(flow)
        self._dirty = moved
        return [flow.rp for flow in heapq.nlargest(max(0, most), moved, key=_moved)]

    def take(self, rp: str, now: float) -> Sample | None:
        """The sample of an RP; None if nothing moved."""
        flow = self._flows.get(rp)
        if flow is None or flow.totals() == flow.sampled:
            return None
        return self._sample(flow, now)

    def watched(self, rp: str, now: float, *, begins: bool) -> Sample | None:
        """The sample of an RP that somebody looks at: where something moved, once more when it stopped, and, as it
        `begins`, where it is read at all."""
        moving, since = self._shown.get(rp, (False, self._looked_at or now))
        flow = self._flows.get(rp)
        if flow is None:
            flow = Flow(rp)  # forgotten; if the last row said that it moves, another one says that it has stopped
        moved = flow.totals() != flow.sampled
        self._shown[rp] = moved, now
        if not moved and not moving and not (begins and flow.readings):
            return None
        flow.since = since
        return self._sample(flow, now)

    def unwatch(self, rps: Collection[str]) -> None:
        """Nobody looks at these any more."""
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


def _hot(flow: Flow) -> int:
    return flow.hot_in + flow.hot_out


def _moved(flow: Flow) -> int:
    """How much it moved since it was sampled last."""
    return sum(flow.totals()) - sum(flow.sampled)
