"""Traffic with peers while `domain.admin` has readers: differences of the counts in Redis, as events. Done by the
leader.
"""

from __future__ import annotations

import heapq
import json
from datetime import UTC, datetime
from typing import Any

from eventing.core.timestamps import timestamp
from eventing.peering.events.peers import TRAFFIC_PEERS_MAX
from eventing.peering.events.shapes import TRAFFIC_MEMBERS
from eventing.peering.selectors.peers import peers_all
from eventing.sql.threads import in_database
from eventing.store import peer_state

KEPT_S = 10
"""Seconds for which the last rows are kept for snapshots: with readers they are made anew each second."""

PAUSE_S_MAX = 5.0
"""Longest pause, seconds, over which counts are compared: a mean over a longer one does not describe the present."""

_COUNTED = {"sent": "sent", "taken": "events", "copies": "copies", "requests": "requests"}
"""Members of a row, each with its count (eventing/store/peer_state.py: TRAFFIC_NAMES)."""

Totals = dict[str, dict[str, int]]


class PeerTraffic:
    """The samples of one gateway, with its last counts.

    Args:
        gateway: its id.
    """

    def __init__(self, gateway: str) -> None:
        self._gateway = gateway
        self._before: Totals = {}
        self._at = 0.0
        self._moving: frozenset[str] = frozenset()

    async def sample(self, now: float) -> dict[str, Any] | None:
        """Return the data of the event that reports the traffic since the last call; None without traffic, at the first call,
        or after a long pause. Raises redis.RedisError.

        Args:
            now: Unix seconds, the event's time.
        """
        before, found = self._before, await in_database(_totals)()
        interval_s, self._before, self._at = now - self._at, found, now
        if not 0 < interval_s <= PAUSE_S_MAX:
            return None
        rows = {peer: _row(found[peer], before[peer]) for peer in found.keys() & before.keys()}
        moving = frozenset(peer for peer, row in rows.items() if any(row.values()))
        told = heapq.nlargest(
            TRAFFIC_PEERS_MAX, moving | (self._moving & rows.keys()), key=lambda peer: (sum(rows[peer].values()), peer)
        )
        self._moving = moving | (self._moving.intersection(rows) - set(told))  # the end of traffic is reported once
        if not told:
            return None
        interval_s = round(interval_s, 3)
        await in_database(traffic_keep)({peer: rows[peer] for peer in told}, interval_s, now)
        shown = [{"peer": peer, **rows[peer]} for peer in told]
        return {"gateway": self._gateway, "interval_s": interval_s, "peers": shown}


def traffic_keep(rows: Totals, interval_s: float, now: float) -> None:
    """Keep the last rows for snapshots. Raises redis.RedisError."""
    about = {"interval_s": interval_s, "at": timestamp(datetime.fromtimestamp(now, UTC))}
    peer_state.traffic_samples_keep({peer: json.dumps({**row, **about}) for peer, row in rows.items()}, KEPT_S)


def traffic_kept() -> dict[str, dict[str, Any]]:
    """Return the last rows, by peer, as in the domain's state. Raises redis.RedisError."""
    return {peer: json.loads(row) for peer, row in peer_state.traffic_samples_kept().items()}


def _totals() -> Totals:
    return peer_state.traffic_totals([peer.name for peer in peers_all() if peer.active])


def _row(now: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    """Return the differences, by the members of a row; a peer that was removed and added again counts from nothing."""
    return {member: max(0, now[_COUNTED[member]] - before[_COUNTED[member]]) for member in TRAFFIC_MEMBERS}
