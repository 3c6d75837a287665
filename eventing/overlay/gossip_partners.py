"""The domains that a member of the overlay gossips with: peers of its links, and draws from its directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eventing.overlay.directory import DomainDirectory
from eventing.overlay.gossip_object import GossipScope
from eventing.overlay.links import Links
from eventing.overlay.machine import Chance, Id

ZONE_TRIES = 32
"""Draws until a domain of the own zone is found: with a zone of a tenth of all domains, 97 in 100 find one."""


class MemberPartners:
    """Partners by links and directory."""

    def __init__(
        self, me: Id, links: Links, directory: DomainDirectory, zone_of: Callable[[Id], Any] | None = None
    ) -> None:
        """Make partners.

        Args:
            zone_of: the zone that a domain is counted in, None for unknown domains; None: as the domains' records state.
        """
        self._me = me
        self._links = links
        self._directory = directory
        self._zone_of = zone_of if zone_of is not None else self._stated_zone

    def links(self) -> Sequence[Id]:
        """Peers of the links."""
        return list(self._links.active)

    def draw(self, scope: GossipScope, chance: Chance) -> Id | None:
        """A domain drawn evenly from the directory, of the own zone for GossipScope.ZONE."""
        for _ in range(ZONE_TRIES):
            domain = self._directory.draw(chance)
            if domain is None or scope is GossipScope.FEDERATION or self.in_zone(domain):
                return domain
        return None

    def in_zone(self, peer: Id) -> bool:
        """Return True if a domain is in the same zone as this one."""
        ours = self._zone_of(self._me)
        return ours is not None and ours == self._zone_of(peer)

    def _stated_zone(self, domain: Id) -> str | None:
        record = self._directory.record(domain)
        return None if record is None else record.zone
