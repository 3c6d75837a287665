"""Keys of other domains for the verification of their tokens: from their trusted documents, cached in memory.

A key that a token names and that is missing in the document triggers a read of SQL, and then a new fetch of the
domain's document, both at a limited rate: so a rotation in the other domain takes effect without intervention.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Lock
from typing import Any

from eventing.access.ports import document_refetch, domain_keys

KEYS_RELOAD_S = 60.0  # interval of reads from SQL
REFRESH_S = 2.0  # least interval of reads for an unknown key
# A domain has up to 32 keys of about 200 bytes.
DOMAINS_MAX = 1000  # bound: domains whose keys a process caches; the keys are read again

Jwks = Mapping[str, Mapping[str, Any]]


class PeerKeys:
    """Cached keys of other domains. Thread-safe.

    Args:
        clock: monotonic seconds.
        gone: called with a domain and the kids that no longer verify.
    """

    def __init__(
        self, gone: Callable[[str, frozenset[str]], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gone = gone
        self._clock = clock
        self._lock = Lock()
        self._known: OrderedDict[str, tuple[Jwks, float]] = OrderedDict()

    def keys(self, name: str) -> Jwks:
        """Return the domain's public JWKs by kid, with their windows; none before `refresh`."""
        return self._known.get(name, ({}, 0.0))[0]

    def due(self, name: str, *, unknown_key: bool = False) -> bool:
        """Return True if SQL should be read before a token is verified; with `unknown_key`, before it is refused."""
        entry = self._known.get(name)
        if entry is None:
            return True
        return self._clock() - entry[1] >= (REFRESH_S if unknown_key else KEYS_RELOAD_S)

    def refresh(self, name: str) -> None:
        """Read the domain's keys from SQL. Raises django.db.Error."""
        began_at = self._clock()
        fresh = domain_keys(name)
        with self._lock:
            before = self._known.get(name, ({}, 0.0))[0]
            self._known[name] = (fresh, began_at)
            self._known.move_to_end(name)
            if len(self._known) > DOMAINS_MAX:
                self._known.popitem(last=False)
        shorter = {kid for kid, jwk in before.items() if fresh.get(kid, {}).get("exp", 0) != jwk.get("exp", 0)}
        if shorter:
            self._gone(name, frozenset(shorter))

    def refetch(self, name: str) -> Future[None] | None:
        """Fetch the domain's document again; None if that was done recently. Call `refresh` afterwards."""
        future = document_refetch(name)
        if future is not None:
            future.add_done_callback(lambda _: self._expire(name))
        return future

    def _expire(self, name: str) -> None:
        with self._lock:
            entry = self._known.get(name)
            if entry is not None:
                self._known[name] = (entry[0], float("-inf"))
