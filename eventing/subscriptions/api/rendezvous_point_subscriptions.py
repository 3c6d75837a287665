"""/api/v1/rps/{id}/subscriptions: the durable subscriptions at a rendezvous point."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.roles import reads_only
from eventing.rest import documents as docs
from eventing.rest.base import View, etag, page_answer
from eventing.rest.idempotency import created_once
from eventing.rest.idempotency_records import IdempotencyClaim
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require
from eventing.subscriptions.api import representations
from eventing.subscriptions.api.requests import SubscriptionCreationSerializer
from eventing.subscriptions.selectors.subscription_lists import subscriptions_behind
from eventing.subscriptions.selectors.subscriptions import subscription_get, subscriptions_page
from eventing.subscriptions.services.subscriptions import subscription_create
from eventing.subscriptions.shapes import SubscriptionAnswer, SubscriptionPage


class RendezvousPointSubscriptionsView(View):
    """List of the durable subscriptions at a rendezvous point."""

    @extend_schema(
        operation_id="rps_subscriptions_list",
        summary="List durable subscriptions",
        description="With the operation `administer` at the rendezvous point: all subscriptions; else the caller's own.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.CURSOR, docs.LIMIT],
        responses={200: SubscriptionPage},
    )
    def get(self, request: Request, reference: str) -> Response:
        """List."""
        descriptor, who = descriptor_get(reference), self.principal
        owner = None
        if not descriptor.allows(who, "administer"):
            require(descriptor, who, "subscribe")
            owner = None if reads_only(who) else who.identity
        page = subscriptions_page(at=descriptor.id, owner=owner, cursor=self.query("cursor"), limit=self.limit())
        items = [representations.subscription(one, whole=False) for one in subscriptions_behind(page.items)]
        return page_answer(page, items)

    @extend_schema(
        operation_id="rps_subscriptions_create",
        summary="Create a durable subscription",
        description="Events wait in the history while the reader is not connected, until the lease expires.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.IDEMPOTENCY_KEY, docs.ETAG, docs.LOCATION],
        request=SubscriptionCreationSerializer,
        responses={201: SubscriptionAnswer},
        examples=[
            OpenApiExample(
                "All stored events, then new ones", value={"lease_s": 86400, "from": "earliest"}, request_only=True
            ),
            OpenApiExample(
                "Only the last event", value={"history": {"max_events": 1}, "from": "last"}, request_only=True
            ),
        ],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Create."""
        body: dict[str, Any] = self.body(SubscriptionCreationSerializer)
        body["start"] = body.pop("from", "now")

        def create(claim: IdempotencyClaim | None) -> str:
            return subscription_create(reference=reference, principal=self.principal, claim=claim, **body).id

        return created_once(self, create, _created)


def _created(subscription_id: str) -> Response:
    row = subscription_get(subscription_id)
    headers = {**etag(row.version), "Location": representations.subscription_path(row.id)}
    document = representations.subscription(subscriptions_behind([row])[0])
    return Response(document, status=201, headers=headers)
