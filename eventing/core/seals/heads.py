"""Heads: the newest seal of each feed of a vector. Vectors state lengths; two forks of one length differ in
their heads. Pure.

An origin that signs one feed for one side of a partition and another feed of the same length for the other side leaves
equal vectors. A request therefore carries, beside its vector, the beginning of the digest of each feed's newest seal.
Seals are made once, by the origin: two domains that hold a feed to the same length hold the same seal there, or the
origin has equivocated. Where the receiver holds less, or sends its longer part, the links between seals reveal a fork
(seals.py: equivocate).
"""

from __future__ import annotations

from collections.abc import Mapping

from eventing.core.events.feeds import FEEDS_MAX
from eventing.core.events.vectors import Vector
from eventing.core.seals import seals
from eventing.core.signing import Signed

HEAD_BYTES = 16  # a collision of two seals costs their origin 2^64 hashes and gains only a late discovery
HEADS_BYTES_MAX = HEAD_BYTES * FEEDS_MAX
_UNKNOWN = bytes(HEAD_BYTES)

Heads = Mapping[str, bytes]


def head_of(seal: Signed) -> bytes:
    """Shorten a seal to its head: the beginning of the digest by which the feed's next seal names it."""
    return seals.digest(seal)[:HEAD_BYTES]


def packed(vector: Vector, heads: Heads) -> bytes:
    """Encode the heads of a vector: HEAD_BYTES for each of its feeds in the order of their keys, zeros for an unknown one."""
    return b"".join(heads.get(feed) or _UNKNOWN for feed in sorted(vector))


def unpacked(vector: Vector, sent: bytes) -> dict[str, bytes]:
    """Decode the heads sent with a vector; empty if they do not fit the vector, as from a peer without heads."""
    if len(sent) != HEAD_BYTES * len(vector):
        return {}
    found = {feed: sent[at * HEAD_BYTES : (at + 1) * HEAD_BYTES] for at, feed in enumerate(sorted(vector))}
    return {feed: one for feed, one in found.items() if one != _UNKNOWN}


def doubtful(vector: Vector, heads: Heads, held: Vector, known: Heads) -> list[str]:
    """List the feeds whose seal at the other's position must be compared with the seal held here.

    Feeds that both hold to the same sequence, by different seals, are first; then feeds that are longer here.

    Args:
        vector, heads: vector and heads that the other states.
        held, known: vector and heads held here.
    """
    equal = [
        feed
        for feed in sorted(heads)
        if vector.get(feed) == held.get(feed) and known.get(feed, heads[feed]) != heads[feed]
    ]
    return equal + [feed for feed in sorted(heads) if 0 < vector.get(feed, 0) < held.get(feed, 0)]


def contradicting(asked: Vector, vector: Vector, heads: Heads, held: Vector, known: Heads) -> list[str]:
    """List the feeds at which an answer contradicts runs received after the request was sent, so that the other could
    not compare.

    Args:
        asked: vector of the request.
        vector, heads: vector and heads of the answer.
        held, known: vector and heads held here now.
    """
    since = {feed: one for feed, one in heads.items() if vector.get(feed, 0) > asked.get(feed, 0)}
    return doubtful(vector, since, held, known)
