"""Federations for simulations: domains with directories over one table, records that are signed by assertion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eventing.overlay import links, passive_view
from eventing.overlay.directory import DomainDirectory
from eventing.overlay.directory_records import EXPIRY_S, QUOTA_PER_DAY, DomainRecord, Sponsorship
from eventing.overlay.directory_table import DirectoryTable
from eventing.overlay.links import FindLinks, LinkParameters, Links
from eventing.overlay.machine import Chance, Fired, Id, MessageReceived
from eventing.overlay.member import OverlayMember
from eventing.overlay.passive_view import PassiveView

STARTED_S = 86_400.0 * 20_000
"""Wall clock at the beginning of a world; any will do."""
OLDEST_DAYS = 4000
"""Age of those that the founder sponsored: enough, by the quota, for all that they brought in."""
URL = "https://domain.example"
"""Of all domains that can be called: its length counts, not where it leads."""
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


def record_make(domain: int, version: int, issued_s: float, url: str = URL) -> DomainRecord:
    """The record of an honest domain; an empty `url` is that of a domain that only calls out."""
    return DomainRecord(domain, version, issued_s, issued_s + EXPIRY_S, url=url, sponsorship=sponsor_of(domain))


def member_make(
    domain: int, table: DirectoryTable, parameters: LinkParameters = links.SUSPICIOUS, url: str = URL
) -> OverlayMember:
    """An honest domain."""
    return OverlayMember(domain, directory_make(domain, table, url), parameters)


def directory_make(domain: int, table: DirectoryTable, url: str = URL) -> DomainDirectory:
    """The directory of an honest domain, empty."""

    def issue(version: int, wall_s: float) -> DomainRecord:
        return record_make(domain, version, wall_s, url)

    return DomainDirectory(domain, table, issue=issue, genuine=_genuine, founders=frozenset({0}), started_s=STARTED_S)


class PaperMember:
    """HyParView as in the paper: links over a passive view."""

    def __init__(self, me: int) -> None:
        self.me = me
        self.view = PassiveView(me)
        self.links = self.view.links = Links(me, links.PAPER, self.view)

    def handle(self, given: Any, now: float, chance: Chance) -> list[Any]:
        """Take in an input; return messages, timers and events."""
        if type(given) is FindLinks:
            begun = self.view.begin(given.contacts[0] if given.contacts else None, chance)
            return begun + self.links.handle(given, now, chance)
        of_view = type(given) is MessageReceived and type(given.message) in passive_view.MESSAGES
        if of_view or (type(given) is Fired and given.timer == passive_view.SHUFFLE_DUE):
            return self.view.handle(given, now, chance)
        return self.links.handle(given, now, chance)


def _genuine(record: DomainRecord) -> bool:
    """Signatures of a simulation: forged records state it."""
    return record.signature != b"forged"


def reachable(members: dict[Id, Any], up: list[Id], chance: Chance) -> int:
    """The number of domains in the largest component of the links between running domains."""
    return component_sizes({me: members[me].links.active for me in up})[0] if up else 0


def component_sizes(links: Mapping[Id, Iterable[Id]]) -> list[int]:
    """Sizes of the components of a graph, the largest first; links to domains that are not in it are ignored."""
    left, sizes = dict.fromkeys(links), []
    while left:
        reached, size = [left.popitem()[0]], 0
        while reached:
            size += 1
            for peer in links[reached.pop()]:
                if peer in left:
                    del left[peer]
                    reached.append(peer)
        sizes.append(size)
    return sorted(sizes, reverse=True)
