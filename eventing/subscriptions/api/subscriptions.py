"""/api/v1/subscriptions: durable subscriptions. Reads and acknowledgements are in eventing/gateway/endpoints/pull.py."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.rest import documents as docs
from eventing.rest.base import View, etag
from eventing.rest.fields import LeaseRequestSerializer
from eventing.rest.shapes import RenewalAnswer
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.subscriptions.api import representations
from eventing.subscriptions.api.requests import SubscriptionChangeSerializer
from eventing.subscriptions.models import Subscription as SubscriptionRow
from eventing.subscriptions.selectors.subscription_lists import subscriptions_behind
from eventing.subscriptions.selectors.subscriptions import subscription_get
from eventing.subscriptions.services.permission import require_managed
from eventing.subscriptions.services.subscriptions import subscription_delete, subscription_renew, subscription_update
from eventing.subscriptions.shapes import SubscriptionAnswer


class SubscriptionView(View):
    """One durable subscription."""

    @extend_schema(
        operation_id="subscriptions_get",
        summary="Describe a durable subscription",
        description="For the owner, and with the operation `administer` at the rendezvous point. `ETag` is the version.",
        parameters=[docs.SUBSCRIPTION_ID, docs.ETAG],
        responses={200: SubscriptionAnswer},
    )
    def get(self, request: Request, subscription_id: str) -> Response:
        """Describe."""
        row = subscription_get(subscription_id)
        require_managed(row, descriptor_get(row.at), self.principal)
        return _answer(row)

    @extend_schema(
        operation_id="subscriptions_change",
        summary="Change a durable subscription",
        description="Absent members stay as they are. With `If-Match` the change applies only to the versions that it "
        "names.",
        parameters=[docs.SUBSCRIPTION_ID, docs.IF_MATCH, docs.ETAG],
        request=SubscriptionChangeSerializer,
        responses={200: SubscriptionAnswer},
        examples=[OpenApiExample("Keep fewer events", value={"history": {"max_age_s": 3600}}, request_only=True)],
    )
    def patch(self, request: Request, subscription_id: str) -> Response:
        """Change."""
        row = subscription_update(
            subscription_id=subscription_id,
            principal=self.principal,
            changes=self.body(SubscriptionChangeSerializer),
            versions=self.expected_versions(),
        )
        return _answer(row)

    @extend_schema(
        operation_id="subscriptions_delete",
        summary="End a durable subscription",
        parameters=[docs.SUBSCRIPTION_ID, docs.IF_MATCH],
        responses={204: None},
    )
    def delete(self, request: Request, subscription_id: str) -> Response:
        """End."""
        subscription_delete(
            subscription_id=subscription_id, principal=self.principal, versions=self.expected_versions()
        )
        return Response(status=204)


class SubscriptionRenewalView(View):
    """The lease of a durable subscription."""

    @extend_schema(
        operation_id="subscriptions_renew",
        summary="Renew a durable subscription's lease",
        description="The lease counts from now and never ends earlier than before.",
        parameters=[docs.SUBSCRIPTION_ID],
        request=LeaseRequestSerializer,
        responses={200: RenewalAnswer},
        examples=[OpenApiExample("One day", value={"lease_s": 86400}, request_only=True)],
    )
    def post(self, request: Request, subscription_id: str) -> Response:
        """Renew."""
        body = self.body(LeaseRequestSerializer)
        lease = subscription_renew(subscription_id=subscription_id, principal=self.principal, **body)
        return Response(RenewalAnswer(lease=lease))


def _answer(row: SubscriptionRow) -> Response:
    document = representations.subscription(subscriptions_behind([row])[0])
    return Response(document, headers=etag(row.version))
