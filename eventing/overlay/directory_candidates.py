"""Candidates for links from the signed directory: even draws by the domain's own chance.

The directory has each domain once, however often and by whom its record was sent, so liars have no more than their share of the draws, and
neither shuffles nor other domains' words are needed (docs/decisions/0057). What a peer names is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eventing.overlay.directory import DomainDirectory
from eventing.overlay.machine import Chance, Id

REFUSED_S = 60.0
"""A domain that refused a link is not asked again for this long (gossipsub: prune back-off 60 s)."""
REFUSED_AGAIN_S = 10.0
"""But again after this long if nobody else is left to ask: a newcomer is refused by all that do not have its record yet."""
FAILED_S = 30.0
FAILED_S_MAX = 3600.0  # bound: seconds before a domain that cannot be reached is asked again
REMEMBERED_MAX = 1024  # bound: domains that refused or failed; the oldest are asked again early
TRIES = 8
"""Draws for each domain that is wanted; others are unsuitable or held back."""


class DirectoryCandidates:
    """The candidates of one domain.

    Args:
        directory: all domains with their records.
    """

    def __init__(self, directory: DomainDirectory) -> None:
        self._directory = directory
        self._held_back: dict[Id, tuple[float, int]] = {}

    def draw(self, count: int, but: Iterable[Id], now: float, chance: Chance) -> list[Id]:
        """Up to `count` domains that can be called, each with the same probability."""
        not_these = set(but)
        found: list[Id] = []
        for _ in range(TRIES * count):
            domain = self._directory.draw(chance)
            if domain is None or len(found) == count:
                break
            if (
                domain not in not_these
                and domain not in self._directory.convictions
                and self._held_back.get(domain, (0.0, 0))[0] <= now
                and self._can_be_called(domain)
            ):
                not_these.add(domain)
                found.append(domain)
        return found or self._refused_before(count, not_these, now)

    def _refused_before(self, count: int, not_these: set[Id], now: float) -> list[Id]:
        """Return domains that had no room some time ago, the longest ago first."""
        again = now + REFUSED_S - REFUSED_AGAIN_S
        return [
            domain
            for domain, (until, times) in self._held_back.items()
            if not times and until <= again and domain not in not_these and domain not in self._directory.convictions
        ][:count]

    def sample(self, but: Id, chance: Chance) -> tuple[Id, ...]:
        """Nothing: a peer has the directory, and would not use what others name."""
        return ()

    def note(self, members: Iterable[Id], chance: Chance) -> None:
        """Ignore what a peer names."""

    def taken(self, peer: Id) -> None:
        """Forget failures of a domain that has a link now."""
        self._held_back.pop(peer, None)

    def dropped(self, peer: Id, chance: Chance) -> None:
        """A domain whose link ended is drawn like any other."""

    def refused(self, peer: Id, now: float) -> None:
        """Hold a domain back that has no room."""
        self._hold_back(peer, now + REFUSED_S, 0)

    def failed(self, peer: Id, now: float) -> None:
        """Hold a domain back that cannot be reached, longer each time; it stays a candidate until its record expires."""
        times = self._held_back.get(peer, (0.0, 0))[1]
        self._hold_back(peer, now + min(FAILED_S * 2.0**times, FAILED_S_MAX), min(times + 1, 16))

    def sizes(self) -> dict[str, int]:
        """Entries of each memory that others can make grow."""
        return {"held_back": len(self._held_back)}

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

    def _can_be_called(self, domain: Id) -> bool:
        record = self._directory.record(domain)
        return record is not None and record.url != ""

    def _hold_back(self, peer: Id, until: float, times: int) -> None:
        self._held_back.pop(peer, None)
        self._held_back[peer] = (until, times)
        if len(self._held_back) > REMEMBERED_MAX:
            del self._held_back[next(iter(self._held_back))]
