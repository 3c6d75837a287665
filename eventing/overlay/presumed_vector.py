"""Part of a link: what the peer is presumed to hold beyond its own statement, because runs passed through it. Pure.

The presumption is temporary: the peer may have lost its data since, and then send nothing that would show it. A path is also
only a claim of the run's carrier, which may have invented it so that this peer is sent nothing.
"""

from __future__ import annotations

import msgspec

from eventing.core.events.vectors import Vector

PRESUMED_S = 5.0  # after this a peer that a run passed through has confirmed to hold it, in all but rare cases
# bound: seconds that a carrier's paths are ignored after a false one; paths of the carrier are used again
PATHS_DOUBTED_S = 600.0


class PresumedVector(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The presumption about one peer.

    Attributes:
        upto: what the peer must hold because runs passed through it, beyond its own statement.
        by: for each feed of `upto`, the peer that brought the run whose path names this one.
        ask_at: when to ask for confirmation, unless the peer has confirmed it by then; None: nothing is presumed.
        paths_doubted_until: until when paths stated by this peer presume nothing about other peers.
    """

    upto: dict[str, int] = {}
    by: dict[str, str] = {}
    ask_at: float | None = None
    paths_doubted_until: float = 0.0


NOTHING_PRESUMED = PresumedVector()


def presumed_carried(presumed: PresumedVector, feed_key: str, last: int, by: str, now: float) -> PresumedVector:
    """Presume that the peer holds a feed up to there."""
    at = presumed.ask_at if presumed.ask_at is not None else now + PRESUMED_S
    return PresumedVector(
        {**presumed.upto, feed_key: last}, {**presumed.by, feed_key: by}, at, presumed.paths_doubted_until
    )


def presumed_on_message(
    presumed: PresumedVector, theirs: Vector, graft: frozenset[str], *, answers: bool, now: float
) -> tuple[PresumedVector, frozenset[str]]:
    """Drop what the peer has confirmed; return the peers whose paths were not true beside the rest.

    An answer to the question states what the peer holds, and grafted feeds are lacking there, whatever passing runs
    suggested.
    """
    if not presumed.upto:
        return presumed, frozenset()
    lacking = {feed: last for feed, last in presumed.upto.items() if theirs.get(feed, 0) < last}
    if answers and presumed.ask_at is not None and now >= presumed.ask_at:
        mistaken = frozenset(filter(None, (presumed.by.get(feed, "") for feed in lacking)))
        return PresumedVector(paths_doubted_until=presumed.paths_doubted_until), mistaken
    upto = {feed: last for feed, last in lacking.items() if feed not in graft}
    if len(upto) == len(presumed.upto):
        return presumed, frozenset()
    by = {feed: carrier for feed, carrier in presumed.by.items() if feed in upto}
    return PresumedVector(upto, by, presumed.ask_at if upto else None, presumed.paths_doubted_until), frozenset()
