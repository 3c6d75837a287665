"""Addresses below /api/v1/. Those of the hot path (events, stream, ack) never come here: eventing/gateway/router.py."""

from __future__ import annotations

from django.urls import path, re_path, register_converter

from eventing.access.api.delegation import Biscuits
from eventing.access.api.keys import KeyRetirements, KeyRotations, Keys
from eventing.access.api.revocations import Revocation, Revocations
from eventing.access.api.tokens import Tokens
from eventing.audit.api.audit import Audit, AuditExport
from eventing.openapi import Schema
from eventing.operations.api.alarms import AlarmAcknowledgements, Alarms, DomainWatches
from eventing.operations.api.limits import LimitsView
from eventing.operations.api.listings import Leases, Names, Subscriptions
from eventing.operations.api.sessions import Session, SessionDisconnections, Sessions
from eventing.peering.api.evidence import Evidence, EvidenceList
from eventing.peering.api.misbehaviour import Misbehaviour, Quarantine, Quarantines
from eventing.peering.api.peer_operating import PeerRenewal
from eventing.peering.api.peers import Peer, PeerApprovals, PeerLooks, PeerResumptions, Peers, PeerSuspensions
from eventing.replication.api.deliveries import PeerDelivery, PeerLinks, Spread
from eventing.replication.api.peer_operating import PeerReplays, PeerRetries
from eventing.replication.api.proofs import EventProof
from eventing.replication.api.replicas import RendezvousPointReplicas, Replica, Replicas
from eventing.reports.api.reports import Report, Reports, ReportTables
from eventing.rest.problems import unknown_path
from eventing.rps.api.operating import RendezvousPointPause, RendezvousPointResumption, RendezvousPointTrim
from eventing.rps.api.policy import PolicyExplanation
from eventing.rps.api.rendezvous_points import RendezvousPoint, RendezvousPointRenewal, RendezvousPoints
from eventing.subscriptions.api.rendezvous_point_subscriptions import RendezvousPointSubscriptions
from eventing.subscriptions.api.subscriptions import Subscription, SubscriptionRenewal


class Reference:
    """An id or a name, to the end of the path. A name begins and ends in a slash; the last may be left out here."""

    regex = r".+"

    def to_python(self, value: str) -> str:
        """The reference as it is."""
        return value

    def to_url(self, value: str) -> str:
        """The reference as it is."""
        return value


class ReferenceBeforeAction(Reference):
    """An id, or a name with its last slash, so that the action after it is never part of the name."""

    regex = r"(?:[a-z2-7]{26}(?:\.admin)?|domain\.admin|.*/)"


register_converter(Reference, "reference")
register_converter(ReferenceBeforeAction, "reference_before_action")

urlpatterns = [
    path("schema", Schema.as_view(), name="schema"),
    path("limits", LimitsView.as_view(), name="limits"),
    path("alarms", Alarms.as_view(), name="alarms"),
    path("alarms/<str:alarm_id>/acknowledge", AlarmAcknowledgements.as_view(), name="alarm-acknowledgements"),
    path("watches", DomainWatches.as_view(), name="watches"),
    path("audit", Audit.as_view(), name="audit"),
    path("audit/export", AuditExport.as_view(), name="audit-export"),
    path("evidence", EvidenceList.as_view(), name="evidence-list"),
    path("evidence/<str:digest>", Evidence.as_view(), name="evidence"),
    path("leases", Leases.as_view(), name="leases"),
    path("names", Names.as_view(), name="names"),
    path("sessions", Sessions.as_view(), name="sessions"),
    path("sessions/disconnect", SessionDisconnections.as_view(), name="session-disconnections"),
    path("sessions/<str:session_id>", Session.as_view(), name="session"),
    path("misbehaviour", Misbehaviour.as_view(), name="misbehaviour"),
    path("quarantines", Quarantines.as_view(), name="quarantines"),
    path("quarantines/<str:origin>", Quarantine.as_view(), name="quarantine"),
    path("tokens", Tokens.as_view(), name="tokens"),
    path("tokens/biscuit", Biscuits.as_view(), name="tokens-biscuit"),
    path("keys", Keys.as_view(), name="keys"),
    path("keys/rotate", KeyRotations.as_view(), name="key-rotations"),
    path("keys/<str:kid>/retire", KeyRetirements.as_view(), name="key-retirements"),
    path("peers", Peers.as_view(), name="peers"),
    path("peers/look", PeerLooks.as_view(), name="peer-looks"),
    path("peers/<str:name>", Peer.as_view(), name="peer"),
    path("peers/<str:name>/delivery", PeerDelivery.as_view(), name="peer-delivery"),
    path("peers/<str:name>/approve", PeerApprovals.as_view(), name="peer-approvals"),
    path("peers/<str:name>/links", PeerLinks.as_view(), name="peer-links"),
    path("peers/<str:name>/renew", PeerRenewal.as_view(), name="peer-renewal"),
    path("peers/<str:name>/replay", PeerReplays.as_view(), name="peer-replays"),
    path("peers/<str:name>/retry", PeerRetries.as_view(), name="peer-retries"),
    path("peers/<str:name>/suspend", PeerSuspensions.as_view(), name="peer-suspensions"),
    path("peers/<str:name>/resume", PeerResumptions.as_view(), name="peer-resumptions"),
    path("reports", Reports.as_view(), name="reports"),
    path("reports/<str:run_id>", Report.as_view(), name="report"),
    path("reports/<str:run_id>/table/<str:table>", ReportTables.as_view(), name="report-table"),
    path("replicas", Replicas.as_view(), name="replicas"),
    path("replicas/<str:reference>", Replica.as_view(), name="replica"),
    path("revocations", Revocations.as_view(), name="revocations"),
    path("revocations/<str:revocation_id>", Revocation.as_view(), name="revocation"),
    path("rps", RendezvousPoints.as_view(), name="rps"),
    path("rps/<reference_before_action:reference>/pause", RendezvousPointPause.as_view(), name="rp-pause"),
    path("rps/<reference_before_action:reference>/resume", RendezvousPointResumption.as_view(), name="rp-resumption"),
    path("rps/<reference_before_action:reference>/trim", RendezvousPointTrim.as_view(), name="rp-trim"),
    path("rps/<reference_before_action:reference>/proof", EventProof.as_view(), name="rp-proof"),
    path("rps/<reference_before_action:reference>/renew", RendezvousPointRenewal.as_view(), name="rp-renewal"),
    path("rps/<reference_before_action:reference>/replicas", RendezvousPointReplicas.as_view(), name="rp-replicas"),
    path("rps/<reference_before_action:reference>/spread", Spread.as_view(), name="rp-spread"),
    path(
        "rps/<reference_before_action:reference>/subscriptions",
        RendezvousPointSubscriptions.as_view(),
        name="rp-subscriptions",
    ),
    path(
        "rps/<reference_before_action:reference>/policy/explain", PolicyExplanation.as_view(), name="policy-explanation"
    ),
    path("rps/<reference:reference>", RendezvousPoint.as_view(), name="rp"),
    path("subscriptions", Subscriptions.as_view(), name="subscriptions"),
    path("subscriptions/<str:subscription_id>", Subscription.as_view(), name="subscription"),
    path("subscriptions/<str:subscription_id>/renew", SubscriptionRenewal.as_view(), name="subscription-renewal"),
    re_path(r"", unknown_path),  # reversing any name reads all patterns, and cannot read every regular expression
]
