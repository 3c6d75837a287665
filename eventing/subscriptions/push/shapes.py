"""Shapes of push: endpoints, attempts, dead letters."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from eventing.core.shapes import Base64, Count, Moment, PageAnswer, Positive, Shape, doc, one_of, page_of
from eventing.rest.shapes import LeaseAnswer
from eventing.subscriptions.push.rules.endpoint_states import EndpointState
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict


class EndpointMembers(Shape):
    """Members of an endpoint that answers and administrative events share."""

    state: Annotated[str, one_of(*(one.value for one in EndpointState))]
    reason: Annotated[str, doc("Last failure, or the reason of the pause, as a code; empty: none.")]
    failures: Annotated[Count, doc("Failed attempts in a row.")]
    failing_since: Annotated[Moment | None, doc("First of these attempts.")]
    next_at: Annotated[Moment | None, doc("Next attempt; null: at once, or none.")]
    state_at: Annotated[Moment, doc("Since when the endpoint is in this state.")]


class EndpointChangeData(EndpointMembers):
    """The endpoint of a push subscription is in another state."""

    subscription: str
    owner: str
    endpoint: str


class RequestFiguresAnswer(Shape):
    """Figures of the last requests with events, 50 at most."""

    requests: Count
    delivered: Annotated[Count, doc("Those that were accepted.")]
    p95_ms: Annotated[Count | None, doc("Milliseconds within which 95 of 100 had an outcome; null: no requests.")]


class PushEndpointAnswer(EndpointMembers):
    """The endpoint of a push subscription."""

    url: Annotated[str, doc("Address, without its query.")]
    verified: Annotated[bool, doc("Whether the endpoint has consented.")]
    public_key: Annotated[str, doc("Key of the signatures v1a: `whpk_BASE64`.")]
    secrets: Annotated[Count, doc("Secrets that sign now: two during a rotation.")]
    allowed_rate: Annotated[Positive | None, doc("Requests a minute that the endpoint allows; null: no bound.")]
    dead_letters: Count
    cursor: Annotated[str, doc("Acknowledged cursor: everything up to it was delivered or given up.")]
    lag: Annotated[Count, doc("Events of the log after the acknowledged cursor.")]
    recent: RequestFiguresAnswer


class ListedEndpointAnswer(EndpointMembers):
    """An endpoint in the list of all."""

    subscription: str
    rp: Annotated[str, doc("Id of the rendezvous point whose events are sent.")]
    owner: Annotated[str, doc("Identity of the subscription's owner.")]
    mode: Annotated[str, doc("`mode` of the subscription's `deliver`.")]
    url: Annotated[str, doc("Address, without its query.")]
    cursor: Annotated[str, doc("Acknowledged cursor.")]
    lag: Annotated[Count, doc("Events of the log after the acknowledged cursor.")]
    lost: Annotated[Count, doc("Of these, events that are lost.")]
    dead_letters: Count
    recent: RequestFiguresAnswer


class EndpointListing(PageAnswer):
    """A page of the endpoints."""

    items: list[ListedEndpointAnswer]
    complete: Annotated[bool, doc("Whether the order covers all endpoints that match.")]


class EndpointPageAnswer(Shape):
    """A link to an endpoint's page."""

    url: Annotated[
        str, doc("Address of the page. Whoever opens it first looks after the endpoint: treat it as a password.")
    ]
    expires_at: Annotated[Moment, doc("Until when the link can be opened, once.")]


class CloudEventsSettings(Shape):
    """Settings of the protocol HTTP: those of the specification, and Herald's as extensions."""

    method: str
    headers: Annotated[dict[str, str], doc("Custom headers; values are never shown.")]
    format: str
    ordered: bool
    in_flight: Positive
    batch: Positive
    signature: str
    max_attempts: Positive | None
    rate: Annotated[Positive | UnsetType, doc("Most requests a minute that the owner wants.")] = UNSET
    client_certificate: Annotated[str | UnsetType, doc("Fingerprint of the client certificate.")] = UNSET
    warn_url: Annotated[str | UnsetType, doc("Address that is warned of a pause, without its query.")] = UNSET


class CloudEventsCredential(Shape):
    """A credential of a sink, without its secret."""

    credentialtype: Annotated[str, one_of("PLAIN", "ACCESSTOKEN")]
    identifier: str | UnsetType = UNSET
    accesstokenexpiresutc: Moment | UnsetType = UNSET
    accesstokentype: str | UnsetType = UNSET


class CloudEventsConfig(Shape):
    """The source of the events."""

    rp: Annotated[str, doc("Id of the rendezvous point.")]


class CloudEventsSubscriptionAnswer(Shape):
    """A subscription of the CloudEvents Subscriptions API."""

    id: str
    sink: Annotated[str, doc("Address of the endpoint, without its query.")]
    protocol: Annotated[str, one_of("HTTP")]
    protocolsettings: CloudEventsSettings
    config: CloudEventsConfig
    lease: Annotated[LeaseAnswer, doc("Extension: the subscription ends with its lease.")]
    sinkcredential: CloudEventsCredential | UnsetType = UNSET


class CloudEventsFeaturesAnswer(Shape):
    """Features of the CloudEvents Subscriptions API here."""

    protocols: list[str]
    filters: Annotated[list[str], doc("Dialects of filters: none.")]
    credentialtypes: list[str]
    protocolsettings: list[str]
    config: list[str]
    extensions: Annotated[list[str], doc("Further members of a subscription.")]


class AttemptAnswer(Shape):
    """An attempt to deliver."""

    at: Moment
    what: Annotated[str, one_of("event", "consent", "test", "replay", "warning")]
    epoch: Annotated[str, doc("Epoch of the events sent; empty: none of the log.")]
    first: Annotated[Count, doc("First offset sent.")]
    last: Annotated[Count, doc("Last offset sent.")]
    number: Annotated[Count, doc("Number of this attempt for these events.")]
    verdict: Annotated[str, one_of(*(one.value for one in AttemptVerdict))]
    reason: Annotated[str, doc("Status of the answer, or the failure, as a code.")]
    took_ms: Count
    address: Annotated[str, doc("Address that was connected to; empty: none.")]
    excerpt: Annotated[Base64, doc("The begin of the answer's body.")]
    message: Annotated[str, doc("The field `webhook-id`.")]


class AttemptsAnswer(Shape):
    """The last attempts of a subscription, the newest first."""

    items: list[AttemptAnswer]


class DeadLetterAnswer(Shape):
    """Events that delivery gave up."""

    id: Positive
    epoch: str
    first: Annotated[Count, doc("First offset.")]
    last: Annotated[Count, doc("Last offset.")]
    reason: Annotated[str, doc("Last failure as a code; `history-trimmed`: the log no longer has the events.")]
    attempts: Count
    replay: Annotated[bool, doc("Whether they are about to be sent again.")]
    created_at: Moment


DeadLetterPage = page_of(DeadLetterAnswer)


class QueuedReplaysAnswer(Shape):
    """Events that are sent again."""

    dead_letters: Annotated[Count, doc("Dead letters, or ranges, that were queued.")]


class EndpointTestAnswer(Shape):
    """A test event that is sent."""

    id: Annotated[str, doc("Id of the event; its attempt is in the list of attempts.")]
