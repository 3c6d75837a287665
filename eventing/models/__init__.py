"""The control plane's tables, one file per aggregate. Rules are in `core`, reads in `selectors`, writes in `services`."""

from eventing.models.alarm import Alarm, DomainWatches
from eventing.models.audit_entry import AuditEntry
from eventing.models.domain_document import DomainDocument
from eventing.models.domain_key import DomainKey
from eventing.models.evidence import Evidence, EvidenceSpread
from eventing.models.idempotency_record import IdempotencyRecord
from eventing.models.misbehaviour import Misbehaviour
from eventing.models.outbox_entry import OutboxEntry
from eventing.models.peer import Peer
from eventing.models.peer_delivery import PeerDelivery
from eventing.models.policy_issuer import PolicyIssuer
from eventing.models.quarantine import Quarantine
from eventing.models.rendezvous_point import RendezvousPoint
from eventing.models.replica_link import ReplicaAdmission, ReplicaEnd, ReplicaLink
from eventing.models.report_run import ReportRun
from eventing.models.revocation import Revocation
from eventing.models.seal_head import SealHead
from eventing.models.shared_subscription import SharedSubscription
from eventing.models.subscription import Subscription

__all__ = [
    "Alarm",
    "AuditEntry",
    "DomainDocument",
    "DomainKey",
    "DomainWatches",
    "Evidence",
    "EvidenceSpread",
    "IdempotencyRecord",
    "Misbehaviour",
    "OutboxEntry",
    "Peer",
    "PeerDelivery",
    "PolicyIssuer",
    "Quarantine",
    "RendezvousPoint",
    "ReplicaAdmission",
    "ReplicaEnd",
    "ReplicaLink",
    "ReportRun",
    "Revocation",
    "SealHead",
    "SharedSubscription",
    "Subscription",
]
