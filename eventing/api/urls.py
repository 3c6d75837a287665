"""Addresses below /api/v1/. Those of the hot path (events, stream, ack) never come here: eventing/edge/router.py."""

from __future__ import annotations

from django.urls import path, re_path, register_converter

from eventing.api.audit import Audit, AuditExport
from eventing.api.delegation import Biscuits
from eventing.api.keys import KeyRetirements, KeyRotations, Keys
from eventing.api.limits import LimitsView
from eventing.api.policy import PolicyExplanation
from eventing.api.problems import unknown_path
from eventing.api.rendezvous_points import (
    RendezvousPoint,
    RendezvousPointRenewal,
    RendezvousPoints,
    RendezvousPointSubscriptions,
)
from eventing.api.revocations import Revocation, Revocations
from eventing.api.schema import Schema
from eventing.api.subscriptions import Subscription, SubscriptionRenewal
from eventing.api.tokens import Tokens


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
    path("audit", Audit.as_view(), name="audit"),
    path("audit/export", AuditExport.as_view(), name="audit-export"),
    path("tokens", Tokens.as_view(), name="tokens"),
    path("tokens/biscuit", Biscuits.as_view(), name="tokens-biscuit"),
    path("keys", Keys.as_view(), name="keys"),
    path("keys/rotate", KeyRotations.as_view(), name="key-rotations"),
    path("keys/<str:kid>/retire", KeyRetirements.as_view(), name="key-retirements"),
    path("revocations", Revocations.as_view(), name="revocations"),
    path("revocations/<str:revocation_id>", Revocation.as_view(), name="revocation"),
    path("rps", RendezvousPoints.as_view(), name="rps"),
    path("rps/<reference_before_action:reference>/renew", RendezvousPointRenewal.as_view(), name="rp-renewal"),
    path(
        "rps/<reference_before_action:reference>/subscriptions",
        RendezvousPointSubscriptions.as_view(),
        name="rp-subscriptions",
    ),
    path(
        "rps/<reference_before_action:reference>/policy/explain", PolicyExplanation.as_view(), name="policy-explanation"
    ),
    path("rps/<reference:reference>", RendezvousPoint.as_view(), name="rp"),
    path("subscriptions/<str:subscription_id>", Subscription.as_view(), name="subscription"),
    path("subscriptions/<str:subscription_id>/renew", SubscriptionRenewal.as_view(), name="subscription-renewal"),
    re_path(r"", unknown_path),  # reversing any name reads all patterns, and cannot read every regular expression
]
