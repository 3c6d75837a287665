"""All tables of the app, for Django. Other modules import models from their subjects."""

from __future__ import annotations

from eventing.access.models import DomainKey, PolicyIssuer, Revocation
from eventing.audit.models import AuditEntry
from eventing.intakes.models import Intake
from eventing.membership.models import (
    DirectoryDomain,
    GrantedSponsorship,
    OverlayFounder,
    OverlayLink,
    OverlayMembership,
)
from eventing.operations.models import Alarm, DomainDrain
from eventing.operations.notification.models import AlarmNotice, ContactPoint
from eventing.operations.placement.models import (
    InvitationReceived,
    PlacedReplicaRow,
    PlacementBounds,
    PlacementDecision,
    PlannerRecord,
    StandingPolicy,
)
from eventing.outbox.models import OutboxEntry
from eventing.peering.models import (
    Acquaintance,
    DomainDocument,
    Evidence,
    EvidenceSpread,
    Misbehaviour,
    Peer,
    PeerDelivery,
    Quarantine,
)
from eventing.periodic.models import PeriodicTask
from eventing.replication.models import (
    ElectorState,
    HomeConsent,
    HomeProof,
    ReplicaAdmission,
    ReplicaEnd,
    ReplicaLink,
    SealHead,
)
from eventing.reports.models import ReportRun
from eventing.rest.idempotency_model import IdempotencyRecord
from eventing.rps.models import DomainWatches, RendezvousPoint
from eventing.subscriptions.models import SharedSubscription, Subscription
from eventing.subscriptions.push.models import PushDeadLetter, PushEndpoint

__all__ = [
    "Acquaintance",
    "Alarm",
    "AlarmNotice",
    "AuditEntry",
    "ContactPoint",
    "DirectoryDomain",
    "DomainDocument",
    "DomainDrain",
    "DomainKey",
    "DomainWatches",
    "ElectorState",
    "Evidence",
    "EvidenceSpread",
    "GrantedSponsorship",
    "HomeConsent",
    "HomeProof",
    "IdempotencyRecord",
    "Intake",
    "InvitationReceived",
    "Misbehaviour",
    "OutboxEntry",
    "OverlayFounder",
    "OverlayLink",
    "OverlayMembership",
    "Peer",
    "PeerDelivery",
    "PeriodicTask",
    "PlacedReplicaRow",
    "PlacementBounds",
    "PlacementDecision",
    "PlannerRecord",
    "PolicyIssuer",
    "PushDeadLetter",
    "PushEndpoint",
    "Quarantine",
    "RendezvousPoint",
    "ReplicaAdmission",
    "ReplicaEnd",
    "ReplicaLink",
    "ReportRun",
    "Revocation",
    "SealHead",
    "SharedSubscription",
    "StandingPolicy",
    "Subscription",
]
