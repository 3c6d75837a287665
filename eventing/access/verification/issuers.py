"""Which foreign issuers the policies of this domain name, in the memory of this process.

A token of any other issuer is refused without a look at anything outside: strangers cannot make us fetch what they like,
and a flood of tokens with made-up issuers costs one query in LOOK_S.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from threading import Lock

from django.db import Error as DatabaseError

from eventing.access.rules.policy_issuers import ANYONE
from eventing.access.selectors.policy_issuers import policy_sources

LOOK_S = 2.0  # an unknown issuer makes us look at most this often when nothing was announced
ANNOUNCED_LOOK_S = 0.1  # and when policies have changed
RELOAD_S = 60.0  # a cover for announcements that were lost
log = logging.getLogger(__name__)


class Issuers:
    """See the module. Safe to use from several threads.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: Mapping[str, tuple[str, ...]] = {}
        self._looked_at = float("-inf")
        self._announced = False
        self._looking = Lock()

    def sources(self, issuer: str) -> tuple[str, ...]:
        """Where the issuer's keys may be had from: empty (its own discovery) first, then JWKS addresses. () for an issuer that no policy names."""
        return self._known.get(issuer, ())

    @property
    def anyone(self) -> bool:
        """Whether some policy admits requests without a token."""
        return ANYONE in self._known

    def due(self, issuer: str, *, unknown_key: bool = False) -> bool:
        """Whether SQL should be looked at before `issuer` is judged; with `unknown_key`, before it is said to lack a key."""
        age_s = self._clock() - self._looked_at
        if age_s >= RELOAD_S or (self._announced and age_s >= ANNOUNCED_LOOK_S):
            return True
        return (unknown_key or issuer not in self._known) and age_s >= LOOK_S

    def policies_changed(self) -> None:
        """Some policy changed: look again soon."""
        self._announced = True

    def look(self) -> None:
        """Read SQL, unless somebody just has. Raises django.db.Error only if it was never read."""
        asked_at = self._clock()
        with self._looking:
            if self._looked_at >= asked_at:
                return
            self._announced, began_at = False, self._clock()
            first = self._looked_at == float("-inf")
            try:
                self._known = policy_sources()
            except DatabaseError as error:
                if first:
                    raise
                log.warning("The issuers that policies name cannot be read, those known stay: %s", error)
            self._looked_at = began_at  # whoever asks from here on may know of a later change
