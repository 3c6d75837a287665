"""Foreign issuers named by this domain's policies, in the memory of this process.

A token of any other issuer is refused without any external request: strangers cannot trigger fetches from addresses of
their choice, and a flood of tokens with invented issuers costs one query in REFRESH_S.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from threading import Lock

from django.db import Error as DatabaseError

from eventing.access.rules.policy_issuers import ANYONE
from eventing.access.selectors.policy_issuers import policy_sources

# bound: seconds between two reads of the policies for an unknown issuer; tokens of the issuer are refused in between
REFRESH_S = 2.0
ANNOUNCED_REFRESH_S = 0.1  # and when policies have changed
RELOAD_S = 60.0  # covers lost announcements
log = logging.getLogger(__name__)


class Issuers:
    """Foreign issuers that are admitted. Thread-safe.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: Mapping[str, tuple[str, ...]] = {}
        self._refreshed_at = float("-inf")
        self._announced = False
        self._refreshing = Lock()

    def sources(self, issuer: str) -> tuple[str, ...]:
        """Return the sources of the issuer's keys: empty (its own discovery) first, then JWKS addresses. () for an
        issuer that no policy names."""
        return self._known.get(issuer, ())

    @property
    def anyone(self) -> bool:
        """True if some policy admits requests without a token."""
        return ANYONE in self._known

    def due(self, issuer: str, *, unknown_key: bool = False) -> bool:
        """Return True if SQL should be read before `issuer` is decided; with `unknown_key`, before a key of it counts
        as missing."""
        age_s = self._clock() - self._refreshed_at
        if age_s >= RELOAD_S or (self._announced and age_s >= ANNOUNCED_REFRESH_S):
            return True
        return (unknown_key or issuer not in self._known) and age_s >= REFRESH_S

    def policies_changed(self) -> None:
        """Request another read soon, because some policy changed."""
        self._announced = True

    def refresh(self) -> None:
        """Read SQL, unless it was just read. Raises django.db.Error only if it was never read."""
        asked_at = self._clock()
        with self._refreshing:
            if self._refreshed_at >= asked_at:
                return
            self._announced, began_at = False, self._clock()
            first = self._refreshed_at == float("-inf")
            try:
                self._known = policy_sources()
            except DatabaseError as error:
                if first:
                    raise
                log.warning("The issuers in policies cannot be read; the known ones stay in use: %s", error)
            self._refreshed_at = began_at  # later callers may know of a later change
