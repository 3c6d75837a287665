"""URL patterns below /api/v1/. Those of the hot path (events, stream, ack) never arrive here:
eventing/gateway/router.py.
"""

from __future__ import annotations

from django.urls import path, re_path, register_converter

from eventing.access.api.delegation import BiscuitsView
from eventing.access.api.keys import KeyRetirementsView, KeyRotationsView, KeysView
from eventing.access.api.revocations import RevocationsView, RevocationView
from eventing.access.api.tokens import TokensView
from eventing.asyncapi import AsyncApiView
from eventing.audit.api.audit import AuditExportView, AuditListView
from eventing.intakes.api.intakes import IntakeRenewalView, IntakeView, RendezvousPointIntakesView
from eventing.membership.api.overlay import (
    OverlayDomainsView,
    OverlayDomainView,
    OverlayFoundingsView,
    OverlayJoinsView,
    OverlayLeavesView,
    OverlayLinksView,
    OverlayView,
)
from eventing.openapi import SchemaView
from eventing.operations.api.alarms import (
    AlarmAcknowledgementsView,
    AlarmMutesView,
    AlarmsView,
    AlarmUnmutesView,
    DomainWatchesView,
)
from eventing.operations.api.draining import DrainPreviewView, DrainView
from eventing.operations.api.limits import LimitsView
from eventing.operations.api.listings import EndpointsView, LeasesView, NameTreeView, SubscriptionsView
from eventing.operations.api.sessions import SessionDisconnectionsView, SessionsView, SessionView
from eventing.operations.notification.api.contact_points import (
    ContactPointsView,
    ContactPointTestsView,
    ContactPointView,
)
from eventing.operations.placement.api.plan import (
    DecisionApprovalView,
    DecisionRejectionView,
    DecisionsView,
    DecisionView,
    InvitationsView,
    PlanLoadsView,
    PlanOfRpView,
    PlanPreviewView,
    PlanView,
)
from eventing.peering.api.evidence import EvidenceListView, EvidenceView
from eventing.peering.api.misbehaviour import MisbehaviourView, QuarantinesView, QuarantineView
from eventing.peering.api.peer_operating import PeerRenewalView
from eventing.peering.api.peers import (
    PeerApprovalsView,
    PeerLooksView,
    PeerResumptionsView,
    PeerSuspensionsView,
    PeersView,
    PeerView,
)
from eventing.replication.api.deliveries import (
    PeerDeliveryView,
    PeerLinksView,
    PeerReplaysView,
    PeerRetriesView,
    SpreadView,
)
from eventing.replication.api.home_list import HomesView
from eventing.replication.api.homes import RendezvousPointMoveView, RendezvousPointSuccessionView
from eventing.replication.api.paths import EventPathView
from eventing.replication.api.proofs import EventProofView
from eventing.replication.api.reliability import ReliabilityView
from eventing.replication.api.replicas import RendezvousPointReplicasView, ReplicasView, ReplicaView
from eventing.replication.api.routes import RoutesOfRpView, RoutesView
from eventing.reports.api.reports import ReportsView, ReportTablesView, ReportView
from eventing.rest.problems import unknown_path
from eventing.rps.api.operating import RendezvousPointPauseView, RendezvousPointResumptionView, RendezvousPointTrimView
from eventing.rps.api.policy import PolicyExplanationView
from eventing.rps.api.rendezvous_points import RendezvousPointRenewalView, RendezvousPointsView, RendezvousPointView
from eventing.subscriptions.api.rendezvous_point_subscriptions import RendezvousPointSubscriptionsView
from eventing.subscriptions.api.subscriptions import SubscriptionRenewalView, SubscriptionView
from eventing.subscriptions.push.api.cloudevents import CloudEventsSubscriptionsView, CloudEventsSubscriptionView
from eventing.subscriptions.push.api.deliveries import AttemptsView, DeadLettersView, ReplayView
from eventing.subscriptions.push.api.endpoints import (
    EndpointPageView,
    EndpointPauseView,
    EndpointResumeView,
    EndpointSecretView,
    EndpointTestView,
    EndpointView,
)
from eventing.subscriptions.push.api.ws_eventing import EventSourceView, SubscriptionManagerView


class Reference:
    """An id or a name, to the end of the path. A name begins and ends in a slash; the last may be left out here."""

    regex = r".+"

    def to_python(self, value: str) -> str:
        """Return the reference unchanged."""
        return value

    def to_url(self, value: str) -> str:
        """Return the reference unchanged."""
        return value


class ReferenceBeforeAction(Reference):
    """An id, or a name with its last slash, so that the action after it is never part of the name."""

    regex = r"(?:[a-z2-7]{26}(?:\.admin)?|domain\.admin|.*/)"


register_converter(Reference, "reference")
register_converter(ReferenceBeforeAction, "reference_before_action")

