"""Bytes of rows that a domain takes of each gossip object: a token bucket, so that contributors that sign rows ever faster cost everybody
no more than a multiple of what the object may cost."""

from __future__ import annotations

from eventing.overlay.gossip_object import GossipObject

FLOOD = 8.0
"""Times the bytes that an object costs in steady state: newcomers need them as well, for minutes (guess)."""
BURST_BYTES = (
    32_768  # bound: bytes of rows of one object at once; further rows are requested when tokens are there again
)


class ByteBudget:
    """The tokens of one object."""

    def __init__(self, of: GossipObject) -> None:
        self._per_s = FLOOD * of.bytes_per_s
        self._left = float(BURST_BYTES)
        self._at = 0.0

    def left(self, now: float) -> int:
        """Return the bytes that may be taken now; negative after more was taken."""
        self._left = min(float(BURST_BYTES), self._left + max(0.0, now - self._at) * self._per_s)
        self._at = now
        return int(self._left)

    def take(self, size: int) -> None:
        """Take bytes; what was requested is taken even if it turns out larger."""
        self._left -= size
