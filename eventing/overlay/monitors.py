"""Monitors: which domains observe which, drawn by a hash so that nobody chooses whom it observes or who observes it.

Each epoch puts all domains on a ring, in the order of a hash of epoch and name; the monitors of a domain are the MONITORS that follow it
(one ring of Fireflies). Directories that differ in some records give nearly the same monitors, so a claim to be a monitor is accepted
from a few places further on.

A name that was chosen for its place has the place for one epoch only.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

from eventing.overlay import fingerprints
from eventing.overlay.machine import Id

MONITORS = 10
"""With 5 accusations needed: honest monitors reach that with a probability of 0.994 when a fifth of all domains lie (model)."""
SLACK = 3
"""Places further on from which accusations count: directories may differ in so many domains of this part of the ring."""
EPOCH_S = 6 * 3600.0
"""Monitors change so often (guess: rarely against the 30 s of an accusation, often against the time that choosing names pays off)."""


class MonitorRing:
    """The ring of one epoch.

    Args:
        domains: all that can be observed and observe.
        epoch: its number.
        key_hash: 64 well-mixed bits of a domain's name.
    """

    def __init__(self, domains: Iterable[Id], epoch: int, key_hash: Callable[[Id], int]) -> None:
        self.epoch = epoch
        self._key_hash = key_hash
        placed = sorted((self._place(domain), domain) for domain in domains)
        self._places = [place for place, _ in placed]
        self._domains = [domain for _, domain in placed]

    def __len__(self) -> int:
        return len(self._domains)

    def monitors(self, domain: Id, count: int = MONITORS) -> list[Id]:
        """Return the domains that observe a domain."""
        return self._around(domain, count, 1)

    def targets(self, domain: Id) -> list[Id]:
        """Return the domains that a domain observes."""
        return self._around(domain, MONITORS, -1)

    def _around(self, domain: Id, count: int, step: int) -> list[Id]:
        at = bisect_left(self._places, self._place(domain))
        present = at < len(self._domains) and self._domains[at] == domain
        others = len(self._domains) - present
        first = at + (step if present or step < 0 else 0)
        return [self._domains[(first + step * number) % len(self._domains)] for number in range(min(count, others))]

    def _place(self, domain: Id) -> int:
        return fingerprints.entry_hash(self._key_hash(domain), self.epoch)


def epoch_of(wall_s: float) -> int:
    """Return the number of the epoch at a time, seconds since 1970."""
    return int(wall_s // EPOCH_S)
