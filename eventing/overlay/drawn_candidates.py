"""Candidates for links that are drawn from a set of domains which is known completely: the part that the directory's and a region's share.

What peers name is ignored: a draw depends on the set and on the domain's own chance only. A domain that refused or could not be reached is
held back for a time.
"""

from __future__ import annotations

from collections.abc import Iterable

from eventing.overlay.machine import Chance, Id

HELD_BACK_MAX = 1024  # bound: domains that refused or failed; the oldest are asked again early
FAILURES_MAX = 16
"""Failures in a row that are counted: the time doubles with each."""


class DrawnCandidates:
    """The domains of a set that are held back.

    Args:
        refused_s: seconds that a domain which refused a link is not asked again.
        failed_s: seconds that one which could not be reached is not asked again, doubled each time.
        failed_s_max: the most seconds of that.
    """

    def __init__(self, refused_s: float, failed_s: float, failed_s_max: float) -> None:
        self._refused_s = refused_s
        self._failed_s = failed_s
        self._failed_s_max = failed_s_max
        self._held_back: dict[Id, tuple[float, int]] = {}

    def sample(self, but: Id, chance: Chance) -> tuple[Id, ...]:
        """Nothing: a peer knows the set itself, and would not use what others name."""
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
        self._hold_back(peer, now + self._refused_s, 0)

    def failed(self, peer: Id, now: float) -> None:
        """Hold a domain back that cannot be reached, longer each time."""
        times = self._held_back.get(peer, (0.0, 0))[1]
        until = now + min(self._failed_s * 2.0**times, self._failed_s_max)
        self._hold_back(peer, until, min(times + 1, FAILURES_MAX))

    def sizes(self) -> dict[str, int]:
        """Entries of each memory that others can make grow."""
        return {"held_back": len(self._held_back)}

    def is_free(self, domain: Id, now: float) -> bool:
        """Return True if a domain is not held back."""
        return self._held_back.get(domain, (0.0, 0))[0] <= now

    def refused_before(self, now: float, again_s: float) -> Iterable[Id]:
        """The domains that refused so long ago, the longest ago first."""
        latest = now + self._refused_s - again_s
        return (domain for domain, (until, times) in self._held_back.items() if not times and until <= latest)

    def is_candidate(self, peer: Id) -> bool:
        """Return True if a domain is in the set: others are not remembered."""
        return True

    def _hold_back(self, peer: Id, until: float, times: int) -> None:
        self._held_back.pop(peer, None)
        if self.is_candidate(peer):
            self._held_back[peer] = (until, times)
            if len(self._held_back) > HELD_BACK_MAX:
                del self._held_back[next(iter(self._held_back))]
