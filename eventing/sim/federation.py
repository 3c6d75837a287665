"""Federations for simulations: domains with directories over one table, records that are signed by assertion."""

from __future__ import annotations

from eventing.overlay import links
from eventing.overlay.directory import (
    EXPIRY_S,
    QUOTA_PER_DAY,
    DirectoryTable,
    DomainDirectory,
    DomainRecord,
    Sponsorship,
)
from eventing.overlay.links import LinkParameters
from eventing.overlay.machine import Chance, Id
from eventing.overlay.member import OverlayMember

STARTED_S = 86_400.0 * 20_000
"""Wall clock at the beginning of a world; any will do."""
OLDEST_DAYS = 4000
"""Age of those that the founder sponsored: enough, by the quota, for all that they brought in."""
_MASK = (1 << 64) - 1


def mixed(number: int) -> int:
    """64 well-mixed bits of a number (SplitMix64)."""
    bits = (number + 1) * 0x9E3779B97F4A7C15 & _MASK
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & _MASK
    return bits ^ bits >> 31


def sponsor_of(domain: int) -> Sponsorship | None:
    """Each domain sponsors QUOTA_PER_DAY others, one day's worth; domain 0 is the founder. The nearer to the founder, the older."""
    if domain == 0:
        return None
    sponsor, number = divmod(domain - 1, QUOTA_PER_DAY)
    depth, above = 0, sponsor
    while above:
        depth, above = depth + 1, (above - 1) // QUOTA_PER_DAY
    return Sponsorship(sponsor, domain, 20_000 - (OLDEST_DAYS >> 3 * depth), number)


def table_make() -> DirectoryTable:
    """A table of domains by number."""
    return DirectoryTable(mixed)


def member_make(domain: int, table: DirectoryTable, parameters: LinkParameters = links.SUSPICIOUS) -> OverlayMember:
    """An honest domain."""

    def issue(version: int, wall_s: float) -> DomainRecord:
        return DomainRecord(domain, version, wall_s, wall_s + EXPIRY_S, sponsorship=sponsor_of(domain))

    directory = DomainDirectory(
        domain, table, issue=issue, genuine=_genuine, founders=frozenset({0}), started_s=STARTED_S
    )
    return OverlayMember(domain, directory, parameters)


def _genuine(record: DomainRecord) -> bool:
    """Signatures of a simulation: forged records state it."""
    return record.signature != b"forged"


def reachable(members: dict[Id, OverlayMember], up: list[Id], chance: Chance) -> int:
    """The number of domains in the largest component of the links between running domains."""
    left, largest = dict.fromkeys(up), 0
    while left:
        start = next(iter(left))
        del left[start]
        reached, size = [start], 0
        while reached:
            size += 1
            for peer in members[reached.pop()].links.active:
                if peer in left:
                    del left[peer]
                    reached.append(peer)
        largest = max(largest, size)
    return largest
