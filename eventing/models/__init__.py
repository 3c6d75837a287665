"""The control plane's tables, one file per aggregate. Rules are in `core`, reads in `selectors`, writes in `services`."""

from eventing.models.audit_entry import AuditEntry
from eventing.models.domain_key import DomainKey
from eventing.models.idempotency_record import IdempotencyRecord
from eventing.models.outbox_entry import OutboxEntry
from eventing.models.policy_issuer import PolicyIssuer
from eventing.models.rendezvous_point import RendezvousPoint
from eventing.models.revocation import Revocation
from eventing.models.subscription import Subscription

__all__ = [
    "AuditEntry",
    "DomainKey",
    "IdempotencyRecord",
    "OutboxEntry",
    "PolicyIssuer",
    "RendezvousPoint",
    "Revocation",
    "Subscription",
]
