"""Routes to other domains as the process of the overlay sees them: addresses, keys, peers. Read again every READ_S, not per message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.membership.rules.records import keys_of
from eventing.overlay.directory import DomainDirectory
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.peering.selectors.peers import peers_active

READ_S = 10.0


class Route(NamedTuple):
    """The way to a domain. `url` is empty for one that only calls out; `keys` sign its answers."""

    url: str
    keys: Mapping[str, Mapping[str, Any]]


class Routes:
    """Routes to the peers and, unless the mode forbids it, to the domains of the directory.

    Attributes:
        peers: active peers that take part in gossip, with their addresses.
        key: private JWK that signs requests now.
    """

    def __init__(self, directory: DomainDirectory, peers_only: bool) -> None:
        self._directory = directory
        self._peers_only = peers_only
        self._read_at = float("-inf")
        self.peers: dict[str, str] = {}
        self.key: dict[str, Any] | None = None

    def read(self, now: float) -> bool:
        """Read peers and key again if it is time; return whether the key has changed since the last read."""
        if now - self._read_at < READ_S:
            return False
        self._read_at = now
        self.peers = {row.name: row.url for row in peers_active() if row.gossip}
        before, self.key = self.key, signing_key()
        return before is not None and before != self.key

    def anchors(self) -> frozenset[str]:
        """Return the approved peers that are in the directory."""
        return frozenset(name for name in self.peers if self._directory.record(name) is not None)

    def to(self, name: str) -> Route | None:
        """Return the route to a domain; None if there is none."""
        record = self._directory.record(name)
        peer_url = self.peers.get(name)
        if name == config().domain or (peer_url is None and (record is None or self._peers_only)):
            return None
        if record is None:
            return Route(peer_url or "", domain_keys(name))
        return Route(record.url and (peer_url or record.url), keys_of(record))
