"""SweepNotes: what the sweep of peers (replication/forwarding/sweeping.py) reads in Redis each second, of all peers in one round trip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eventing.store.client import client
from eventing.store.keys import peer_key


class SweepNotes(NamedTuple):
    """Notes about peers. Times are Unix seconds.

    Attributes:
        compared: peers with which everything shared must be compared now.
        vectors_since: since when a vector waits for a peer (waiting_vectors.py); without peers for which none waits.
        timers_at: when the next timer of a link with a peer expires (log/watermarks.py); without peers that have none.
    """

    compared: set[str]
    vectors_since: dict[str, float]
    timers_at: dict[str, float]


def sweep_notes(peers: Sequence[str], compared_s: int) -> SweepNotes:
    """Return the notes about these peers; each is in `compared` once in `compared_s`. Raises redis.RedisError."""
    pipeline = client().pipeline(transaction=False)
    for peer in peers:
        pipeline.set(peer_key(peer, "compared"), "1", nx=True, ex=compared_s)
        pipeline.zrange(peer_key(peer, "waiting"), 0, 0, withscores=True)
        pipeline.zrange(peer_key(peer, "again"), 0, 0, withscores=True)
    found = pipeline.execute()
    return SweepNotes(
        {peer for peer, begun in zip(peers, found[::3], strict=True) if begun},
        {peer: float(entries[0][1]) for peer, entries in zip(peers, found[1::3], strict=True) if entries},
        {peer: float(entries[0][1]) / 1000 for peer, entries in zip(peers, found[2::3], strict=True) if entries},
    )
