"""Tables of peers, domain documents, misbehaviour and evidence."""

from __future__ import annotations

from eventing.peering.models.domain_document import DomainDocument
from eventing.peering.models.evidence import Evidence, EvidenceSpread
from eventing.peering.models.misbehaviour import Misbehaviour
from eventing.peering.models.peer import Peer
from eventing.peering.models.peer_delivery import PeerDelivery
from eventing.peering.models.quarantine import Quarantine

__all__ = [
    "DomainDocument",
    "Evidence",
    "EvidenceSpread",
    "Misbehaviour",
    "Peer",
    "PeerDelivery",
    "Quarantine",
]
