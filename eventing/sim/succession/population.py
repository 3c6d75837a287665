"""Population of a world of succession: domain 0 is the home at the beginning, all others are its electors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eventing.overlay.machine import Chance, Fired, Id
from eventing.overlay.succession import SuccessionRules
from eventing.sim.scenario import Scenario
from eventing.sim.succession.elector import TICK_S, ElectorDomain, ElectorTick

SILENCE_MS = 5000


class SuccessionPopulation:
    """The domains of a run.

    Attributes:
        members: by number.
    """

    def __init__(
        self, scenario: Scenario, chance: Chance, only_outbound: bytearray | None, absent: frozenset[int]
    ) -> None:
        self.members: list[Any] = []
        self._domains = scenario.domains
        self._rules = SuccessionRules(tuple(range(1, scenario.domains)), SILENCE_MS)
        self._chance = chance

    def make(self) -> None:
        """Make all domains."""
        self.members = [ElectorDomain(domain, self._rules, self._domains) for domain in range(self._domains)]

    def again(self, domain: int) -> tuple[Any, Any]:
        """Make a domain as after a restart: with what it had stored."""
        self.members[domain] = made = ElectorDomain(domain, self._rules, self._domains, self.members[domain].stored)
        return made, Fired(ElectorTick())

    def newcomer(self, domain: int, contact: int) -> tuple[Any, Any]:
        """Make a domain that joins later."""
        return self.again(domain)

    def start(self) -> Iterable[tuple[int, Any, float]]:
        """Start all, at random phases."""
        for domain in range(self._domains):
            yield domain, Fired(ElectorTick()), TICK_S * self._chance.random()

    def links(self, domain: int) -> Mapping[Id, Any]:
        """Return no links: there is no overlay."""
        return {}
