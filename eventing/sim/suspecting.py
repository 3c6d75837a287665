"""Gossip and suspicion for the domains of simulations: rows that are signed by assertion, one ring of monitors for all."""

from __future__ import annotations

from collections.abc import Callable

from eventing.overlay.directory import DomainDirectory
from eventing.overlay.directory_candidates import DirectoryCandidates
from eventing.overlay.gossip import Gossip
from eventing.overlay.gossip_object import SignedRow
from eventing.overlay.machine import Id
from eventing.overlay.monitors import MonitorRing
from eventing.overlay.suspicion import Suspicion
from eventing.overlay.suspicion_rows import Accusations, Rebuttals
from eventing.sim.federation import STARTED_S, mixed

SIGNATURE = bytes(64)


class SharedRings:
    """Rings by epoch, of the domains in one directory when the epoch begins: ten thousand directories give nearly the same."""

    def __init__(self) -> None:
        self._rings: dict[int, MonitorRing] = {}

    def of(self, directory: DomainDirectory) -> Callable[[int], MonitorRing]:
        """The maker of rings of one domain. As long as its directory is small, its rings are its own."""

        def ring(epoch: int) -> MonitorRing:
            shared = self._rings.get(epoch)
            if shared is None or len(shared) < directory.count:
                shared = self._rings[epoch] = MonitorRing(directory.domains(), epoch, mixed)
            return shared if len(shared) == directory.count else MonitorRing(directory.domains(), epoch, mixed)

        return ring


def gossip_make(me: int, directory: DomainDirectory) -> Gossip:
    """The gossip of an honest domain, with the objects of suspicion."""

    def issue(name: str, version: int, expires_s: int, payload: bytes) -> SignedRow:
        return SignedRow(me, version, expires_s, payload, SIGNATURE)

    def known(domain: Id) -> bool:
        return directory.version(domain) > 0

    return Gossip(
        me,
        [Accusations(), Rebuttals()],
        issue=issue,
        genuine=_genuine,
        known=known,
        key_hash=mixed,
        started_s=STARTED_S,
    )


def suspicion_make(me: int, gossips: Gossip, directory: DomainDirectory, rings: SharedRings) -> Suspicion:
    """The part of an honest domain in suspicion."""
    return Suspicion(
        me,
        gossips.sets["accusations"],
        gossips.sets["rebuttals"],
        ring=rings.of(directory),
        group=DirectoryCandidates(directory).group,
        started_s=STARTED_S,
    )


def _genuine(name: str, row: SignedRow) -> bool:
    return row.signature != b"forged"
