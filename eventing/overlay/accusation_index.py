"""Index of accusations: the domains that a quorum of their monitors accuses, kept up to date with the rows that change.

A federation in which a hundred domains have failed holds a thousand accusations, and every domain looks at them every few seconds; a look
costs as much as has changed since the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from eventing.overlay.gossip_rows import RowSet
from eventing.overlay.machine import Id
from eventing.overlay.monitors import MONITORS, SLACK, MonitorRing
from eventing.overlay.suspicion_rows import accused_of


class AccusationIndex:
    """Accusations by accused domain.

    Args:
        accusations, rebuttals: rows of the gossip objects.
        group: the group of a domain that may fail or lie together; None: unknown, which counts as one group.
        quorum: accusations needed.
        groups: groups that the accusers are of, at least, if the monitors are.

    Attributes:
        counted: domains with a quorum against them, each with its accusers.
    """

    def __init__(
        self, accusations: RowSet, rebuttals: RowSet, group: Callable[[Id], Any], *, quorum: int, groups: int
    ) -> None:
        self.counted: dict[Id, list[Id]] = {}
        self._accusations = accusations
        self._rebuttals = rebuttals
        self._group = group
        self._quorum = quorum
        self._least_groups = groups
        self._accusers = accusations.watch()
        self._rebutters = rebuttals.watch()
        self._stated: dict[Id, tuple[Id, ...]] = {}  # by accuser, the domains that its row names
        self._against: dict[Id, dict[Id, int]] = {}  # by accused, its accusers, each with the rebuttal that it knew
        self._ring: MonitorRing | None = None

    def update(self, ring: MonitorRing) -> None:
        """Take in what has changed since the last call.

        Args:
            ring: of the present epoch; another object than before has every accusation judged anew.
        """
        changed = dict.fromkeys(self._rebutters)
        self._rebutters.clear()
        for by in self._accusers:
            changed.update(dict.fromkeys(self._read(by)))
        self._accusers.clear()
        if ring is not self._ring:
            self._ring = ring
            changed.update(dict.fromkeys(self._against))
        for domain in changed:
            few = len(self._against.get(domain, ())) < self._quorum
            by_all = [] if few else self.valid(domain, ring)
            if len(by_all) >= self._quorum and self._of_enough_groups(domain, by_all, ring):
                self.counted[domain] = by_all
            else:
                self.counted.pop(domain, None)

    def valid(self, domain: Id, ring: MonitorRing) -> list[Id]:
        """Return the monitors that accuse a domain and that it has not answered, as of the last `update`."""
        answer = self._rebuttals.rows.get(domain)
        version = answer.version if answer is not None else 0
        monitors = ring.monitors(domain, MONITORS + SLACK)
        return [by for by, rebutted in self._against.get(domain, {}).items() if rebutted == version and by in monitors]

    def _read(self, by: Id) -> Iterable[Id]:
        """Read the row of an accuser anew; return the domains that it names or named."""
        before = self._stated.pop(by, ())
        for domain in before:
            against = self._against[domain]
            against.pop(by, None)
            if not against:
                del self._against[domain]
        row = self._accusations.rows.get(by)
        accused = (accused_of(row.payload) or ()) if row is not None else ()
        for domain, rebutted in accused:
            self._against.setdefault(domain, {})[by] = rebutted
        if accused:
            self._stated[by] = tuple(dict(accused))
        return (*before, *self._stated.get(by, ()))

    def _of_enough_groups(self, domain: Id, by_all: list[Id], ring: MonitorRing) -> bool:
        """Return True if accusers are of enough groups: of all, where the monitors are of fewer (one sponsor of everybody)."""
        return self._groups(by_all) >= min(self._least_groups, self._groups(ring.monitors(domain)))

    def _groups(self, of: Iterable[Id]) -> int:
        return len(dict.fromkeys(map(self._group, of)))