urlpatterns = [
    path("schema", SchemaView.as_view(), name="schema"),
    path("asyncapi", AsyncApiView.as_view(), name="asyncapi"),
    path("drain", DrainView.as_view(), name="drain"),
    path("drain/preview", DrainPreviewView.as_view(), name="drain-preview"),
    path("limits", LimitsView.as_view(), name="limits"),
    path("alarms", AlarmsView.as_view(), name="alarms"),
    path("alarms/<str:alarm_id>/acknowledge", AlarmAcknowledgementsView.as_view(), name="alarm-acknowledgements"),
    path("alarms/<str:alarm_id>/mute", AlarmMutesView.as_view(), name="alarm-mutes"),
    path("alarms/<str:alarm_id>/unmute", AlarmUnmutesView.as_view(), name="alarm-unmutes"),
    path("contact-points", ContactPointsView.as_view(), name="contact-points"),
    path("contact-points/<str:contact_point>", ContactPointView.as_view(), name="contact-point"),
    path("contact-points/<str:contact_point>/test", ContactPointTestsView.as_view(), name="contact-point-tests"),
    path("watches", DomainWatchesView.as_view(), name="watches"),
    path("audit", AuditListView.as_view(), name="audit"),
    path("audit/export", AuditExportView.as_view(), name="audit-export"),
    path("endpoints", EndpointsView.as_view(), name="endpoints"),
    path("evidence", EvidenceListView.as_view(), name="evidence-list"),
    path("evidence/<str:digest>", EvidenceView.as_view(), name="evidence"),
    path("intakes/<str:intake_id>", IntakeView.as_view(), name="intake"),
    path("intakes/<str:intake_id>/renew", IntakeRenewalView.as_view(), name="intake-renewal"),
    path("leases", LeasesView.as_view(), name="leases"),
    path("names", NameTreeView.as_view(), name="names"),
    path("sessions", SessionsView.as_view(), name="sessions"),
    path("sessions/disconnect", SessionDisconnectionsView.as_view(), name="session-disconnections"),
    path("sessions/<str:session_id>", SessionView.as_view(), name="session"),
    path("misbehaviour", MisbehaviourView.as_view(), name="misbehaviour"),
    path("quarantines", QuarantinesView.as_view(), name="quarantines"),
    path("quarantines/<str:origin>", QuarantineView.as_view(), name="quarantine"),
    path("tokens", TokensView.as_view(), name="tokens"),
    path("tokens/biscuit", BiscuitsView.as_view(), name="tokens-biscuit"),
    path("keys", KeysView.as_view(), name="keys"),
    path("keys/rotate", KeyRotationsView.as_view(), name="key-rotations"),
    path("keys/<str:kid>/retire", KeyRetirementsView.as_view(), name="key-retirements"),
    path("overlay", OverlayView.as_view(), name="overlay"),
    path("overlay/found", OverlayFoundingsView.as_view(), name="overlay-foundings"),
    path("overlay/join", OverlayJoinsView.as_view(), name="overlay-joins"),
    path("overlay/leave", OverlayLeavesView.as_view(), name="overlay-leaves"),
    path("overlay/links", OverlayLinksView.as_view(), name="overlay-links"),
    path("overlay/domains", OverlayDomainsView.as_view(), name="overlay-domains"),
    path("overlay/domains/<str:name>", OverlayDomainView.as_view(), name="overlay-domain"),
    path("peers", PeersView.as_view(), name="peers"),
    path("peers/look", PeerLooksView.as_view(), name="peer-looks"),
    path("peers/<str:name>", PeerView.as_view(), name="peer"),
    path("peers/<str:name>/delivery", PeerDeliveryView.as_view(), name="peer-delivery"),
    path("peers/<str:name>/approve", PeerApprovalsView.as_view(), name="peer-approvals"),
    path("peers/<str:name>/links", PeerLinksView.as_view(), name="peer-links"),
    path("peers/<str:name>/renew", PeerRenewalView.as_view(), name="peer-renewal"),
    path("peers/<str:name>/replay", PeerReplaysView.as_view(), name="peer-replays"),
    path("peers/<str:name>/retry", PeerRetriesView.as_view(), name="peer-retries"),
    path("peers/<str:name>/suspend", PeerSuspensionsView.as_view(), name="peer-suspensions"),
    path("peers/<str:name>/resume", PeerResumptionsView.as_view(), name="peer-resumptions"),
    path("reports", ReportsView.as_view(), name="reports"),
    path("reports/<str:run_id>", ReportView.as_view(), name="report"),
    path("reports/<str:run_id>/table/<str:table>", ReportTablesView.as_view(), name="report-table"),
    path("replicas", ReplicasView.as_view(), name="replicas"),
    path("plan", PlanView.as_view(), name="plan"),
    path("plan/decisions", DecisionsView.as_view(), name="plan-decisions"),
    path("plan/decisions/<str:decision>", DecisionView.as_view(), name="plan-decision"),
    path("plan/decisions/<str:decision>/approve", DecisionApprovalView.as_view(), name="plan-decision-approval"),
    path("plan/decisions/<str:decision>/reject", DecisionRejectionView.as_view(), name="plan-decision-rejection"),
    path("plan/invitations", InvitationsView.as_view(), name="plan-invitations"),
    path("plan/preview", PlanPreviewView.as_view(), name="plan-preview"),
    path("plan/loads", PlanLoadsView.as_view(), name="plan-loads"),
    path("plan/homes", HomesView.as_view(), name="plan-homes"),
    path("plan/routes", RoutesView.as_view(), name="plan-routes"),
    path("plan/routes/<reference:reference>", RoutesOfRpView.as_view(), name="plan-routes-of-rp"),
    path("plan/rps/<reference:reference>", PlanOfRpView.as_view(), name="plan-of-rp"),
    path("replicas/<str:reference>", ReplicaView.as_view(), name="replica"),
    path("revocations", RevocationsView.as_view(), name="revocations"),
    path("revocations/<str:revocation_id>", RevocationView.as_view(), name="revocation"),
    path("rps", RendezvousPointsView.as_view(), name="rps"),
    path("rps/<reference_before_action:reference>/intakes", RendezvousPointIntakesView.as_view(), name="rp-intakes"),
    path("rps/<reference_before_action:reference>/pause", RendezvousPointPauseView.as_view(), name="rp-pause"),
    path(
        "rps/<reference_before_action:reference>/resume", RendezvousPointResumptionView.as_view(), name="rp-resumption"
    ),
    path("rps/<reference_before_action:reference>/trim", RendezvousPointTrimView.as_view(), name="rp-trim"),
    path("rps/<reference_before_action:reference>/path", EventPathView.as_view(), name="rp-path"),
    path("rps/<reference_before_action:reference>/proof", EventProofView.as_view(), name="rp-proof"),
    path("rps/<reference_before_action:reference>/reliability", ReliabilityView.as_view(), name="rp-reliability"),
    path("rps/<reference_before_action:reference>/renew", RendezvousPointRenewalView.as_view(), name="rp-renewal"),
    path("rps/<reference_before_action:reference>/move", RendezvousPointMoveView.as_view(), name="rp-move"),
    path(
        "rps/<reference_before_action:reference>/succession",
        RendezvousPointSuccessionView.as_view(),
        name="rp-succession",
    ),
    path("rps/<reference_before_action:reference>/replicas", RendezvousPointReplicasView.as_view(), name="rp-replicas"),
    path("rps/<reference_before_action:reference>/spread", SpreadView.as_view(), name="rp-spread"),
    path(
        "rps/<reference_before_action:reference>/subscriptions",
        RendezvousPointSubscriptionsView.as_view(),
        name="rp-subscriptions",
    ),
    path("rps/<reference_before_action:reference>/ws-eventing", EventSourceView.as_view(), name="ws-event-source"),
    path(
        "rps/<reference_before_action:reference>/policy/explain",
        PolicyExplanationView.as_view(),
        name="policy-explanation",
    ),
    path("rps/<reference:reference>", RendezvousPointView.as_view(), name="rp"),
    path("subscriptions", SubscriptionsView.as_view(), name="subscriptions"),
    path("subscriptions/<str:subscription_id>", SubscriptionView.as_view(), name="subscription"),
    path("subscriptions/<str:subscription_id>/endpoint", EndpointView.as_view(), name="endpoint"),
    path("subscriptions/<str:subscription_id>/endpoint/page", EndpointPageView.as_view(), name="endpoint-page"),
    path("subscriptions/<str:subscription_id>/endpoint/pause", EndpointPauseView.as_view(), name="endpoint-pause"),
    path("subscriptions/<str:subscription_id>/endpoint/resume", EndpointResumeView.as_view(), name="endpoint-resume"),
    path("subscriptions/<str:subscription_id>/endpoint/test", EndpointTestView.as_view(), name="endpoint-test"),
    path("subscriptions/<str:subscription_id>/endpoint/secret", EndpointSecretView.as_view(), name="endpoint-secret"),
    path("subscriptions/<str:subscription_id>/attempts", AttemptsView.as_view(), name="attempts"),
    path("subscriptions/<str:subscription_id>/dead-letters", DeadLettersView.as_view(), name="dead-letters"),
    path("subscriptions/<str:subscription_id>/replay", ReplayView.as_view(), name="replay"),
    path(
        "subscriptions/<str:subscription_id>/ws-eventing/<str:key>",
        SubscriptionManagerView.as_view(),
        name="ws-subscription-manager",
    ),
    path("cloudevents/subscriptions", CloudEventsSubscriptionsView.as_view(), name="cloudevents-subscriptions"),
    path(
        "cloudevents/subscriptions/<str:subscription_id>",
        CloudEventsSubscriptionView.as_view(),
        name="cloudevents-subscription",
    ),
    path("subscriptions/<str:subscription_id>/renew", SubscriptionRenewalView.as_view(), name="subscription-renewal"),
    re_path(r"", unknown_path),  # reversing any name reads all patterns, and cannot read every regular expression
]
