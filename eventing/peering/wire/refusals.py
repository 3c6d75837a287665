"""Faults in requests of other domains, found before their content is read: counted against the responsible domain, if
certain.

An invalid signature does not show who sent the request: it is counted without a carrier, about the domain in whose name
it was sent. With a valid one the sender is responsible for content and amount. A signature by keys in the request itself is
no proof: anybody can make such.
"""

from __future__ import annotations

import math
import threading
import time

from eventing.access.rules.rates import Bucket, Rate, Table
from eventing.conf import config
from eventing.core.container import per_process
from eventing.core.errors import ApplicationError, RateLimited
from eventing.peering.rules.acquaintances import IDENTIFIED_PER_S
from eventing.peering.rules.misbehaviour import Kind
from eventing.peering.selectors.partners import Partner
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
_PROVEN = frozenset({"clock", "digest"})  # the sender signed the request, to this domain
# In each process.
STRANGERS = Rate(per_s=1.0, window_s=20.0)  # bound: hellos signed by no trusted key: 1 per second, 20 at once; 429
# Each link needs one in 8 s.
OVERLAY_REQUESTS = Rate(
    per_s=5.0, window_s=10.0
)  # bound: overlay requests of one domain: 5 per second, 50 at once; 429
# In each process.
NEWCOMERS = Rate(
    per_s=2.0, window_s=20.0
)  # bound: overlay requests of domains that the directory has not: 2 per second, 40 at once; 429
OVERLAY_DOMAINS_MAX = (
    2000  # bound: domains whose overlay requests a process counts; newcomers share one rate until one is discarded
)


class _Rates:
    """The rates at which this process accepts requests of domains, held under `lock`."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.strangers = Bucket(STRANGERS)
        self.newcomers = Bucket(NEWCOMERS)
        self.overlay = Table(lambda _: Bucket(OVERLAY_REQUESTS), OVERLAY_DOMAINS_MAX)
        self.asked: dict[str, float] = {}  # by domain, until when it was asked to send no overlay request
        self.identified = Bucket(Rate(IDENTIFIED_PER_S, config().rate_window_s))
        self.peers: dict[tuple[str, int], Bucket] = {}  # by name and rate; at most PEERS_MAX


rates = per_process(_Rates)


def bad_request_note(error: BadSignature, domain: str, *, known: bool) -> None:
    """Count an invalid request in the name of `domain`.

    Args:
        known: whether keys of that domain are held, and the request was not signed by keys of its own body; requests in
            other names are not counted, because anybody can invent names.
    """
    if known:
        carrier = domain if error.code in _PROVEN else ""
        misbehaviour_note(_KINDS[error.code], carrier=carrier, origin=domain, detail=error.detail)


def oversize_note(domain: str, error: ApplicationError) -> None:
    """Count a peer's request whose body is beyond its bound."""
    misbehaviour_note("oversize", carrier=domain, detail=error.detail)


def count_stranger() -> None:
    """Count a hello of an unknown domain before its content is processed. Raises RateLimited."""
    held = rates()
    with held.lock:
        if held.strangers.take(1, time.monotonic()):
            return
    raise RateLimited("Too many unknown domains ask to be peers. Try again later.", retry_after_s=60)


def count_newcomer() -> None:
    """Count an overlay request of a domain that the directory has not, before its signatures are verified. Raises RateLimited."""
    held = rates()
    with held.lock:
        if held.newcomers.take(1, time.monotonic()):
            return
    raise RateLimited("Too many unknown domains present their records. Try again later.", retry_after_s=10)


def count_overlay_request(domain: str) -> None:
    """Count an overlay request against its sender's rate in this process. Raises RateLimited."""
    held, now = rates(), time.monotonic()
    with held.lock:
        bucket = held.overlay.get(domain, now)
        if bucket.take(1, now):
            return
        wait_s = bucket.wait_s(1, now)
        asked_until = held.asked.pop(domain, 0.0)
        held.asked[domain] = now + wait_s
        if len(held.asked) > OVERLAY_DOMAINS_MAX:
            del held.asked[next(iter(held.asked))]
    detail = f"The rate of {OVERLAY_REQUESTS.per_s:g} overlay requests per second is exceeded. Send fewer requests."
    if now < asked_until:  # the first excess is a whole directory that is sent; it is waited for as this domain asks
        misbehaviour_note("flooding", carrier=domain, detail=detail)
    raise RateLimited(detail, retry_after_s=math.ceil(wait_s))


def count_identified() -> None:
    """Count a request in the name of a domain of the directory that is neither peer nor acquaintance, before its
    signature is verified. Raises RateLimited.
    """
    held = rates()
    with held.lock:
        if held.identified.take(1, time.monotonic()):
            return
    raise RateLimited("Too many domains that are no peers make requests. Try again later.", retry_after_s=2)


def count_request(peer: Partner) -> None:
    """Count a request against the peer's or acquaintance's rate, of which each gateway process has its share. Raises RateLimited."""
    key, held = (peer.name, peer.requests_per_s), rates()
    with held.lock:
        bucket = held.peers.get(key)
        if bucket is None:
            for old in [one for one in held.peers if one[0] == peer.name]:  # the peer's rate has changed
                del held.peers[old]
            rate = Rate(peer.requests_per_s, config().rate_window_s).shared(config().gateways)
            bucket = held.peers[key] = Bucket(rate)
        now = time.monotonic()
        if bucket.take(1, now):
            return
        wait_s = bucket.wait_s(1, now)
    detail = f"The peer's rate of {peer.requests_per_s} requests per second is exceeded. Send fewer requests."
    misbehaviour_note("flooding", carrier=peer.name, detail=detail)
    raise RateLimited(detail, retry_after_s=math.ceil(wait_s))
