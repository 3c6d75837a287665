"""Candidates for links from the signed directory: even draws by the domain's own chance.

The directory has each domain once, however often and by whom its record was sent, so liars have no more than their share of the draws, and
neither shuffles nor other domains' words are needed (docs/decisions/0057). Domains at which this one has a place are first (`pairing`):
draws of them are as even, and they accept.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eventing.overlay.directory import DomainDirectory
from eventing.overlay.drawn_candidates import DrawnCandidates
from eventing.overlay.machine import Chance, Id
from eventing.overlay.pairing import Pairing

REFUSED_S = 60.0
"""A domain that refused a link is not asked again for this long (gossipsub: prune back-off 60 s)."""
REFUSED_AGAIN_S = 10.0
"""But again after this long if nobody else is left to ask: a newcomer is refused by all that do not have its record yet."""
FAILED_S = 30.0
FAILED_S_MAX = 3600.0  # bound: seconds before a domain that cannot be reached is asked again
TRIES = 8
"""Draws for each domain that is wanted; others are unsuitable or held back."""


class DirectoryCandidates(DrawnCandidates):
    """The candidates of one domain.

    Args:
        directory: all domains with their records.
    """

    def __init__(self, directory: DomainDirectory) -> None:
        super().__init__(REFUSED_S, FAILED_S, FAILED_S_MAX)
        self._directory = directory
        self._pairing = Pairing(directory)

    def draw(self, count: int, but: Iterable[Id], now: float, chance: Chance, *, only_paired: bool = False) -> list[Id]:
        """Up to `count` domains that can be called, each with the same probability: first those with a place for this one."""
        not_these = {*but, self._directory.me}
        paired = [domain for domain in self._pairing.targets(now) if self._is_suitable(domain, not_these, now)]
        found = chance.sample(paired, min(count, len(paired)))
        if only_paired:
            return found
        not_these.update(found)
        for _ in range(TRIES * (count - len(found))):
            domain = self._directory.draw(chance)
            if domain is None or len(found) == count:
                break
            if self._is_suitable(domain, not_these, now):
                not_these.add(domain)
                found.append(domain)
        return found or self._refused_before(count, not_these, now)

    def paired(self, asker: Id, now: float) -> bool:
        """Return True if a domain has a place at this one."""
        return self._pairing.has_place(asker, now)

    def group(self, peer: Id) -> Any:
        """The sponsor: domains of one sponsor may be one operator's. None, which gets no link, for unknown and convicted domains."""
        record = self._directory.record(peer)
        if record is None or peer in self._directory.convictions:
            return None
        return record.domain if record.sponsorship is None else record.sponsorship.sponsor

    def group_share(self, peer: Id) -> float:
        """The share of the domains that the same domain sponsored."""
        record = self._directory.record(peer)
        return 0.0 if record is None else self._directory.group_share(record)

    def can_be_called(self, domain: Id) -> bool:
        """Return True if a domain has an address."""
        record = self._directory.record(domain)
        return record is not None and record.url != ""

    def _is_suitable(self, domain: Id, not_these: set[Id], now: float) -> bool:
        return (
            domain not in not_these
            and domain not in self._directory.convictions
            and self.is_free(domain, now)
            and self.can_be_called(domain)
        )

    def _refused_before(self, count: int, not_these: set[Id], now: float) -> list[Id]:
        """Return domains that had no room some time ago, the longest ago first."""
        before = self.refused_before(now, REFUSED_AGAIN_S)
        convicted = self._directory.convictions
        return [
            domain
            for domain in before
            if domain not in not_these and domain not in convicted and self.can_be_called(domain)
        ][:count]
