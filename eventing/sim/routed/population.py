"""Population of a world of routes: each domain is linked with its neighbours in a ring, and theirs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eventing.overlay.machine import Chance, Fired, Id
from eventing.sim.routed.member import ORIGIN, PUBLISH_S, TURN_S, PublishTimer, RoutedDomain, Turn
from eventing.sim.scenario import Scenario

NEAR = (-2, -1, 1, 2)


class RoutedPopulation:
    """The domains of a run.

    Attributes:
        members: by number.
    """

    def __init__(
        self, scenario: Scenario, chance: Chance, only_outbound: bytearray | None, absent: frozenset[int]
    ) -> None:
        self.members: list[Any] = []
        self._domains = scenario.domains
        self._chance = chance

    def make(self) -> None:
        """Make all domains."""
        self.members = [self._made(domain) for domain in range(self._domains)]

    def again(self, domain: int) -> tuple[Any, Any]:
        """Make a domain anew: what it measured is lost."""
        drops = self.members[domain].drops
        self.members[domain] = made = self._made(domain)
        made.drops = drops
        return made, Fired(Turn())

    def newcomer(self, domain: int, contact: int) -> tuple[Any, Any]:
        """Make a domain that joins later."""
        return self.again(domain)

    def start(self) -> Iterable[tuple[int, Any, float]]:
        """Start all, at random phases, and the origin's feed."""
        for domain in range(self._domains):
            yield domain, Fired(Turn()), TURN_S * self._chance.random()
        yield ORIGIN, Fired(PublishTimer()), PUBLISH_S

    def links(self, domain: int) -> Mapping[Id, Any]:
        """Return no links of an overlay: there is none."""
        return {}

    def _made(self, domain: int) -> RoutedDomain:
        count = self._domains
        near = dict.fromkeys((domain + by) % count for by in NEAR)
        return RoutedDomain(domain, tuple(sorted(one for one in near if one != domain)), count)
