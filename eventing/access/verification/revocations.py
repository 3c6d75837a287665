"""Revocations in force, in the memory of this process: checked for every request, so without I/O.

Life: loaded completely from SQL when a token is first verified, then extended by `refresh`. Rows become visible in the
order of their serials (access/models.py), so new rows are those after the last serial seen. Callers of
`refresh`: the gateway, when a revocation is announced over Redis and every REFRESH_S anyway (gateway/delivery/revocation.py);
the process that wrote a revocation, at once; elsewhere the verification of a token, after a while without a read. While
SQL does not answer, known revocations stay in force. Every RELOAD_S all are read again, which drops ended ones. The
accepted peers are read on the same occasions: their tokens end with the peering (access/verification/peer_issuers.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock

from django.db import Error as DatabaseError

from eventing.access.rules.revocations import RevocationSet
from eventing.access.selectors import revocations as selectors
from eventing.access.verification.peer_issuers import PeerIssuers
from eventing.core.container import per_process
from eventing.core.errors import TokenRevoked
from eventing.core.principals import Principal

# bound: seconds between two reads of new revocations from SQL, announced or not; a revocation takes effect at the latest with the next read
REFRESH_S = 2.0
# Covers any failure of incremental reads, such as a restored database.
RELOAD_S = 600.0  # bound: seconds between two reads of all revocations; all revocations are read again
log = logging.getLogger(__name__)


class Revocations:
    """Revocations in force. Thread-safe."""

    def __init__(self) -> None:
        self.peers = PeerIssuers()
        self._set = RevocationSet()
        self._seen = 0  # the last serial
        self._loaded_at = float("-inf")  # monotonic seconds
        self._tried_at = float("-inf")
        self._refreshing = Lock()
        self._listeners: dict[Callable[[], None], None] = {}

    @property
    def loaded(self) -> bool:
        """True if SQL has been read since the process began."""
        return self._loaded_at > float("-inf")

    def __len__(self) -> int:
        return len(self._set)

    def revoked(self, principal: Principal) -> str | None:
        """Return the reason why the principal's token is revoked, in a sentence for its bearer; None if it is not.
        Constant time, no I/O."""
        return self._set.covers(principal) or self.peers.refuses(principal)

    def key_revoked(self, issuer: str, key_id: str) -> str | None:
        """Return `revoked` for a key, which need not be known any more."""
        return self._set.covers_key(issuer, key_id)

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed`, from any thread, after revocations changed. Returns the function that ends this."""
        self._listeners[changed] = None
        return lambda: self._listeners.pop(changed, None)

    def refresh(self) -> bool:
        """Read new rows from SQL; return True if there were any. Raises django.db.Error; known revocations then stay in force."""
        with self._refreshing:
            self._tried_at = now = time.monotonic()
            changed = self.peers.refresh()
            changed = (self._reload(now) if now - self._loaded_at >= RELOAD_S else self._read_on(now)) or changed
        if changed:
            for listener in list(self._listeners):
                listener()
        return changed

    @property
    def due(self) -> bool:
        """Return True if SQL was not read for a while."""
        return not self.loaded or time.monotonic() - self._tried_at >= 2 * REFRESH_S

    def refresh_if_due(self) -> None:
        """Look if due. Raises django.db.Error only if SQL was never read."""
        if not self.due:
            return
        try:
            self.refresh()
        except DatabaseError as error:
            if not self.loaded:
                raise
            log.warning("Revocations cannot be read; the known ones stay in force: %s", error)

    def _reload(self, now: float) -> bool:
        fresh, seen = RevocationSet(), 0
        while True:
            entries = selectors.revocation_entries(since=seen + 1)
            for entry in entries:
                fresh.apply(entry)
                seen = entry.serial
            if len(entries) < selectors.ENTRIES_AT_ONCE:
                break
        self._set, self._seen, self._loaded_at = fresh, seen, now
        return True

    def _read_on(self, now: float) -> bool:
        """Read the rows after the last serial, including that one: if it is missing, the table was restored to an earlier state."""
        changed = False
        while True:
            entries = selectors.revocation_entries(since=max(1, self._seen))
            if self._seen and not entries:
                return self._reload(now)
            for entry in entries:
                changed = self._set.apply(entry) or changed
                self._seen = entry.serial
            if len(entries) < selectors.ENTRIES_AT_ONCE:
                return changed


def refuse_revoked(principal: Principal) -> None:
    """Raise TokenRevoked if the principal's token is revoked."""
    reason = revocations().revoked(principal)
    if reason is not None:
        raise TokenRevoked(reason)


revocations = per_process(Revocations)
