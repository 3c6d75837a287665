"""Part of a link: what the peer has stated to hold. Pure.

Requests and answers of both sides may cross, so a vector that shows less than known before is usually an older one. It proves
a loss at the peer only for feeds that the peer grafts, or for which the peer was just asked; where the link is in doubt
(`peer_doubted`), only an answer proves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from eventing.core.events import vectors
from eventing.core.events.vectors import Vector

# bound: seconds after contact with a peer; the peer is asked once more what it holds
CONFIRM_S = 30.0  # requests of an earlier life of this domain have been processed everywhere by then: several times a request's timeout
# bound: feeds of an RP that a peer is recorded to hold; feeds neither held here, nor in the peer's last vector, nor awaited are discarded
# FEEDS_MAX held here, as many in the peer's last vector, as many awaited.
THEIRS_MAX = 192


class PeerVector(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The peer's vector.

    Attributes:
        theirs: the vector, as the peer stated it last; THEIRS_MAX feeds at most.
        met: whether the peer has sent any vector of this RP yet.
        received_at: when the peer last sent a message about the RP.
        met_at: when `met` became true.
        confirm_at: when to ask the peer once more, because its first vector may have been incomplete: if this domain
            lost its data, runs sent before could still have been on their way to the peer. The peer then assumes that
            they are held here, and without new events neither side would notice. None: confirmed since.
    """

    theirs: dict[str, int] = {}
    met: bool = False
    received_at: float = 0.0
    met_at: float = 0.0
    confirm_at: float | None = None


UNMET = PeerVector()


def peer_on_vector(peer: PeerVector, have: Vector, awaited: Iterable[str]) -> PeerVector:
    """Take in the vector of a message that is not processed yet."""
    if not peer.met or vectors.covers(peer.theirs, have):
        return peer  # an unmet peer is sent nothing anyway, and `peer_on_message` takes its first vector
    return msgspec.structs.replace(peer, theirs=bounded(vectors.merged(peer.theirs, have), have, awaited))


def peer_on_message(
    peer: PeerVector,
    have: Vector,
    *,
    ours: Vector,
    awaited: Mapping[str, int],
    lowered: Iterable[str],
    answers: bool,
    shown: bool,
    now: float,
) -> PeerVector:
    """Take in the vector of a message.

    Args:
        awaited: feeds that are discarded last, so that a peer that keeps claiming new feeds is still asked for them and
            detected.
        lowered: feeds for which a lower vector is believed.
        answers, shown: as of `broadcast.on_message`.
    """
    anew = not peer.met and (answers or (shown and not peer.theirs))
    theirs = dict(have) if anew else vectors.merged(peer.theirs, have)
    for feed in lowered:
        if feed in theirs:
            theirs[feed] = have.get(feed, 0)
    if len(theirs) > THEIRS_MAX:
        theirs = bounded(theirs, ours, have, awaited)
    if anew:
        return PeerVector(theirs, True, now, now, now + CONFIRM_S)
    confirmed = answers and peer.confirm_at is not None and now >= peer.confirm_at
    return PeerVector(theirs, peer.met, now, peer.met_at, None if confirmed else peer.confirm_at)


def peer_doubted(peer: PeerVector, since: float) -> PeerVector:
    """Forget that the peer was met, unless it sent a message since then: it is asked what it holds."""
    return peer if peer.received_at >= since or not peer.met else msgspec.structs.replace(peer, met=False)


def bounded(theirs: dict[str, int], *first: Iterable[str]) -> dict[str, int]:
    """Bound a vector to THEIRS_MAX feeds: those of `first` before the others."""
    if len(theirs) <= THEIRS_MAX:
        return theirs
    wanted = dict.fromkeys(feed for feeds in (*first, sorted(theirs)) for feed in feeds if feed in theirs)
    return {feed: theirs[feed] for feed in list(wanted)[:THEIRS_MAX]}
