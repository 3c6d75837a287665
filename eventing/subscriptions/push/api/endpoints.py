"""/api/v1/subscriptions/{id}/endpoint: the endpoint of a push subscription, and what its owner does with it."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from eventing.rest import documents as docs
from eventing.rest.base import View
from eventing.store.push_attempts import attempts_read
from eventing.subscriptions.push.api.access import managed
from eventing.subscriptions.push.api.requests import SecretRotationSerializer
from eventing.subscriptions.push.rules.request_figures import request_figures
from eventing.subscriptions.push.rules.signatures import public_key_text, signature_key
from eventing.subscriptions.push.selectors import dead_letters_count, endpoint_get
from eventing.subscriptions.push.services.endpoints import (
    endpoint_pause,
    endpoint_resume,
    endpoint_secret_rotate,
    endpoint_test,
    secrets_signing,
)
from eventing.subscriptions.push.services.pages import page_link_create
from eventing.subscriptions.push.services.vault import signing_master
from eventing.subscriptions.push.shapes import (
    EndpointPageAnswer,
    EndpointTestAnswer,
    PushEndpointAnswer,
    RequestFiguresAnswer,
)
from eventing.subscriptions.selectors.subscription_lists import subscriptions_behind
from eventing.subscriptions.selectors.subscriptions import subscription_get


class EndpointView(View):
    """The endpoint of a subscription."""

    @extend_schema(
        operation_id="subscriptions_endpoint_get",
        summary="Describe a push subscription's endpoint",
        description="For the owner, and with the operation `administer` at the rendezvous point.",
        parameters=[docs.SUBSCRIPTION_ID],
        responses={200: PushEndpointAnswer},
    )
    def get(self, request: Request, subscription_id: str) -> Response:
        """Describe."""
        managed(subscription_id, self.principal)
        return Response(_shown(subscription_id))


class EndpointPauseView(View):
    """Pause of an endpoint."""

    @extend_schema(
        operation_id="subscriptions_endpoint_pause",
        summary="Pause an endpoint",
        description="Nothing is sent until the endpoint is resumed; events wait in the history, within its bounds.",
        parameters=[docs.SUBSCRIPTION_ID],
        request=None,
        responses={200: PushEndpointAnswer},
    )
    def post(self, request: Request, subscription_id: str) -> Response:
        """Pause."""
        endpoint_pause(subscription_id=subscription_id, principal=self.principal)
        return Response(_shown(subscription_id))


class EndpointResumeView(View):
    """End of a pause or of a wait."""

    @extend_schema(
        operation_id="subscriptions_endpoint_resume",
        summary="Resume an endpoint",
        description="A paused or failing endpoint is tried at once, with the whole retry schedule ahead; one that has not "
        "consented is asked again.",
        parameters=[docs.SUBSCRIPTION_ID],
        request=None,
        responses={200: PushEndpointAnswer},
    )
    def post(self, request: Request, subscription_id: str) -> Response:
        """Resume."""
        endpoint_resume(subscription_id=subscription_id, principal=self.principal)
        return Response(_shown(subscription_id))


class EndpointTestView(View):
    """Test events."""

    @extend_schema(
        operation_id="subscriptions_endpoint_test",
        summary="Send a test event to an endpoint",
        description="The event has the type `io.herald.webhook.test` and is signed as all are. Its attempt is in the list of "
        "attempts, with the id of the answer.",
        parameters=[docs.SUBSCRIPTION_ID],
        request=None,
        responses={202: EndpointTestAnswer},
    )
    def post(self, request: Request, subscription_id: str) -> Response:
        """Send."""
        test_id = endpoint_test(subscription_id=subscription_id, principal=self.principal)
        return Response(EndpointTestAnswer(id=test_id), status=202)


class EndpointPageView(View):
    """Links to the page of an endpoint."""

    @extend_schema(
        operation_id="subscriptions_endpoint_page",
        summary="Make a link to an endpoint's page",
        description="For a person without an account: a page with the endpoint's state, attempts and dead letters, and what its "
        "owner does with it, of this subscription alone. The link works once, and the page acts as you, for an hour at most.",
        parameters=[docs.SUBSCRIPTION_ID],
        request=None,
        responses={201: EndpointPageAnswer},
    )
    def post(self, request: Request, subscription_id: str) -> Response:
        """Make."""
        link = page_link_create(subscription_id=subscription_id, principal=self.principal)
        return Response(EndpointPageAnswer.of(link), status=201, headers={"Cache-Control": "no-store"})


class EndpointSecretView(View):
    """The secret of an endpoint's signatures."""

    @extend_schema(
        operation_id="subscriptions_endpoint_secret",
        summary="Replace the secret of an endpoint",
        description="Requests carry the signatures of both secrets until `keep_s` seconds have passed.",
        parameters=[docs.SUBSCRIPTION_ID],
        request=SecretRotationSerializer,
        responses={200: PushEndpointAnswer},
        examples=[
            OpenApiExample(
                "Both for an hour",
                value={"secret": "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldY", "keep_s": 3600},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, subscription_id: str) -> Response:
        """Replace."""
        body = self.body(SecretRotationSerializer)
        endpoint_secret_rotate(subscription_id=subscription_id, principal=self.principal, **body)
        return Response(_shown(subscription_id))


def _shown(subscription_id: str) -> PushEndpointAnswer:
    row, subscription = endpoint_get(subscription_id), subscription_get(subscription_id)
    found = subscriptions_behind([subscription])[0]
    return PushEndpointAnswer.of(
        row,
        url=str(subscription.deliver.get("url", "")),
        public_key=public_key_text(signature_key(signing_master(), subscription_id)),
        secrets=secrets_signing(row),
        dead_letters=dead_letters_count(subscription_id),
        cursor=str(found.cursor),
        lag=found.lag.events,
        recent=RequestFiguresAnswer.of(
            request_figures(
                (one.what, one.verdict, one.took_ms) for one in attempts_read(subscription.at, subscription_id)
            )
        ),
    )
