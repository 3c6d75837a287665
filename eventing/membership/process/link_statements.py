"""Measured links in gossip, beside the machines: this domain's row, and the rows of others that plans of routes need.

Both follow from RPs with a target reliability: a domain that takes part in none states nothing, and keeps no rows for its planner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eventing.membership.ports import links_measured, route_participants
from eventing.overlay.gossip import Contribute, Withdraw
from eventing.overlay.link_rows import LinkMeasurements
from eventing.overlay.member import OverlayMember
from eventing.store.link_rows import LinkRow, link_rows_store
from eventing.store.link_tallies import tallies_flush

LINKS_S = 5.0
"""Between two looks at the own links and at others' rows."""
KEPT_S = 60.0
"""Rows that were stored are used for so long: then no process runs the overlay."""


class LinkStatements:
    """Statements about links of one run of the overlay, and the stored ones of others.

    Args:
        started_s: seconds since 1970 at the time 0 of the machines.
        take: hands a command to the member.
    """

    def __init__(self, member: OverlayMember, started_s: float, take: Callable[[Any], None]) -> None:
        self._member = member
        self._started_s = started_s
        self._take = take
        self._due_at = LINKS_S
        self._stated: bytes = b""

    def next_at(self) -> float:
        """Return when something is to be done."""
        return self._due_at

    def due(self, now: float) -> None:
        """State the own links, and store the rows that plans need. Raises redis.RedisError, DatabaseError."""
        if now < self._due_at:
            return
        self._due_at = now + LINKS_S
        tallies_flush()
        gossip = self._member.gossip
        if gossip is None or links_measured.provider is None:
            return
        payload = links_measured()
        if payload and payload != self._stated:
            self._take(Contribute(LinkMeasurements.name, payload))
        elif self._stated and not payload:
            self._take(Withdraw(LinkMeasurements.name))
        self._stated = payload
        rows = gossip.sets[LinkMeasurements.name].rows
        found = [rows[domain] for domain in route_participants() if domain in rows]
        at_s = self._started_s + now
        link_rows_store(
            [LinkRow(str(row.owner), max(0, round(at_s - row.version)), row.payload) for row in found], KEPT_S
        )
