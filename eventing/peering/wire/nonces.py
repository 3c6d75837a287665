"""Nonces of requests that were taken, so that none is taken twice: kept in Redis, which all gateways of the domain share.

Only requests with a good signature get here, so strangers fill nothing; each costs about 150 bytes for KEPT_S.
"""

from __future__ import annotations

from eventing.log import control
from eventing.peering.wire.signatures import WINDOW_S

KEPT_S = 2 * WINDOW_S + 5  # `created` may be WINDOW_S ahead of our clock, and is good until WINDOW_S after it


def is_first(domain: str, nonce: str) -> bool:
    """Note the nonce of a request of `domain`; False if it was there already. Raises redis' errors when it is away."""
    return bool(control.client().set(f"herald:nonce:{domain}:{nonce}", b"1", nx=True, px=KEPT_S * 1000))
