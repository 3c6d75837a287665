"""Populations: the domains of a run, made, started and restarted.

A world that begins settled gives every domain all records at once: joining one after the other costs a hundred million admissions with
10,000 domains, and is measured by scenarios of its own. Links are never drawn on a domain's behalf: each finds its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from eventing.overlay import links
from eventing.overlay.directory import DomainDirectory
from eventing.overlay.directory_messages import RefreshDue
from eventing.overlay.directory_records import REFRESH_S
from eventing.overlay.directory_table import DirectoryTable
from eventing.overlay.links import FindLinks, Links
from eventing.overlay.machine import Chance, Id, SetTimer
from eventing.overlay.member import OverlayMember
from eventing.sim.federation import (
    STARTED_S,
    URL,
    PaperMember,
    directory_make,
    mixed,
    record_make,
    sponsor_of,
    table_make,
)
from eventing.sim.scenario import Scenario
from eventing.sim.suspecting import SharedRings, gossip_make, suspicion_make

START_S = 10.0
"""Domains of a settled world start within this time."""
JOIN_S = 60.0
"""Domains of a joining world start within this time."""
RESTART_CONTACTS = 3
"""Domains that a restarted domain may ask beside its former links."""


class SimulatedMember(Protocol):
    """The common part of all members."""

    me: Id
    links: Links

    def handle(self, given: Any, now: float, chance: Chance, /) -> Iterable[Any]: ...


class Population:
    """The domains of a run.

    Attributes:
        members: by number; the machine of the world may be a wrapper of it.
        absent: domains that join later, of which no directory knows at the beginning.
    """

    def __init__(
        self, scenario: Scenario, chance: Chance, only_outbound: bytearray | None, absent: frozenset[int]
    ) -> None:
        self.scenario = scenario
        self.absent = absent
        self.members: list[Any] = []
        self._chance = chance
        self._only_outbound = only_outbound

    def make(self) -> None:
        """Make all domains."""
        self.members = [self.member(domain) for domain in range(self.scenario.domains)]

    def member(self, domain: int) -> SimulatedMember:
        """Make one domain anew, without what it knew."""
        raise NotImplementedError

    def again(self, domain: int) -> tuple[SimulatedMember, FindLinks]:
        """Make a domain as after a restart from its disk, with the command that starts it."""
        raise NotImplementedError

    def start(self) -> Iterable[tuple[int, FindLinks, float]]:
        """Each domain with the command that starts it, and when, in seconds from the beginning of the world."""
        raise NotImplementedError

    def links(self, domain: int) -> Mapping[Id, Any]:
        """The active view of a domain."""
        of: Mapping[Id, Any] = self.members[domain].links.active
        return of

    def newcomer(self, domain: int, contact: int) -> tuple[SimulatedMember, FindLinks]:
        """Make a domain that joins through a contact."""
        self.members[domain] = made = self.member(domain)
        return made, FindLinks((contact,))


class PaperPopulation(Population):
    """HyParView as published: each domain joins through one that is there already."""

    def member(self, domain: int) -> SimulatedMember:
        """Make one domain anew."""
        return PaperMember(domain)

    def again(self, domain: int) -> tuple[SimulatedMember, FindLinks]:
        """Make a domain that asks its former links."""
        known = tuple(self.links(domain))
        self.members[domain] = made = self.member(domain)
        return made, FindLinks(known[:1], known)

    def start(self) -> Iterable[tuple[int, FindLinks, float]]:
        """Start within JOIN_S, each at a random contact."""
        count = self.scenario.domains
        for domain in range(count):
            contacts = (self._chance.randrange(domain),) if domain else ()
            yield domain, FindLinks(contacts), domain * JOIN_S / count


class SuspiciousPopulation(Population):
    """Domains that draw their links from the directory."""

    def __init__(
        self, scenario: Scenario, chance: Chance, only_outbound: bytearray | None, absent: frozenset[int]
    ) -> None:
        super().__init__(scenario, chance, only_outbound, absent)
        self.table: DirectoryTable = table_make()
        self._rings = SharedRings()
        self._full: list[DomainDirectory] = []
        if scenario.start != "joining":
            self._full = self._directories()

    def side(self, domain: int) -> int:
        """The half of the former partition in which a domain was."""
        return domain % 2

    def member(self, domain: int) -> SimulatedMember:
        """Make one domain anew, with all records where the world begins settled."""
        directory = directory_make(domain, self.table, self._url(domain))
        if self._full:
            directory.copy_records(self._full[self.side(domain) % len(self._full)])
        return self._member(domain, directory)

    def again(self, domain: int) -> tuple[SimulatedMember, FindLinks]:
        """Make a domain that has its directory and asks its former links."""
        old = self.members[domain]
        directory = directory_make(domain, self.table, self._url(domain))
        directory.copy_records(old.directory)
        self.members[domain] = made = self._member(domain, directory)
        return made, FindLinks(self._contacts(domain), tuple(old.links.chosen))

    def newcomer(self, domain: int, contact: int) -> tuple[SimulatedMember, FindLinks]:
        """Make a domain that knows nothing but its contact."""
        self.members[domain] = made = self._member(domain, directory_make(domain, self.table, self._url(domain)))
        return made, FindLinks((contact,))

    def start(self) -> Iterable[tuple[int, FindLinks, float]]:
        """Start all, each with its sponsor as contact."""
        count = self.scenario.domains
        within = JOIN_S if self.scenario.start == "joining" else START_S
        for domain in range(count):
            yield domain, FindLinks(self._contacts(domain)), domain * within / count

    def _member(self, domain: int, directory: DomainDirectory) -> SimulatedMember:
        kind = OverlayMember if self.scenario.renew_records else MemberWithoutRenewals
        if not self.scenario.suspicion:
            return kind(domain, directory, links.SUSPICIOUS)
        gossips = gossip_make(domain, directory)
        suspects = suspicion_make(domain, gossips, directory, self._rings)
        return kind(domain, directory, links.SUSPICIOUS, gossips=gossips, suspects=suspects)

    def _contacts(self, domain: int) -> tuple[int, ...]:
        sponsorship = sponsor_of(domain)
        return () if sponsorship is None else (sponsorship.sponsor,)

    def _url(self, domain: int) -> str:
        return "" if self._only_outbound is not None and self._only_outbound[domain] else URL

    def _directories(self) -> list[DomainDirectory]:
        """Full directories, built once: one, or after a partition one for each side, in which the other's records are old."""
        count = self.scenario.domains
        ages = [self._chance.random() * REFRESH_S for _ in range(count)]
        apart_s = self.scenario.apart_s if self.scenario.start == "apart" else 0.0
        made = []
        for side in (0, 1) if apart_s else (0,):
            records = []
            for domain in range(count):
                if domain in self.absent:
                    continue
                age = ages[domain] + (apart_s if apart_s and self.side(domain) != side else 0.0)
                issued_s = STARTED_S - age
                records.append(record_make(domain, int(issued_s), issued_s, self._url(domain)))
            full = directory_make(0, self.table)
            full.fill(records)
            made.append(full)
        return made


class MemberWithoutRenewals(OverlayMember):
    """A domain that never renews its record: directories stand still unless a fault changes them."""

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        """Take in an input; leave out the timer of the renewal, which the start sets."""
        out = super().handle(given, now, chance)
        if type(given) is not FindLinks:
            return out
        return [one for one in out if not (type(one) is SetTimer and type(one.timer) is RefreshDue)]


Maker = Callable[[Scenario, Chance, "bytearray | None", "frozenset[int]"], Population]
POPULATIONS: dict[str, Maker] = {"paper": PaperPopulation, "suspicious": SuspiciousPopulation}


def shuffled(domains: Iterable[int], salt: int) -> list[int]:
    """The domains in an order that the salt fixes."""
    return sorted(domains, key=lambda domain: mixed(domain ^ salt << 20))
