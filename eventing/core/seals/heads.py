"""Tips: by which seal each feed of a vector ends. Vectors name lengths; two stories of one length differ in their tips. Pure.

An origin that tells one story to one side of a partition and another, as long, to the other side leaves vectors that are
equal. So a request says beside its vector the beginning of the digest of each feed's newest seal. Seals are made once, by
the origin: whoever holds a feed as far holds the same seal there, else the origin told two stories. Where a receiver holds
less, or sends what it holds more, the link between seals shows it (seals.py: equivocate).
"""

from __future__ import annotations

from collections.abc import Mapping

from eventing.core.events.feeds import FEEDS_MAX
from eventing.core.events.vectors import Vector
from eventing.core.seals import seals
from eventing.core.signing import Signed

TIP_BYTES = 16  # two seals with one tip cost their origin 2^64 hashes, and gain it what a late discovery does
TIPS_BYTES_MAX = TIP_BYTES * FEEDS_MAX
_UNKNOWN = bytes(TIP_BYTES)

Tips = Mapping[str, bytes]


def tip(seal: Signed) -> bytes:
    """What is said of a seal: the beginning of the digest that the next seal of the feed names it by."""
    return seals.digest(seal)[:TIP_BYTES]


def packed(vector: Vector, tips: Tips) -> bytes:
    """The tips of a vector as they are sent: TIP_BYTES for each of its feeds in the order of their keys, zeros for none known."""
    return b"".join(tips.get(feed) or _UNKNOWN for feed in sorted(vector))


def unpacked(vector: Vector, sent: bytes) -> dict[str, bytes]:
    """The tips that came with a vector; none where they do not belong to it, as from who does not know of tips."""
    if len(sent) != TIP_BYTES * len(vector):
        return {}
    found = {feed: sent[at * TIP_BYTES : (at + 1) * TIP_BYTES] for at, feed in enumerate(sorted(vector))}
    return {feed: one for feed, one in found.items() if one != _UNKNOWN}


def doubtful(said: Vector, tips: Tips, held: Vector, known: Tips) -> list[str]:
    """Feeds of which the seal that is held here at the place of the other's is to be looked at.

    Those that both hold up to the same place, by different seals, come first; then those that are held further here.

    Args:
        said, tips: what the other states.
        held, known: what is held here.
    """
    equal = [
        feed for feed in sorted(tips) if said.get(feed) == held.get(feed) and known.get(feed, tips[feed]) != tips[feed]
    ]
    return equal + [feed for feed in sorted(tips) if 0 < said.get(feed, 0) < held.get(feed, 0)]


def untold(asked: Vector, said: Vector, tips: Tips, held: Vector, known: Tips) -> list[str]:
    """Feeds at which an answer contradicts what came here after the request was sent: the other could not compare it.

    Args:
        asked: the vector of the request.
        said, tips: of the answer.
        held, known: what is held here by now.
    """
    since = {feed: one for feed, one in tips.items() if said.get(feed, 0) > asked.get(feed, 0)}
    return doubtful(said, since, held, known)
