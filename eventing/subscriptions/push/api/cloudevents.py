"""/api/v1/cloudevents/subscriptions: the CloudEvents Subscriptions API 0.1-wip over durable subscriptions.

A subscription has the same id in both interfaces: /api/v1/subscriptions/ID/endpoint, attempts, renew and the others are for it too.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from msgspec import UNSET
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.core.errors import Forbidden, InvalidRequest, NotFound
from eventing.core.roles import oversees
from eventing.rest import documents as docs
from eventing.rest.base import View, etag
from eventing.rest.idempotency import created_once
from eventing.rest.idempotency_records import IdempotencyClaim
from eventing.rest.paths import BASE
from eventing.rest.shapes import LeaseAnswer
from eventing.rps.selectors.descriptors import descriptor_get
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.push.api.access import managed
from eventing.subscriptions.push.api.cloudevents_requests import CloudEventsSubscriptionRequestSerializer
from eventing.subscriptions.push.rules.cloudevents_subscriptions import PROTOCOL, SETTINGS, deliver_of, settings_shown
from eventing.subscriptions.push.rules.credentials import ACCESS_TOKEN, BEARER, CREDENTIAL_TYPES
from eventing.subscriptions.push.rules.options import CLOUDEVENTS_HTTP
from eventing.subscriptions.push.selectors import endpoints_of
from eventing.subscriptions.push.shapes import (
    CloudEventsConfig,
    CloudEventsCredential,
    CloudEventsFeaturesAnswer,
    CloudEventsSettings,
    CloudEventsSubscriptionAnswer,
)
from eventing.subscriptions.selectors.subscriptions import subscription_get
from eventing.subscriptions.services.subscriptions import (
    subscription_create,
    subscription_delete,
    subscription_renew,
    subscription_update,
)

PATH = f"{BASE}/cloudevents/subscriptions"
LINK = OpenApiParameter(
    "Link", str, OpenApiParameter.HEADER, response=[200], description="The next page, `rel=next`; absent on the last."
)
EXAMPLES = [
    OpenApiExample(
        "Structured events",
        value={
            "config": {"rp": docs.ID_EXAMPLE},
            "protocol": "HTTP",
            "sink": "https://app.example.org/events",
            "lease_s": 86400,
        },
        request_only=True,
    ),
    OpenApiExample(
        "Binary mode, with a token",
        value={
            "config": {"rp": "/example.org/sensors/roof/", "from": "earliest"},
            "protocol": "HTTP",
            "protocolsettings": {"format": "binary", "headers": {"X-Tenant": "a"}},
            "sink": "https://app.example.org/events",
            "sinkcredential": {
                "credentialtype": "ACCESSTOKEN",
                "accesstoken": "mF_9.B5f-4.1JqM",
                "accesstokenexpiresutc": "2030-01-01T00:00:00Z",
            },
        },
        request_only=True,
    ),
]
_FEATURES = CloudEventsFeaturesAnswer(
    protocols=[PROTOCOL],
    filters=[],
    credentialtypes=list(CREDENTIAL_TYPES),
    protocolsettings=["method", *SETTINGS],
    config=["rp", "from"],
    extensions=["lease_s", "lease"],
)


class _Discoverable(View):
    http_method_names = ["get", "head", "post", "put", "delete", "options"]

    def options(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        """Describe the features."""
        return Response(_FEATURES, headers={"Allow": ", ".join(self.allowed_methods)})


class CloudEventsSubscriptionsView(_Discoverable):
    """The subscriptions of a principal with an endpoint of CloudEvents."""

    @extend_schema(
        operation_id="cloudevents_subscriptions_list",
        summary="List CloudEvents subscriptions",
        description="The caller's own, as an array; `Link` has the next page.",
        parameters=[docs.CURSOR, docs.LIMIT, LINK],
        responses={200: {"type": "array", "items": docs.ref("CloudEventsSubscription")}},
    )
    def get(self, request: Request) -> Response:
        """List."""
        if self.principal.narrowed and not oversees(self.principal):
            raise Forbidden("Listing your subscriptions requires a token that is not narrowed.")
        limit = self.limit()
        page = endpoints_of(self.principal.identity, CLOUDEVENTS_HTTP, cursor=self.query("cursor"), limit=limit)
        link = {"Link": f'<{PATH}?cursor={page.next}&limit={limit}>; rel="next"'} if page.next else {}
        return Response([_shown(row) for row in page.items], headers=link)

    @extend_schema(
        operation_id="cloudevents_subscriptions_create",
        summary="Create a CloudEvents subscription",
        description="Events of the rendezvous point `config.rp` are sent to `sink` once it has consented by the `OPTIONS` "
        "handshake of CloudEvents webhooks, until the lease expires.",
        parameters=[docs.IDEMPOTENCY_KEY, docs.ETAG, docs.LOCATION],
        request=CloudEventsSubscriptionRequestSerializer,
        responses={201: CloudEventsSubscriptionAnswer},
        examples=EXAMPLES,
    )
    def post(self, request: Request) -> Response:
        """Create."""
        stated = _stated(self)
        config = stated["config"]

        def create(claim: IdempotencyClaim | None) -> str:
            return subscription_create(
                reference=config["rp"],
                principal=self.principal,
                lease_s=stated.get("lease_s"),
                deliver=deliver_of(stated, None),
                start=config.get("from", "now"),
                claim=claim,
            ).id

        return created_once(self, create, _created)


class CloudEventsSubscriptionView(_Discoverable):
    """One subscription with an endpoint of CloudEvents."""

    @extend_schema(
        operation_id="cloudevents_subscriptions_get",
        summary="Retrieve a CloudEvents subscription",
        description="For the owner, and with the operation `administer` at the rendezvous point. Without secrets.",
        parameters=[docs.SUBSCRIPTION_ID, docs.ETAG],
        responses={200: CloudEventsSubscriptionAnswer},
    )
    def get(self, request: Request, subscription_id: str) -> Response:
        """Retrieve."""
        return _answer(self._managed(subscription_id))

    @extend_schema(
        operation_id="cloudevents_subscriptions_update",
        summary="Update a CloudEvents subscription",
        description="The object as a whole. A member that is written back as it was shown keeps its secret; one that is left "
        "out has its default again. `lease_s` renews the lease.",
        parameters=[docs.SUBSCRIPTION_ID, docs.IF_MATCH, docs.ETAG],
        request=CloudEventsSubscriptionRequestSerializer,
        responses={200: CloudEventsSubscriptionAnswer},
        examples=EXAMPLES,
    )
    def put(self, request: Request, subscription_id: str) -> Response:
        """Update."""
        before, stated = self._managed(subscription_id), _stated(self)
        if "from" in stated["config"] or descriptor_get(stated["config"]["rp"]).id != before.at:
            raise InvalidRequest("config cannot be changed; create another subscription.")
        subscription_update(
            subscription_id=subscription_id,
            principal=self.principal,
            changes={"deliver": deliver_of(stated, before.deliver)},
            versions=self.expected_versions(),
        )
        if stated.get("lease_s") is not None:
            subscription_renew(subscription_id=subscription_id, principal=self.principal, lease_s=stated["lease_s"])
        return _answer(subscription_get(subscription_id))

    @extend_schema(
        operation_id="cloudevents_subscriptions_delete",
        summary="End a CloudEvents subscription",
        parameters=[docs.SUBSCRIPTION_ID, docs.IF_MATCH],
        responses={200: CloudEventsSubscriptionAnswer},
    )
    def delete(self, request: Request, subscription_id: str) -> Response:
        """End; the answer is the subscription that was."""
        found = _shown(self._managed(subscription_id))
        subscription_delete(
            subscription_id=subscription_id, principal=self.principal, versions=self.expected_versions()
        )
        return Response(found)

    def _managed(self, subscription_id: str) -> Subscription:
        row = managed(subscription_id, self.principal)
        if row.deliver.get("mode") != CLOUDEVENTS_HTTP:
            raise NotFound("There is no such subscription with an endpoint of CloudEvents.")
        return row


def _stated(view: View) -> dict[str, Any]:
    stated = view.body(CloudEventsSubscriptionRequestSerializer)
    credential = dict(stated.get("sinkcredential") or {})
    if "accesstokenexpiresutc" in credential:
        credential["accesstokenexpiresutc"] = credential["accesstokenexpiresutc"].timestamp()
    return {**stated, "sinkcredential": credential or None}


def _created(subscription_id: str) -> Response:
    row = subscription_get(subscription_id)
    return Response(_shown(row), status=201, headers={**etag(row.version), "Location": f"{PATH}/{row.id}"})


def _answer(row: Subscription) -> Response:
    return Response(_shown(row), headers=etag(row.version))


def _shown(row: Subscription) -> CloudEventsSubscriptionAnswer:
    credential = row.deliver.get("credential")
    return CloudEventsSubscriptionAnswer(
        id=row.id,
        sink=row.deliver["url"],
        protocol=PROTOCOL,
        protocolsettings=CloudEventsSettings(**settings_shown(row.deliver)),
        config=CloudEventsConfig(rp=row.at),
        lease=LeaseAnswer.of(row),
        sinkcredential=_credential(credential) if credential else UNSET,
    )


def _credential(shown: dict[str, Any]) -> CloudEventsCredential:
    if shown["type"] == ACCESS_TOKEN:
        return CloudEventsCredential(ACCESS_TOKEN, accesstokenexpiresutc=shown["expires_at"], accesstokentype=BEARER)
    return CloudEventsCredential(shown["type"], identifier=shown["identifier"])
