"""Population of a world of placement: domain 0 is the home, all others are volunteers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eventing.overlay.load_rows import CAPACITY
from eventing.overlay.machine import Chance, Fired, Id
from eventing.sim.network import ZONE_WEIGHTS
from eventing.sim.placement.home import PlacementHome
from eventing.sim.placement.messages import StateLoad
from eventing.sim.placement.volunteer import STATE_S, Volunteer
from eventing.sim.scenario import Scenario

CLASS = 0
"""Capacity class of every domain: 1,000 readers."""


class PlacementPopulation:
    """The domains of a run.

    Attributes:
        members: by number.
        zones: of every domain.
    """

    def __init__(
        self, scenario: Scenario, chance: Chance, only_outbound: bytearray | None, absent: frozenset[int]
    ) -> None:
        self.scenario = scenario
        self.absent = absent
        self.members: list[Any] = []
        self._chance = chance
        self.zones = bytes(chance.randrange(len(ZONE_WEIGHTS)) for _ in range(scenario.domains))

    def make(self) -> None:
        """Make all domains."""
        sessions = CAPACITY[CLASS].sessions
        count = self.scenario.domains
        self.members = [Volunteer(domain, sessions, count) for domain in range(count)]
        self.members[0] = PlacementHome(range(1, count), self.zones, CLASS)

    def again(self, domain: int) -> tuple[Any, Any]:
        """Make a domain as after a restart: the home continues from what it recorded, a volunteer holds nothing."""
        old = self.members[domain]
        if domain == 0:
            made: Any = PlacementHome(range(1, self.scenario.domains), self.zones, CLASS, old.stored())
        else:
            made = Volunteer(domain, CAPACITY[CLASS].sessions, self.scenario.domains)
            made.conduct, made.policy, made.storm_per_s = old.conduct, old.policy, old.storm_per_s
        self.members[domain] = made
        return made, Fired(StateLoad())

    def newcomer(self, domain: int, contact: int) -> tuple[Any, Any]:
        """Make a domain that joins later: a volunteer from then on."""
        return self.again(domain)

    def start(self) -> Iterable[tuple[int, Any, float]]:
        """Have volunteers state their load, at random phases."""
        for domain in range(1, self.scenario.domains):
            yield domain, Fired(StateLoad()), STATE_S * self._chance.random()

    def links(self, domain: int) -> Mapping[Id, Any]:
        """Return no links: there is no overlay."""
        return {}
