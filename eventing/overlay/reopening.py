"""Reopening: where many links fail at once, events go by lazy links too, and trees are mended by them. Pure.

After a silent crash of most domains hardly any link of a tree is left, and mending it one graft after the other takes a second and more for
each hop: an announcement, the patience of its receiver, the request. So:

- A domain of whose links half do not answer (DOUBTED_SHARE, DOUBT_S) sends what its other peers lack, by all its links, lazy or not. The message
  with the events grafts their feed, so that both ends send by the link from then on.
- A domain that receives new events with such a graft does the same: the tree has failed before it. So the event spreads as fast as messages.
- Copies that were redundant prune their links, as ever. What is left is a tree.

A peer that lies about failures makes honest domains send redundant copies, which is why nobody reopens links for longer than FOR_S in EVERY_S.
"""

from __future__ import annotations

import math

DOUBT_S = 0.6  # several times an answer over a bad path (simulated: p90 of the round trips 0.29 s)
DOUBT_USUAL = 3.0  # and as many times what the peer took lately: nobody is in doubt who is slow
USUAL_KEPT = 0.95  # of that, for each answer (guess: twenty answers)
DOUBTED_SHARE = (
    0.5  # of the links; a crash of single neighbours, and loss of a fifth of all messages, is mended by grafts
)
DOUBTED_MIN = 2
FOR_S = 5.0  # bound: seconds in EVERY_S within which links are reopened; grafts mend the trees afterwards
# The event on its way, and those that are published meanwhile (guess: twenty hops)
EVERY_S = 60.0  # with eight links this bounds redundant copies, whoever lies, to 0.7 for each event (8 x 5 / 60)


class AnswerTimes:
    """Usual time, seconds, in which a peer that is asked gives a sign of life: a busy machine or a long way is no failure."""

    __slots__ = ("_asked_at", "_usual_s")

    def __init__(self) -> None:
        self._asked_at = math.inf
        self._usual_s = 0.0

    def asked(self, now: float) -> None:
        """Note a request."""
        self._asked_at = min(self._asked_at, now)

    def heard(self, now: float) -> None:
        """Note a message of the peer, whatever it is about."""
        if self._asked_at < math.inf:
            self._usual_s = max(now - self._asked_at, USUAL_KEPT * self._usual_s)
            self._asked_at = math.inf

    def in_doubt(self, now: float, doubt_s: float = DOUBT_S) -> bool:
        """Return whether the peer has been silent for longer than is usual, and than `doubt_s`."""
        return now >= self._asked_at + max(doubt_s, DOUBT_USUAL * self._usual_s)


class Reopening:
    """Times at which a domain may reopen its links."""

    def __init__(self) -> None:
        self._since = -math.inf

    def begins(self, now: float) -> bool:
        """Return whether links are reopened now; the time within which they may be begins with the first."""
        if now >= self._since + EVERY_S:
            self._since = now
        return now < self._since + FOR_S


def many_doubted(doubted: int, links: int) -> bool:
    """Return whether so many of a domain's links are in doubt that its trees cannot be relied on."""
    return doubted >= max(DOUBTED_MIN, DOUBTED_SHARE * links)
