"""Shapes of durable subscriptions."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from eventing.core.shapes import Count, Moment, PageAnswer, Positive, Shape, doc, one_of, page_of
from eventing.rest.shapes import HistoryAnswer, LeaseAnswer


class SinkCredentialShown(Shape):
    """A credential of a CloudEvents sink, without its secret."""

    type: Annotated[str, one_of("PLAIN", "ACCESSTOKEN")]
    identifier: Annotated[str, doc("Account of a plain credential; empty for a token.")]
    expires_at: Annotated[Moment | None, doc("When a token expires; null: never.")]


class DeliveryMode(Shape):
    """Delivery of events to the subscriber; the members after `mode` are those of an endpoint, without secrets."""

    mode: Annotated[str, doc("`pull`, `webhook`, `cloudevents-http`, or `ws-eventing`, which a SOAP client states.")]
    url: Annotated[str | UnsetType, doc("Address of the endpoint, without its query.")] = UNSET
    format: Annotated[
        str | UnsetType,
        doc("`structured`, `binary`, `batch` or `raw`; of WS-Eventing `2004`, `2011` or `2011-wrapped`."),
    ] = UNSET
    ordered: Annotated[bool | UnsetType, doc("Whether an event is sent after the one before it is settled.")] = UNSET
    in_flight: Annotated[Positive | UnsetType, doc("Requests at once.")] = UNSET
    batch: Annotated[Positive | UnsetType, doc("Most events of a request.")] = UNSET
    headers: Annotated[list[str] | UnsetType, doc("Names of the custom headers.")] = UNSET
    signature: Annotated[str | UnsetType, doc("`v1`, `v1a` or `both`, of Standard Webhooks.")] = UNSET
    verification: Annotated[str | UnsetType, doc("How the endpoint consents: `challenge` or `cloudevents`.")] = UNSET
    max_attempts: Annotated[
        Positive | UnsetType | None,
        doc("Attempts after which an event is a dead letter; null: the endpoint is paused."),
    ] = UNSET
    rate: Annotated[Positive | UnsetType, doc("Most requests a minute that the owner wants.")] = UNSET
    client_certificate: Annotated[
        str | UnsetType, doc("Fingerprint of the client certificate: `sha256:` and hexadecimal digits.")
    ] = UNSET
    warn_url: Annotated[str | UnsetType, doc("Address that is warned of a pause, without its query.")] = UNSET
    credential: Annotated[
        SinkCredentialShown | UnsetType, doc("Credential by the CloudEvents Subscriptions API, without its secret.")
    ] = UNSET


class SubscriptionMembers(Shape):
    """Members of a durable subscription that answers and administrative events share."""

    id: str
    owner: Annotated[str, doc("Identity that may read and acknowledge.")]
    version: Annotated[Positive, doc("Increases with every change; the ETag.")]
    history: HistoryAnswer
    deliver: DeliveryMode
    lease: LeaseAnswer


class SubscriptionData(SubscriptionMembers):
    """A durable subscription."""

    at: Annotated[str, doc("Id of the rendezvous point read.")]


class SubscriptionLinks(Shape):
    """URLs of a subscription's resources."""

    events: str
    ack: str
    renew: str
    rp: str


class SharedState(Shape):
    """The state of a subscription that several domains hold."""

    keeper: Annotated[str, doc("The domain where it was created.")]
    holders: Annotated[list[str], doc("The domains that hold it, in the order of succession.")]
    delivers: Annotated[str | None, doc("The domain that delivers now; null: not known.")]
    term: Count
    acked: Annotated[dict[str, int], doc("The acknowledged sequence of each feed.")]


class SubscriptionAnswer(SubscriptionMembers):
    """A durable subscription, with its acknowledged cursor and lag."""

    rp: Annotated[str, doc("Id of the rendezvous point read.")]
    cursor: Annotated[str, doc("Cursor that its owner has acknowledged.")]
    lag: Annotated[Count, doc("Events of the log after the acknowledged cursor, lost ones included.")]
    lost: Annotated[Count, doc("Of these, events that are lost: the gap that the next read reports.")]
    shared: Annotated[SharedState | None, doc("null: only this domain holds it.")]
    created_at: Moment
    links: SubscriptionLinks
    notice: Annotated[str | UnsetType, doc("Sentence for people: what is deleted, and when. Not in lists.")] = UNSET


SubscriptionPage = page_of(SubscriptionAnswer)


class SubscriptionListing(PageAnswer):
    """A page of the domain's subscriptions."""

    items: list[SubscriptionAnswer]
    complete: Annotated[bool, doc("Whether the order covers all subscriptions that match.")]
