"""The revocations in force, in the memory of this process: asked for every request, so without I/O.

Life: loaded whole from SQL when a token is first verified, and read on from there by `look`. Rows become visible in the
order of their serials (access/models/revocation.py), so what is new is what comes after the last one seen. Who looks: the
gateway, when a revocation is announced over Redis and every LOOK_S anyway (gateway/delivery/revocation.py); the process that wrote
one, at once; elsewhere whoever verifies a token, when nobody has looked for a while. While SQL does not answer, what is
known stays in force. Every RELOAD_S all is read anew: that forgets what has ended. Which domains are peers is looked at
on the same occasions: their tokens end with the peering (access/verification/peer_issuers.py).
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
from eventing.core.errors import TokenRevoked
from eventing.core.principals import Principal

LOOK_S = 2.0  # between looks at SQL when nothing was announced
RELOAD_S = 600.0  # a cover for all that could go wrong with reading on, a restored database for one
log = logging.getLogger(__name__)


class Revocations:
    """See the module. Safe to use from several threads."""

    def __init__(self) -> None:
        self.peers = PeerIssuers()
        self._set = RevocationSet()
        self._seen = 0  # the last serial
        self._loaded_at = float("-inf")  # monotonic seconds
        self._tried_at = float("-inf")
        self._looking = Lock()
        self._listeners: dict[Callable[[], None], None] = {}

    @property
    def loaded(self) -> bool:
        """Whether SQL has been read since the process began."""
        return self._loaded_at > float("-inf")

    def __len__(self) -> int:
        return len(self._set)

    def revoked(self, principal: Principal) -> str | None:
        """Why the principal's token is revoked, in a sentence for its bearer; None if it is not. Constant time, no I/O."""
        return self._set.covers(principal) or self.peers.refuses(principal)

    def key_revoked(self, issuer: str, key_id: str) -> str | None:
        """As `revoked`, for a key that need not be known any more."""
        return self._set.covers_key(issuer, key_id)

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have `changed` called, from any thread, after revocations changed. Returns what ends that."""
        self._listeners[changed] = None
        return lambda: self._listeners.pop(changed, None)

    def look(self) -> bool:
        """Read from SQL what is new; whether anything is. Raises django.db.Error; what is known stays in force then."""
        with self._looking:
            self._tried_at = now = time.monotonic()
            changed = self.peers.look()
            changed = (self._reload(now) if now - self._loaded_at >= RELOAD_S else self._read_on(now)) or changed
        if changed:
            for listener in list(self._listeners):
                listener()
        return changed

    @property
    def due(self) -> bool:
        """Whether nobody has looked for a while."""
        return not self.loaded or time.monotonic() - self._tried_at >= 2 * LOOK_S

    def look_if_due(self) -> None:
        """Look if it is due. Raises django.db.Error only if SQL was never read: nothing is known then."""
        if not self.due:
            return
        try:
            self.look()
        except DatabaseError as error:
            if not self.loaded:
                raise
            log.warning("Revocations cannot be read, those known stay in force: %s", error)

    def forget(self) -> None:
        """Forget everything, as when the process began."""
        with self._looking:
            self._set, self._seen = RevocationSet(), 0
            self.peers.forget()
            self._loaded_at = self._tried_at = float("-inf")

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
        """What came after the last serial. That one is asked for again: nothing at all says that the end has gone back."""
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
    reason = _revocations.revoked(principal)
    if reason is not None:
        raise TokenRevoked(reason)


_revocations = Revocations()


def revocations() -> Revocations:
    """This process's revocations."""
    return _revocations
