"""Liveness: what holds once the faults have stopped and the time for repairs is over.

The honest domains that run are one component of links with honest domains only, hold the same newest record of each of them, and have
the links that they seek.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eventing.overlay.member import OverlayMember
from eventing.sim.checkers.violation import Violation
from eventing.sim.federation import STARTED_S

SPARE = 2
"""Links that may be missing at any moment because they are being replaced."""
SPREAD_S = 75.0
"""A new record is everywhere after this, even if an announcement is lost: one comparison and some seconds."""


class LivenessChecker:
    """Checks the honest domains of a world together."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def check(self, members: Mapping[int, OverlayMember], now: float) -> list[Violation]:
        """Check these members: all that are honest and run."""
        return [Violation(self.seed, now, domain, what) for domain, what in self.wrong(members, now)]

    def wrong(self, members: Mapping[int, OverlayMember], now: float) -> Iterator[tuple[int | None, str]]:
        """Violations: each with its place."""
        apart = _apart(members)
        if apart:
            yield apart[0], f"{len(apart)} of {len(members)} honest domains are not in the largest component"
        settled = {domain: _settled(member, now) for domain, member in members.items()}
        for domain, member in members.items():
            ours = member.links.parameters
            wanted = min(ours.chosen, len(members) - 1)
            if len(member.links.active) < wanted - SPARE:
                yield domain, f"it has {len(member.links.active)} links, of {wanted}"
            missing = [other for other, version in settled.items() if _version(member, other) < version]
            if missing:
                yield domain, f"it holds no or an old record of {len(missing)} honest domains, {missing[0]} the first"


def _settled(member: OverlayMember, now: float) -> int:
    """The version of a domain's own record that all should hold; 1 (any) while a new one spreads."""
    own = member.directory.record(member.me)
    return own.version if own is not None and own.issued_s < STARTED_S + now - SPREAD_S else 1


def _version(member: OverlayMember, domain: int) -> int:
    record = member.directory.record(domain)
    return record.version if record is not None else 0


def _apart(members: Mapping[int, OverlayMember]) -> list[int]:
    """Domains outside the largest component of links between these members."""
    left = dict.fromkeys(members)
    largest: list[int] = []
    while left:
        reached = [left.popitem()[0]]
        at = 0
        while at < len(reached):
            for peer in members[reached[at]].links.active:
                if peer in left:
                    del left[peer]
                    reached.append(peer)
            at += 1
        largest = max(largest, reached, key=len)
    inside = dict.fromkeys(largest)
    return [domain for domain in members if domain not in inside]
