"""Zones of the directory, and the domains that speak for each: reporters and a sample.

A zone is a domain's own word, so zones of few domains are folded into one, OTHER, and there are ZONES_MAX at most. Within a zone, domains
are in the order of a hash of epoch and name: the first REPORTERS sum the zone up for the others, the first SAMPLE show their own rows
to the whole federation. Nobody can choose its place but by choosing its name, and then for one epoch (`monitors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from eventing.overlay import fingerprints
from eventing.overlay.machine import Id

REPORTERS = 3
SAMPLE = 256
"""Signed rows of a foreign zone: a count or mean over k minima has an error of 5 % with k 256, 2.3 % with 1,024 (model)."""
REPORTERS_SLACK, SAMPLE_SLACK = 2, 16
"""Places further on from which rows are accepted, because directories may differ in some records."""
ZONE_MIN = 8
"""Domains of a zone of its own (guess: fewer can be looked at one by one)."""
ZONES_MAX = 64  # bound: zones; domains of the smallest others are counted in OTHER
OTHER = ""
CAPACITY_MAX = 3


class ZoneRecord(Protocol):
    """The part of a domain's record that is used here."""

    @property
    def domain(self) -> Id: ...

    @property
    def zone(self) -> str: ...

    @property
    def capacity(self) -> int: ...


class ZoneIndex:
    """Zones of one epoch.

    Args:
        records: of all domains.
        epoch: its number (`monitors.epoch_of`).
        key_hash: 64 well-mixed bits of a domain's name.

    Attributes:
        zones: domains of each zone, in their order of the epoch.
        capacity: class of each domain, within its range.
    """

    def __init__(self, records: Iterable[ZoneRecord], epoch: int, key_hash: Callable[[Id], int]) -> None:
        self.epoch = epoch
        self.zones: dict[str, list[Id]] = {}
        self.capacity: dict[Id, int] = {}
        self._rank: dict[Id, int] = {}
        self._zone: dict[Id, str] = {}
        stated: dict[str, list[tuple[int, Id]]] = {}
        for record in records:
            place = fingerprints.entry_hash(key_hash(record.domain), epoch)
            stated.setdefault(record.zone, []).append((place, record.domain))
            self.capacity[record.domain] = min(max(record.capacity, 0), CAPACITY_MAX)
        largest = sorted(stated, key=lambda zone: (-len(stated[zone]), zone))[: ZONES_MAX - 1]
        own = {zone: stated[zone] for zone in largest if len(stated[zone]) >= ZONE_MIN and zone != OTHER}
        folded = [one for zone, domains in stated.items() if zone not in own for one in domains]
        for zone, placed in sorted({**own, OTHER: folded}.items()):
            domains = [domain for _, domain in sorted(placed)]
            if domains:
                self.zones[zone] = domains
            self._rank.update({domain: rank for rank, domain in enumerate(domains)})
            self._zone.update(dict.fromkeys(domains, zone))

    def zone_of(self, domain: Id) -> str | None:
        """Return the zone that a domain is counted in; None for an unknown domain."""
        return self._zone.get(domain)

    def reporters(self, zone: str) -> list[Id]:
        """Return the reporters of a zone."""
        return self.zones.get(zone, [])[:REPORTERS]

    def may_report(self, domain: Id) -> bool:
        """Return True if a domain's totals of its zone are accepted."""
        return self._rank.get(domain, SAMPLE) < REPORTERS + REPORTERS_SLACK

    def in_sample(self, domain: Id) -> bool:
        """Return True if a domain shows its row to the whole federation."""
        return self._rank.get(domain, SAMPLE) < SAMPLE

    def may_be_in_sample(self, domain: Id) -> bool:
        """Return True if a domain's row is accepted in the sample."""
        return self._rank.get(domain, SAMPLE + SAMPLE_SLACK) < SAMPLE + SAMPLE_SLACK
