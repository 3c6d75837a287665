"""Ended links: how often each peer ended its link within minutes, so that a link that is made and ended without end is refused. Pure.

Each link that is made and each that ends is an event for administrators, and costs the other side a search for another link. An honest
domain ends few: when it rotates a link, leaves, or finds after a restart that a link stands on one side only.
"""

from __future__ import annotations

from eventing.overlay.machine import Id

ENDED_FREE = 8  # bound: links that a peer may end at once; further ones are refused to it
ENDED_EVERY_S = 60.0  # bound: seconds for each further link of such a peer; the link is refused
PEERS_MAX = 1024  # bound: peers whose ended links are counted; the first one noted is forgotten


class EndedLinks:
    """Counts of ended links by peer, each of which decreases by one in ENDED_EVERY_S."""

    def __init__(self) -> None:
        self._of: dict[Id, tuple[float, float]] = {}

    def note(self, peer: Id, now: float) -> None:
        """Count a link that the peer ended."""
        count = self._count(peer, now) + 1.0
        self._of.pop(peer, None)
        self._of[peer] = (count, now)
        if len(self._of) > PEERS_MAX:
            del self._of[next(iter(self._of))]

    def beyond(self, peer: Id, now: float) -> int:
        """Return how many links the peer ended lately if these are too many for a further one; else 0."""
        count = self._count(peer, now)
        return int(count) if count > ENDED_FREE - 1 else 0

    def _count(self, peer: Id, now: float) -> float:
        count, at = self._of.get(peer, (0.0, now))
        return max(0.0, count - (now - at) / ENDED_EVERY_S)
