"""Routes to other domains as the process of the overlay sees them: addresses, keys, peers. Read again every READ_S, not per message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from eventing.access.selectors.keys import signing_key
from eventing.conf import config
from eventing.membership.rules.records import fingerprint_of, keys_of
from eventing.overlay.directory import DomainDirectory
from eventing.peering.rules.peers import PeeringState
from eventing.peering.selectors.domain_documents import domain_keys
from eventing.peering.selectors.peers import peers_all

READ_S = 30.0
"""Between two reads of peers and the present key (measured: 5 ms each). A suspended peer's requests are refused at once, by the gateways."""
FIRST_READ_S, FIRST_S = 10.0, 120.0
"""Reads are more frequent in the beginning: records of approved peers arrive then, whose links are anchors."""


class DomainRoute(NamedTuple):
    """The way to a domain. `url` is empty for one that only calls out; `keys` sign its answers."""

    url: str
    keys: Mapping[str, Mapping[str, Any]]


class ApprovedPeer(NamedTuple):
    """An active peer: the address and the fingerprint that administrators agreed on."""

    url: str
    fingerprint: str


class Routes:
    """Routes to the peers and, unless the mode forbids it, to the domains of the directory. None to suspended peers.

    Attributes:
        peers: active peers that take part in gossip.
        key: private JWK that signs requests now.
    """

    def __init__(self, directory: DomainDirectory, peers_only: bool) -> None:
        self._directory = directory
        self._peers_only = peers_only
        self._read_at = float("-inf")
        self.peers: dict[str, ApprovedPeer] = {}
        self._suspended: frozenset[str] = frozenset()
        self._anchors: frozenset[str] = frozenset()
        self.key: dict[str, Any] | None = None

    def read(self, now: float) -> bool:
        """Read peers and key again if it is time; return whether the key has changed since the last read."""
        if now - self._read_at < (FIRST_READ_S if now < FIRST_S else READ_S):
            return False
        self._read_at = now
        rows = peers_all()
        self.peers = {row.name: ApprovedPeer(row.url, row.fingerprint) for row in rows if row.active and row.gossip}
        self._suspended = frozenset(row.name for row in rows if row.state == PeeringState.SUSPENDED)
        records = ((name, peer, self._directory.record(name)) for name, peer in self.peers.items())
        self._anchors = frozenset(
            name for name, peer, record in records if record is not None and fingerprint_of(record) == peer.fingerprint
        )
        before, self.key = self.key, signing_key()
        return before is not None and before != self.key

    def anchors(self) -> frozenset[str]:
        """Return the approved peers that the directory had when it was read last, with the approved identity key."""
        return self._anchors

    def to(self, name: str) -> DomainRoute | None:
        """Return the route to a domain; None if there is none."""
        record, peer = self._directory.record(name), self.peers.get(name)
        if (
            name == config().domain
            or name in self._suspended
            or (peer is None and (record is None or self._peers_only))
        ):
            return None
        if peer is not None and (record is None or fingerprint_of(record) != peer.fingerprint):
            return DomainRoute(peer.url, domain_keys(name))
        if record is None:
            return None
        return DomainRoute(record.url if peer is None or not record.url else peer.url, keys_of(record))
