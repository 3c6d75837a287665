"""Pairing: at which domains each domain has a place for links. Drawn for all of them by the newest record of the founder.

A domain accepts few links, so it has to choose among those that ask. It cannot distinguish a domain that draws six peers from one that
asks all: by the order of arrival, by a lottery or by a secret rank, those that ask most get most. So the number of domains that a domain
can ask is limited: it is *paired* with about PAIRED of all, and each domain keeps places for those that are paired with it. Further
requests compete for the few places that are for all.

A pair is drawn from three numbers: hashes of both names, and the *beacon*, a hash over the founder's newest record with its signature.

- Nobody can foresee a beacon, the founder apart, so a name that was chosen for its pairs has those of the present beacon and no others.
- A record of the founder is issued every 30 minutes, and all domains hold it within seconds. The pairs of the beacon before count for
  GRACE_S more.
- Both ends compute a pair, so a request needs no proof. Directories that differ in a few records differ in few pairs.

Of f liars, about f * PAIRED have places at a domain, whatever they do; with their pairs of the beacon before, twice as many. `links.SUSPICIOUS`
has more places than these and all honest ones need. A founder that lies can choose pairs; while no founder renews its record, they stand still.
"""

from __future__ import annotations

from eventing.overlay.directory import DomainDirectory
from eventing.overlay.fingerprints import entry_hash, is_in_share
from eventing.overlay.machine import Id

PAIRED = 16
"""Domains, on average, at which a domain has a place, and that have places at it: with 16, fewer than 6 for one domain in 700."""
GRACE_S = 60.0
"""For a founder's new record to be everywhere."""
_ALL = 1 << 64


class Pairing:
    """The pairs of one domain.

    Args:
        directory: its directory.
    """

    def __init__(self, directory: DomainDirectory) -> None:
        self._directory = directory
        self._beacon = self._before = directory.beacon()
        self._changed_at = float("-inf")
        self._computed: tuple[int, int] | None = None
        self._targets: list[Id] = []

    def targets(self, now: float) -> list[Id]:
        """Return the domains at which this one has a place."""
        self._look(now)
        wanted = (self._beacon, self._directory.count)
        if wanted != self._computed:
            seed = entry_hash(self._directory.key_hash(self._directory.me), self._beacon)
            self._targets = self._directory.share(seed, self._limit())
            self._computed = wanted
        return self._targets

    def has_place(self, asker: Id, now: float) -> bool:
        """Return True if a domain has a place at this one."""
        self._look(now)
        if self._directory.version(asker) == 0:
            return False
        mine, theirs, limit = (
            self._directory.key_hash(self._directory.me),
            self._directory.key_hash(asker),
            self._limit(),
        )
        if is_in_share(entry_hash(theirs, self._beacon), mine, limit):
            return True
        in_grace = now < self._changed_at + GRACE_S
        return in_grace and is_in_share(entry_hash(theirs, self._before), mine, limit)

    def _limit(self) -> int:
        return PAIRED * _ALL // max(PAIRED, self._directory.count)

    def _look(self, now: float) -> None:
        beacon = self._directory.beacon()
        if beacon != self._beacon:
            self._before, self._beacon, self._changed_at = self._beacon, beacon, now
