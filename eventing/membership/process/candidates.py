"""Candidates for links of a real domain: draws from the directory, of those that can be called and that the mode allows."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from eventing.overlay.directory import DomainDirectory
from eventing.overlay.directory_candidates import DirectoryCandidates
from eventing.overlay.machine import Id

SMALL = 24
"""Domains up to which a directory is small: all may have been brought in by one sponsor, so a common sponsor is no sign of shared risk."""


class LiveCandidates(DirectoryCandidates):
    """The candidates of this domain.

    Args:
        founders: domains whose newcomers share no risk by that.
        peers: active peers.
        peers_only: whether links stand with approved peers only.
    """

    def __init__(
        self,
        directory: DomainDirectory,
        founders: Collection[str],
        peers: Callable[[], Collection[str]],
        peers_only: bool,
    ) -> None:
        super().__init__(directory)
        self._founders = founders
        self._peers = peers
        self._peers_only = peers_only

    def can_be_called(self, domain: Id) -> bool:
        """Return True if a domain has an address and the mode allows links with it."""
        return super().can_be_called(domain) and (not self._peers_only or domain in self._peers())

    def group(self, peer: Id) -> Any:
        """The sponsor; for small federations, and those whom a founder sponsored, each domain is a group of its own."""
        group = super().group(peer)
        if group is None or (self._peers_only and peer not in self._peers()):
            return None
        return peer if group in self._founders or self._directory.count <= SMALL else group
