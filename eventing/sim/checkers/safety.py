"""Safety: what holds in each honest domain at every moment, whatever liars send.

Nothing forged is held; each record held is within its times and has sponsors up to a founder; no sponsor has more newcomers than its
quota; each memory that a stranger can make grow is within its bound; there are no links beyond the limits; and no honest domain is
convicted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from eventing.overlay import directory as bounds
from eventing.overlay.convictions import PROOFS_MAX
from eventing.overlay.directory import DomainDirectory
from eventing.overlay.directory_records import AHEAD_S, DAY_S, EXPIRY_S, QUOTA_PER_DAY, DomainRecord
from eventing.overlay.drawn_candidates import HELD_BACK_MAX
from eventing.overlay.links import Links
from eventing.overlay.member import OverlayMember
from eventing.overlay.past_sponsors import PAST_MAX
from eventing.sim.checkers.violation import Violation
from eventing.sim.federation import STARTED_S, URL, sponsor_of
from eventing.sim.liars.lying_member import FORGED

LATE_S = EXPIRY_S / 10 * 1.5 + 1
"""A record that has expired is discarded within this."""
PENDING_MAX = 64
"""Requests for links under way: the lacking ones, some replacements and the contacts."""


class SafetyChecker:
    """Checks honest domains.

    Args:
        seed: of the world, for violations.
        honest: domains that do not lie.
    """

    def __init__(self, seed: int, honest: Iterable[int]) -> None:
        self.seed = seed
        self.honest = dict.fromkeys(honest)

    def check(self, members: Mapping[int, OverlayMember], now: float) -> list[Violation]:
        """Check these members, which are honest and run."""
        return [
            Violation(self.seed, now, domain, what)
            for domain, member in members.items()
            for what in self.wrong(member, now)
        ]

    def wrong(self, member: OverlayMember, now: float) -> Iterator[str]:
        """Violations in one member."""
        yield from self._records(member.directory, now)
        yield from self._convictions(member.directory)
        yield from _memories(member)
        yield from _links(member.links)

    def _records(self, directory: DomainDirectory, now: float) -> Iterator[str]:
        held = {record.domain: record for record in directory.all_records()}
        wall_s = STARTED_S + now
        for domain, record in held.items():
            if record.signature == FORGED:
                yield f"a forged record of {domain} is held"
            if domain in self.honest and (record.sponsorship != sponsor_of(domain) or record.url not in ("", URL)):
                yield f"a record of {domain} is held that it never issued"
            if not wall_s - LATE_S <= record.expires_s <= wall_s + EXPIRY_S + AHEAD_S:
                yield f"a record of {domain} is held that expires {record.expires_s - wall_s:.0f} s from now"
            if not 0 < record.version <= wall_s + AHEAD_S:
                yield f"version {record.version} of {domain} is held"
        yield from _sponsors(held, wall_s)

    def _convictions(self, directory: DomainDirectory) -> Iterator[str]:
        for domain in self.honest:
            if domain in directory.convictions:
                yield f"{domain}, which is honest, is convicted"


def _sponsors(held: Mapping[int, DomainRecord], wall_s: float) -> Iterator[str]:
    """Chains of sponsors, and quotas. A sponsor may have left after it admitted a domain, so a chain may end before a founder."""
    brought: Counter[int] = Counter()
    for domain, record in held.items():
        given, seen = record.sponsorship, {domain}
        while given is not None:
            if given.sponsor in seen:
                yield f"the sponsors of {domain} are a circle"
                break
            seen.add(given.sponsor)
            brought[given.sponsor] += 1
            sponsor = held.get(given.sponsor)
            given = sponsor.sponsorship if sponsor is not None else None
        if given is None and record.sponsorship is None and domain != 0:
            yield f"{domain} has no sponsor"
    for sponsor_id, count in brought.items():
        sponsor = held.get(sponsor_id)
        if sponsor is not None and sponsor.sponsorship is not None:
            days = int(wall_s // DAY_S) - sponsor.sponsorship.day + 1
            if count > QUOTA_PER_DAY * days:
                yield f"{sponsor_id}, which is {days} days old, brought in {count} domains"


def _memories(member: OverlayMember) -> Iterator[str]:
    directory, links = member.directory, member.links
    sizes = {**directory.sizes(), **links.candidates.sizes()}
    for name, most in {
        "orphans": bounds.ORPHANS_MAX,
        "wanted": bounds.WANTED_MAX,
        "convictions": PROOFS_MAX,
        "held_back": HELD_BACK_MAX,
        "fresh": directory.count,
        "variants": directory.count,
        "past": PAST_MAX,
    }.items():
        if sizes.get(name, 0) > most:
            yield f"{sizes[name]} {name} are remembered, of {most}"
    if len(links.pending) > PENDING_MAX + len(links.anchors):
        yield f"{len(links.pending)} requests for links are under way"


def _links(links: Links) -> Iterator[str]:
    ours = links.parameters
    own = [peer for peer in links.chosen if peer not in links.anchors]
    accepted = [peer for peer, link in links.active.items() if not link.chosen and peer not in links.anchors]
    if ours.accepted and len(accepted) > ours.accepted:
        yield f"{len(accepted)} links are accepted, of {ours.accepted}"
    if ours.accepted and len(own) > ours.chosen + 2:  # one more while an even and a near link are replaced
        yield f"{len(own)} links are chosen, of {ours.chosen}"
    if links.me in links.active:
        yield "it has a link with itself"
