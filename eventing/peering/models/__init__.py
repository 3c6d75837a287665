"""Tables of peers, acquaintances, domain documents, misbehaviour and evidence."""

from __future__ import annotations

from eventing.peering.models.acquaintance import Acquaintance
from eventing.peering.models.delivery_columns import DeliveryColumns
from eventing.peering.models.domain_document import DomainDocument
from eventing.peering.models.evidence import Evidence, EvidenceSpread
from eventing.peering.models.misbehaviour import Misbehaviour
from eventing.peering.models.peer import Peer
from eventing.peering.models.peer_delivery import PeerDelivery
from eventing.peering.models.quarantine import Quarantine

__all__ = [
    "Acquaintance",
    "DeliveryColumns",
    "DomainDocument",
    "Evidence",
    "EvidenceSpread",
    "Misbehaviour",
    "Peer",
    "PeerDelivery",
    "Quarantine",
]
