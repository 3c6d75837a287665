"""Allowance: how many records a domain sends to each peer that asks for them.

A request of some bytes can ask for the whole directory, so a peer that states an empty directory again and again would make a domain send
megabytes a second. A newcomer needs the directory once, and a second time if much of it was lost.
"""

from __future__ import annotations

from eventing.overlay.machine import Id

ALLOWANCE_S = 300.0
"""Interval for which an allowance is."""
ALLOWANCE_COPIES = (
    2  # bound: copies of the directory sent to one peer per ALLOWANCE_S; further requests are not answered
)
ALLOWANCE_RECORDS = (
    1024  # bound: records beside these copies, for what changes meanwhile; further requests are not answered
)
PEERS_MAX = 4096  # bound: peers with an allowance of their own; the others share one


class AnswerAllowance:
    """The allowances of all peers of one domain."""

    def __init__(self) -> None:
        self._interval = 0
        self._taken: dict[Id, int] = {}

    def take(self, peer: Id, wanted: int, held: int, now: float) -> int:
        """Take from a peer's allowance; return how many of the wanted records it may have.

        Args:
            held: records of the directory.
        """
        interval = int(now / ALLOWANCE_S)
        if interval != self._interval:
            self._interval, self._taken = interval, {}
        if peer not in self._taken and len(self._taken) >= PEERS_MAX:
            peer = None
        taken = self._taken.get(peer, 0)
        granted = min(wanted, max(0, ALLOWANCE_COPIES * held + ALLOWANCE_RECORDS - taken))
        self._taken[peer] = taken + granted
        return granted
