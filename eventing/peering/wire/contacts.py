"""Contacts: when each peer last asked this domain something, and last answered it, whatever it asked or answered.

Both are kept in Redis, written at most once in NOTED_S by each process; the peer's lease in SQL counts from them, too
(peering/services/peers.py), at most once in its own CONTACT_S.
"""

from __future__ import annotations

import logging
import time
from typing import Literal

from redis.exceptions import RedisError

from eventing.log import control
from eventing.peering.rules.peers import PEERS_MAX
from eventing.store.keys import peer_key

NOTED_S = 1.0
"""Seconds between two notes of a process about one peer."""
log = logging.getLogger(__name__)

_noted: dict[tuple[str, str], float] = {}


def contacted(peer: str, what: Literal["request", "answer"]) -> None:
    """Note a request of a peer, or its answer to one of ours; either is proven to be the peer's. An outage of Redis is no
    more than a line in the log."""
    now = time.monotonic()
    if now - _noted.get((peer, what), -NOTED_S) < NOTED_S:
        return
    if len(_noted) > 2 * PEERS_MAX:
        _noted.clear()
    _noted[peer, what] = now
    try:
        control.client().hset(peer_key(peer, "contact"), what, repr(time.time()))
    except RedisError as error:
        log.debug("The contact with %s is not noted: %s", peer, error)
