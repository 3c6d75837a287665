"""State of a link between two replicas of an RP, in five parts, each with a module of its rules; broadcast.py combines them.

A part is replaced when it changes, and only then: most exchanges change two.
"""

from __future__ import annotations

import msgspec

from eventing.overlay.feed_tree import NEW_TREE, FeedTree
from eventing.overlay.graft_timer import IDLE, GraftTimer
from eventing.overlay.link_refusals import NOTHING_REFUSED, LinkRefusals, refusals_until
from eventing.overlay.link_vector import UNMET, PeerVector
from eventing.overlay.presumed_vector import NOTHING_PRESUMED, PresumedVector


class Link(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The state of one link: its parts, which are replaced one by one when they change."""

    peer: PeerVector = UNMET
    tree: FeedTree = NEW_TREE
    timer: GraftTimer = IDLE
    presumed: PresumedVector = NOTHING_PRESUMED
    refusals: LinkRefusals = NOTHING_REFUSED

    @property
    def met(self) -> bool:
        """True if the peer has stated its vector."""
        return self.peer.met

    @property
    def theirs(self) -> dict[str, int]:
        """The peer's vector, as stated last."""
        return self.peer.theirs


NEW = Link()


def holds(link: Link, feed_key: str) -> int:
    """Return the sequence up to which the peer holds a feed, by its statement and by runs that passed through it."""
    return max(link.theirs.get(feed_key, 0), link.presumed.upto.get(feed_key, 0))


def again_at(link: Link, *, after: float = 0.0) -> float | None:
    """Return the time of the link's next timer or of the end of a delay; None for never.

    Args:
        after: delays that ended until then are over: nothing follows when the peer holds by now what it refused before.
    """
    times = [until for until in refusals_until(link.refusals) if until > after]
    times += [at for at in (link.presumed.ask_at, link.peer.confirm_at, link.timer.ask_at) if at is not None]
    return max(min(times), link.refusals.shut_until) if times else None
