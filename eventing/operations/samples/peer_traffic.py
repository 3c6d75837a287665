"""Traffic with peers, while somebody reads `domain.admin`: differences of the counts in Redis, as events. The leader's part."""

from __future__ import annotations

import heapq
import json
from datetime import UTC, datetime
from typing import Any

from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.timestamps import timestamp
from eventing.log import control
from eventing.operations.samples.publishing import Told
from eventing.outbox import administrative_events as events
from eventing.peering.events.peers import TRAFFIC_PEERS_MAX
from eventing.peering.events.shapes import TRAFFIC_MEMBERS
from eventing.peering.selectors.peers import peers_all
from eventing.peering.wire import traffic
from eventing.sql.threads import in_database
from eventing.store import keys

KEPT_S = 10
"""How long the last rows are left for snapshots: while somebody looks they are made anew each second."""

PAUSE_S_MAX = 5.0
"""Counts from before a longer pause are not compared with: nobody has looked meanwhile, and a mean of it says nothing of now."""

_COUNTED = {"sent": "sent", "taken": "events", "copies": "copies", "requests": "requests"}
"""Members of a row, each with its count (eventing/peering/wire/traffic.py: NAMES)."""

Totals = dict[str, dict[str, int]]


class PeerTraffic:
    """Of one gateway, which remembers what it counted.

    Args:
        gateway: its id.
    """

    def __init__(self, gateway: str) -> None:
        self._gateway = gateway
        self._before: Totals = {}
        self._at = 0.0
        self._moving: frozenset[str] = frozenset()

    async def look(self, now: float) -> list[Told]:
        """What was exchanged since the last look; nothing when it is the first one, or was long ago. Raises redis' errors.

        Args:
            now: Unix seconds, the event's time.
        """
        before, found = self._before, await in_database(_totals)()
        interval_s, self._before, self._at = now - self._at, found, now
        if not 0 < interval_s <= PAUSE_S_MAX:
            return []
        rows = {peer: _row(found[peer], before[peer]) for peer in found.keys() & before.keys()}
        moving = frozenset(peer for peer, row in rows.items() if any(row.values()))
        told = heapq.nlargest(
            TRAFFIC_PEERS_MAX, moving | (self._moving & rows.keys()), key=lambda peer: (sum(rows[peer].values()), peer)
        )
        self._moving = moving | (self._moving.intersection(rows) - set(told))  # what is still is told once
        if not told:
            return []
        interval_s = round(interval_s, 3)
        await in_database(traffic_keep)({peer: rows[peer] for peer in told}, interval_s, now)
        shown = [{"peer": peer, **rows[peer]} for peer in told]
        return [
            Told(
                DOMAIN_ADMIN, events.PEERS_TRAFFIC, {"gateway": self._gateway, "interval_s": interval_s, "peers": shown}
            )
        ]


def traffic_keep(rows: Totals, interval_s: float, now: float) -> None:
    """Leave the last rows for snapshots. Raises redis' errors."""
    about = {"interval_s": interval_s, "at": timestamp(datetime.fromtimestamp(now, UTC))}
    pipeline = control.client().pipeline()
    pipeline.hset(keys.PEERS_TRAFFIC_KEY, mapping={peer: json.dumps({**row, **about}) for peer, row in rows.items()})
    pipeline.expire(keys.PEERS_TRAFFIC_KEY, KEPT_S)
    pipeline.execute()


def traffic_kept() -> dict[str, dict[str, Any]]:
    """The last rows, by peer, as the domain's state has them. Raises redis' errors."""
    kept: Any = control.client().hgetall(keys.PEERS_TRAFFIC_KEY)
    return {peer.decode(): json.loads(row) for peer, row in kept.items()}


def _totals() -> Totals:
    return traffic.totals([peer.name for peer in peers_all() if peer.active])


def _row(now: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    """By the members of a row; a peer that was removed and added again counts from nothing."""
    return {member: max(0, now[_COUNTED[member]] - before[_COUNTED[member]]) for member in TRAFFIC_MEMBERS}
