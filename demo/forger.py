"""A domain that forges on command: its operator signs, with its keys, statements that its software never would.

It sends its neighbours altered events of another domain, under a seal of its own making: a forgery that each of them
detects and counts under its carrier.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any

import httpx

from eventing.core import merkle
from eventing.core.events.feeds import Feed
from eventing.core.seals import seals
from eventing.peering.wire import messages as wire
from eventing.peering.wire import signatures

EVENT = b'{"specversion":"1.0","id":"forged","source":"/hosts/%s","type":"herald.host.load","data":{"cpu":100}}'
ANSWER_S = 10.0


def forge(*, url: str, to: str, liar: str, key: Mapping[str, Any], rp: str, victim: str, epoch: str, first: int) -> int:
    """Send the domain `to` at `url` a forged event of `victim`; return the status of its answer.

    Args:
        liar, key: the domain that signs the request, and its private JWK: both real.
        epoch, first: the victim's feed, and the sequence that the event claims in it.
    """
    event = EVENT % victim.encode()
    seal = seals.seal_make(
        rp=rp,
        feed=Feed(victim, epoch),
        first=first,
        leaves=merkle.leaves([event]),
        previous=secrets.token_bytes(merkle.HASH_BYTES),
        sealed_at_ms=int(time.time() * 1000),
        private_jwk=key,
    )
    part = wire.RpPart(rp, {}, [wire.SealedRun(seal, [event], b"", [victim, liar])])
    body = wire.encode(wire.ExchangeRequest(wire.VERSION, [part]))
    request = signatures.request_signed(
        f"{url}/federation/v1/exchange",
        body,
        origin=liar,
        destination=to,
        key=key,
        nonce=secrets.token_urlsafe(16),
        now=time.time(),
    )
    answer = httpx.post(request.url, content=body, headers=request.headers, timeout=ANSWER_S, trust_env=False)
    return answer.status_code
