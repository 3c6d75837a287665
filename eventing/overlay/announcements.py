"""WaitingVectors: when a vector is sent that only helps where an eager link fails. Pure; the times of all links of a domain.

Plumtree sends an announcement by each lazy link for each message, and most links are lazy: with eight links to a domain, three
announcements for each copy, from both ends of a link at about the same time. They are needed only where an eager link has failed. So:

- A vector is sent with whatever is sent to the peer anyway, once others had time to join it (RIDE_S).
- A vector that nothing carries gets a message of its own later (ALONE_S), by when further events are in it.
- Either message, with its answer, states both vectors. So one end of a link is first, and the other waits SECOND_S longer, by when it has
  nothing left to state, unless the first has less. Both ends compute which is first, from their names, so nothing is agreed.
- While links fail, announcements are what mends the trees: for DISTURBED_S after one failed, vectors wait RIDE_S only, at both ends.

A domain that lost an eager link without a sign, as when the domain behind it crashed, receives announcements of what it lacks at most
ALONE_S + SECOND_S late; its timer begins then (graft_timer.py). Both together are well below PRESUMED_S (presumed_vector.py), after which
a peer is asked what it holds.
"""

from __future__ import annotations

import math
from hashlib import blake2b

from eventing.overlay.machine import Id

RIDE_S = 0.25  # for the runs of the same moment (guess: two hops on a busy machine)
ALONE_S = 2.0  # simulated with twelve domains of eight links, an event in 1.5 s: 30 requests per event; with 1 s 47; with 0.25 s at both ends 65
SECOND_S = 0.5  # longer than a request and its answer take, on a busy machine too (guess)
DISTURBED_S = (
    30.0  # links that failed together were found, and trees mended, by then (guess: several timeouts of a request)
)
# Twice the number of peers.
WAITING_MAX = 2000  # bound: peers for which vectors wait; all begin to wait anew


class WaitingVectors:
    """The vectors that wait, by peer. Safe to use from several threads, one for each peer.

    Args:
        me: the domain whose links these are.
    """

    def __init__(self, me: Id) -> None:
        self._me = me
        self._since: dict[Id, float] = {}
        self._disturbed_until = -math.inf

    def waits(self, peer: Id, since: float) -> None:
        """Note that a vector waits for a peer since a time, unless one has waited for longer."""
        if len(self._since) >= WAITING_MAX:
            self._since.clear()
        self._since[peer] = min(since, self._since.get(peer, since))

    def since(self, peer: Id) -> float | None:
        """Return since when a vector waits for a peer; None if none does."""
        return self._since.get(peer)

    def over(self, peer: Id) -> None:
        """Note that no vector waits for a peer any more."""
        self._since.pop(peer, None)

    def rides(self, peer: Id, now: float) -> bool:
        """Return whether the vectors that wait go with a message that is sent to the peer now."""
        since = self._since.get(peer)
        return since is not None and now >= since + RIDE_S

    def due_at(self, peer: Id, now: float) -> float:
        """Return when the vectors that wait for a peer get a message of their own; infinity where none wait."""
        since = self._since.get(peer)
        return math.inf if since is None else self.due_after(peer, since, now)

    def due_after(self, peer: Id, since: float, now: float) -> float:
        """Return when vectors that wait for a peer since a time get a message of their own."""
        if now < self._disturbed_until:
            return since + RIDE_S
        return since + ALONE_S + (0.0 if is_first(self._me, peer) else SECOND_S)

    def disturbed(self, now: float) -> list[Id]:
        """Note that a link has failed; return the peers whose vectors wait no longer now."""
        self._disturbed_until = now + DISTURBED_S
        return sorted(list(self._since))  # noqa: C414 - a copy at once, while other threads change it


def is_first(me: Id, peer: Id) -> bool:
    """Return whether this end of a link announces first. Of all links of a domain that is about half."""
    return _drawn(me, peer) < _drawn(peer, me)


def _drawn(one: Id, other: Id) -> bytes:
    return blake2b(f"{one} {other}".encode(), digest_size=8).digest()
