"""What is wrong with requests of other domains, before their content is looked at: counted under who is to blame, if known.

A signature that is not good says nothing about who sent it: that is counted under nobody, and about the domain in whose
name it came. With a good one the sender answers for what it sent, and for how much. One by keys that came with the request
is good in nobody's name: anybody can make such.
"""

from __future__ import annotations

import math
import threading
import time

from eventing.access.rules.rates import Bucket, Rate
from eventing.conf import config
from eventing.core.errors import HeraldError, RateLimited
from eventing.peering.models import Peer
from eventing.peering.rules.misbehaviour import Kind
from eventing.peering.services.misbehaviour import misbehaviour_note
from eventing.peering.wire.signatures import BadSignature

_KINDS: dict[str, Kind] = {
    "unsigned": "forged",
    "malformed": "malformed",
    "unknown-key": "forged",
    "key-window": "forged",
    "wrong": "forged",
    "clock": "replayed",
    "destination": "replayed",
    "digest": "tampered",
}
_PROVEN = frozenset({"clock", "digest"})  # the sender signed it, and to us
STRANGERS = Rate(per_s=1.0, window_s=20.0)  # hellos that no key we trust has signed, in each process
_lock = threading.Lock()
_strangers = Bucket(STRANGERS)
_buckets: dict[tuple[str, int], Bucket] = {}  # one for each peer that was added here, of which there are PEERS_MAX


def bad_request_note(error: BadSignature, domain: str, *, known: bool) -> None:
    """Count a request that came in the name of `domain` and was not what it should be.

    Args:
        known: whether we hold keys of that domain, and the request was not signed by others that it brought along; what comes
            in other names is not counted: anybody can invent them.
    """
    if known:
        carrier = domain if error.code in _PROVEN else ""
        misbehaviour_note(_KINDS[error.code], carrier=carrier, origin=domain, detail=error.detail)


def oversize_note(domain: str, error: HeraldError) -> None:
    """Count a request of a peer with a body beyond its bound."""
    misbehaviour_note("oversize", carrier=domain, detail=error.detail)


def count_stranger() -> None:
    """Count a hello of somebody who is not known here, before what it brings costs anything. Raises RateLimited."""
    with _lock:
        if _strangers.take(1, time.monotonic()):
            return
    raise RateLimited("Too many unknown domains ask to be peers. Try again later.", retry_after_s=60)


def count_request(peer: Peer) -> None:
    """Count a request against the peer's rate, of which each gateway process has its share. Raises RateLimited."""
    key = (peer.name, peer.requests_per_s)
    with _lock:
        bucket = _buckets.get(key)
        if bucket is None:
            for old in [one for one in _buckets if one[0] == peer.name]:  # it has another rate now
                del _buckets[old]
            rate = Rate(peer.requests_per_s, config().rate_window_s).shared(config().gateways)
            bucket = _buckets[key] = Bucket(rate)
        now = time.monotonic()
        if bucket.take(1, now):
            return
        wait_s = bucket.wait_s(1, now)
    detail = f"More than {peer.requests_per_s} requests per second, which is the rate that this peer was given."
    misbehaviour_note("flooding", carrier=peer.name, detail=detail)
    raise RateLimited(detail, retry_after_s=math.ceil(wait_s))
