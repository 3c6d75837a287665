"""Notes about exchanges with single peers, for all processes of a domain: contacts, failures, supplies, nonces, comparisons.

All functions raise redis.RedisError.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from eventing.store.client import client
from eventing.store.keys import DELIVERIES_TOLD_KEY, nonce_key, peer_key

SUPPLIED_S = 10
_CUT = b"cut"


def contact_note(peer: str, what: Literal["request", "answer"]) -> None:
    """Note that the peer has just sent a request, or the answer to one."""
    client().hset(peer_key(peer, "contact"), what, repr(time.time()))


def standing_notes(peers: Sequence[str]) -> list[tuple[Sequence[bytes | None], bytes | None, bytes | None]]:
    """Return for each peer the times of the last request and answer, the pause with its duration, and since when it
    refuses everything."""
    pipeline = client().pipeline(transaction=False)
    for peer in peers:
        pipeline.hmget(peer_key(peer, "contact"), "request", "answer")
        pipeline.get(peer_key(peer, "paused"))
        pipeline.get(peer_key(peer, "untaken"))
    found: list[Any] = pipeline.execute()
    return list(zip(found[::3], found[1::3], found[2::3], strict=True))


def failing_set(peer: str, failing: bool, *, cut: bool = False) -> None:
    """Note whether the delivery to the peer fails, so that the handler of a request from that peer need not read SQL.

    Args:
        cut: whether there was no answer at all, so that the route to the peer is probed
            (replication/forwarding/probing.py).
    """
    if failing:
        client().set(peer_key(peer, "failing"), _CUT if cut else b"1")
    else:
        client().delete(peer_key(peer, "failing"))


def failing(peer: str) -> bool:
    """Return the note of `failing_set`."""
    return bool(client().exists(peer_key(peer, "failing")))


def cut_off(peers: Sequence[str]) -> list[str]:
    """Return those of these peers for which `failing_set` noted that there was no answer at all."""
    noted: Any = client().mget([peer_key(peer, "failing") for peer in peers]) if peers else []
    return [peer for peer, value in zip(peers, noted, strict=True) if value == _CUT]


def supplied_set(peer: str) -> None:
    """Note that the peer has just sent events that were new here."""
    client().set(peer_key(peer, "supplied"), "1", ex=SUPPLIED_S)


def supplied(peer: str) -> bool:
    """Return True if the peer sent new events within SUPPLIED_S: a peer that is only slow does not lie about what it holds."""
    return bool(client().exists(peer_key(peer, "supplied")))


def taken_note(peer: str, taken: bool) -> None:
    """Note that the peer accepted some of the events sent, or none; since when it accepts none is stored."""
    if taken:
        client().delete(peer_key(peer, "untaken"))
    else:
        client().set(peer_key(peer, "untaken"), repr(time.time()), nx=True)


def nonce_note(domain: str, nonce: str, kept_s: int) -> bool:
    """Note the nonce of a request of `domain` for `kept_s`; False if it was already noted. One costs about 150 bytes."""
    return bool(client().set(nonce_key(domain, nonce), b"1", nx=True, px=kept_s * 1000))


def compare_begin(peer: str, pause_s: int) -> bool:
    """Return True if everything shared with the peer must be compared now; once in `pause_s`."""
    return bool(client().set(peer_key(peer, "compared"), "1", nx=True, ex=pause_s))


def compare_again(peers: Iterable[str]) -> None:
    """Request an immediate comparison of everything shared with these peers."""
    client().delete(*[peer_key(peer, "compared") for peer in peers])


def deliveries_reported() -> dict[str, bytes]:
    """Return the digest of the last reported state of delivery, by peer."""
    known: Any = client().hgetall(DELIVERIES_TOLD_KEY)
    return {peer.decode(): digest for peer, digest in known.items()}


def deliveries_reported_set(changed: Mapping[str, bytes], gone: Collection[str]) -> None:
    """Note the digests of reported states of delivery, and drop those of peers without one."""
    if changed:
        client().hset(DELIVERIES_TOLD_KEY, items=[part for pair in changed.items() for part in pair])
    if gone:
        client().hdel(DELIVERIES_TOLD_KEY, *gone)
