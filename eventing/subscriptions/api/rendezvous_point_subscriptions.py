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
from eventing.rest.idempotency_records import Claim
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.rps.services.permission import require
from eventing.subscriptions.api import representations
from eventing.subscriptions.api.requests import SubscriptionCreation
from eventing.subscriptions.selectors.subscription_lists import subscriptions_behind
from eventing.subscriptions.selectors.subscriptions import subscription_get, subscriptions_page
from eventing.subscriptions.services.subscriptions import subscription_create


class RendezvousPointSubscriptions(View):
    """The durable subscriptions at a rendezvous point."""

    @extend_schema(
        operation_id="rps_subscriptions_list",
        summary="List durable subscriptions",
        description="All for whoever administers the rendezvous point, their own for everybody else.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.CURSOR, docs.LIMIT],
        responses={200: docs.ref("SubscriptionPage")},
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
        description="Its events wait in the history while you are away, until its lease ends.",
        parameters=[docs.REFERENCE_BEFORE_ACTION, docs.IDEMPOTENCY_KEY, docs.ETAG, docs.LOCATION],
        request=SubscriptionCreation,
        responses={201: docs.ref("Subscription")},
        examples=[
            OpenApiExample(
                "Everything there is, then what comes", value={"lease_s": 86400, "from": "earliest"}, request_only=True
            ),
            OpenApiExample(
                "The last event only", value={"history": {"max_events": 1}, "from": "last"}, request_only=True
            ),
        ],
    )
    def post(self, request: Request, reference: str) -> Response:
        """Create."""
        body: dict[str, Any] = self.body(SubscriptionCreation)
        body["start"] = body.pop("from", "now")

        def create(claim: Claim | None) -> str:
            return subscription_create(reference=reference, principal=self.principal, claim=claim, **body).id

        return created_once(self, create, _created)


def _created(subscription_id: str) -> Response:
    row = subscription_get(subscription_id)
    headers = {**etag(row.version), "Location": representations.subscription_path(row.id)}
    document = representations.subscription(subscriptions_behind([row])[0])
    return Response(document, status=201, headers=headers)
