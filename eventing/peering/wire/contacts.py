"""Contacts: times of each peer's last request to this domain, and of its last answer.

Both are kept in Redis, written at most once in NOTED_S by each process; contact also renews the peer's lease in SQL
(peering/services/peers.py), at most once in its own CONTACT_S.
"""

from __future__ import annotations

import logging
import time
from typing import Literal

from eventing.core.container import per_process
from eventing.peering.rules.peers import PEERS_MAX
from eventing.store.errors import RedisError
from eventing.store.peer_state import contact_note

NOTED_S = 1.0
"""Least seconds between two notes of a process about one peer."""
log = logging.getLogger(__name__)


@per_process
def _noted() -> dict[tuple[str, str], float]:
    """Monotonic seconds of the last notes, by peer and kind of contact."""
    return {}


def contacted(peer: str, what: Literal["request", "answer"]) -> None:
    """Record an authenticated request or answer of a peer. If Redis does not answer, this is only logged."""
    noted, now = _noted(), time.monotonic()
    if now - noted.get((peer, what), -NOTED_S) < NOTED_S:
        return
    if len(noted) > 2 * PEERS_MAX:
        noted.clear()
    noted[peer, what] = now
    try:
        contact_note(peer, what)
    except RedisError as error:
        log.debug("The contact with %s could not be recorded: %s", peer, error)
