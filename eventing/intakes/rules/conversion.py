"""Conversion of a verified webhook into an event: its sender's names become the event's id, type, subject and time. Pure.

The sender's id of a delivery is the event's id, so that a delivery that the sender repeats is recognised by (source, id). A
sender that states none (Grafana, Alertmanager, hubs of WebSub) repeats a failed notification within seconds with the same body: equal
bodies within one minute are one event. Data is the body as received; only a form that GitHub sends is unpacked.

| format | id | type | source |
|---|---|---|---|
| github | `X-GitHub-Delivery` | `com.github.EVENT`, `.ACTION` | `repository.url`, else the intake's |
| stripe | the event's `id` | `com.stripe.TYPE` | the intake's |
| standard-webhooks | `webhook-id` | the payload's `type` | the intake's |
| grafana, alertmanager | digest of body and minute | `com.grafana.alerting.STATUS`, `io.prometheus.alertmanager.STATUS` | the intake's |
| websub | digest of body and minute; of a CloudEvent as sent | `io.herald.message`; as sent | the topic; as sent |
| cloudevents | as sent | as sent | as sent |
| plain | `Idempotency-Key`, else random | `io.herald.message` | the intake's |

Sources of the names: the CloudEvents adapter for GitHub (cloudevents/spec, adapters/github.md).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar
from urllib.parse import parse_qs

import msgspec

from eventing.core.decoding import Reader, Undecodable, json_reader
from eventing.core.errors import InvalidEvent
from eventing.core.events.cloudevents import Event
from eventing.core.events.cloudevents_attributes import SPECVERSION, is_string, is_timestamp, is_uri_reference
from eventing.core.events.cloudevents_http import WRAPPED_TYPE, EventHead, parse_body
from eventing.core.events.declared_json import media_type_of
from eventing.core.timestamps import timestamp_of
from eventing.intakes.rules.formats import ALERTMANAGER, CLOUDEVENTS, GITHUB, GRAFANA, STANDARD, STRIPE, WEBSUB
from eventing.intakes.rules.signatures import Headers

# Alertmanager and Grafana repeat a failed notification at once, and a notification that stands after minutes.
SAME_S = 60  # seconds for which equal bodies of a sender without delivery ids are one event
SUBJECT_CHARS_MAX = 1024  # bound: characters of a subject taken from a body; the event has no subject
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
_STRUCTURED = ("application/cloudevents+json", "application/cloudevents-batch+json")
_DELIVERY = re.compile(r"[!-\-/-~]{1,255}", re.ASCII)  # printable, without a full stop: Standard Webhooks signs ID.TIME
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_TYPE = re.compile(r"[A-Za-z0-9_.\-/:]{1,255}", re.ASCII)
T = TypeVar("T")


class _Repository(msgspec.Struct):
    url: str = ""


class _GitHub(msgspec.Struct):
    action: str | None = None
    repository: _Repository | None = None


class _Stripe(msgspec.Struct):
    id: str
    type: str
    created: int | None = None


class _Notification(msgspec.Struct):
    """The body of Alertmanager, and of Grafana, whose body has the same members and more."""

    status: Literal["firing", "resolved"]
    groupKey: str = ""  # noqa: N815 - as Alertmanager names it


class _Message(msgspec.Struct):
    """The payload that Standard Webhooks recommends."""

    type: str | None = None
    timestamp: str | None = None


_github, _stripe = json_reader(_GitHub), json_reader(_Stripe)
_notification, _message = json_reader(_Notification), json_reader(_Message)


@dataclass(frozen=True, slots=True)
class ConversionBounds:
    """Bounds of the events made: bytes of one, and events of a batch."""

    event_bytes_max: int
    batch_events_max: int


def events_of(
    kind: str,
    head: EventHead,
    headers: Headers,
    body: bytes,
    *,
    source: str,
    bounds: ConversionBounds,
    make_id: Callable[[], str],
    now: float,
    now_text: Callable[[], str],
) -> tuple[list[Event], bool]:
    """Make the events of a verified webhook; the second value is True for a batch.

    Args:
        kind: name of the format.
        head: of the message, as `read_head` returns it.
        headers: of the message.
        source: the intake's; a URI-reference.
        make_id: makes a random id.
        now: Unix seconds; `now_text` writes it as RFC 3339.

    Raises InvalidEvent for what is not of this format, and as `parse_body`.
    """

    def parsed(one: EventHead, content: bytes) -> tuple[list[Event], bool]:
        return parse_body(
            one,
            content,
            bytes_max=bounds.event_bytes_max,
            events_max=bounds.batch_events_max,
            make_id=make_id,
            now=now_text,
            default_source=lambda: source,
        )

    if kind == CLOUDEVENTS or (kind == WEBSUB and head.media_type in _STRUCTURED):
        return parsed(head, body)
    attributes: dict[str, str] = {"source": source, "time": now_text()}
    content_type = head.content_type
    if kind == GITHUB:
        content_type, body = _unpacked(head, body)
        attributes |= _of_github(headers, body)
    elif kind == STRIPE:
        attributes |= _of_stripe(body)
    elif kind == STANDARD:
        attributes |= _of_standard(headers, body)
    elif kind in (GRAFANA, ALERTMANAGER):
        attributes |= _of_notification(kind, body, now)
    elif kind == WEBSUB:
        attributes |= {"id": _digest(body, now), "type": WRAPPED_TYPE}
    else:
        attributes |= {"id": _delivery(headers, "idempotency-key") or make_id(), "type": WRAPPED_TYPE, **head.trace}
    media_type, charset = media_type_of(content_type)
    wrapped = EventHead(content_type, media_type, charset, {"specversion": SPECVERSION, **attributes}, {})
    return parsed(wrapped, body)


def _of_github(headers: Headers, body: bytes) -> dict[str, str]:
    event = headers.get("x-github-event", "")
    delivery = _delivery(headers, "x-github-delivery")
    if not _NAME.fullmatch(event) or not delivery:
        raise InvalidEvent("A webhook of GitHub has the headers X-GitHub-Event and X-GitHub-Delivery.")
    payload = _read(_github, body, "GitHub")
    action = payload.action or ""
    made = {
        "id": delivery,
        "type": f"com.github.{event}.{action}" if _NAME.fullmatch(action) else f"com.github.{event}",
    }
    if payload.repository is not None and is_uri_reference(payload.repository.url):
        made["source"] = payload.repository.url
    return made


def _unpacked(head: EventHead, body: bytes) -> tuple[str | None, bytes]:
    """Return content type and JSON of a webhook of GitHub, which may send it in the field `payload` of a form."""
    if head.media_type != FORM:
        return head.content_type, body
    try:
        fields = parse_qs(body.decode("ascii"), max_num_fields=4, errors="strict")
    except ValueError:
        fields = {}
    payload = fields.get("payload", [])
    if len(payload) != 1:
        raise InvalidEvent("A webhook of GitHub in a form has one field, payload.")
    return JSON, payload[0].encode()


def _of_stripe(body: bytes) -> dict[str, str]:
    payload = _read(_stripe, body, "Stripe")
    if not _DELIVERY.fullmatch(payload.id) or not _TYPE.fullmatch(payload.type):
        raise InvalidEvent("An event of Stripe has an id and a type.")
    made = {"id": payload.id, "type": f"com.stripe.{payload.type}"}
    if payload.created is not None and 0 <= payload.created < 2**33:
        made["time"] = timestamp_of(payload.created)
    return made


def _of_standard(headers: Headers, body: bytes) -> dict[str, str]:
    delivery = _delivery(headers, "webhook-id")
    if not delivery:
        raise InvalidEvent("webhook-id is 1 to 255 printable ASCII characters without a full stop.")
    made = {"id": delivery, "type": WRAPPED_TYPE}
    try:
        payload = _message(body)
    except Undecodable:  # the payload is a recommendation: another one is wrapped as it is
        return made
    if payload.type is not None and _TYPE.fullmatch(payload.type):
        made["type"] = payload.type
    if payload.timestamp is not None and is_timestamp(payload.timestamp):
        made["time"] = payload.timestamp
    return made


def _of_notification(kind: str, body: bytes, now: float) -> dict[str, str]:
    who, prefix = (
        ("Grafana", "com.grafana.alerting") if kind == GRAFANA else ("Alertmanager", "io.prometheus.alertmanager")
    )
    payload = _read(_notification, body, who)
    made = {"id": _digest(body, now), "type": f"{prefix}.{payload.status}"}
    group = payload.groupKey
    if 0 < len(group) <= SUBJECT_CHARS_MAX and is_string(group):
        made["subject"] = group
    return made


def _digest(body: bytes, now: float) -> str:
    """Return the id of a body whose sender states none: equal for equal bodies within one minute."""
    return hashlib.sha256(f"{int(now // SAME_S)} ".encode() + body).hexdigest()[:32]


def _delivery(headers: Mapping[str, str], name: str) -> str:
    """Return a sender's id of the delivery; empty if there is none. Raises InvalidEvent for one that cannot be an id."""
    value = headers.get(name, "")
    if value and _DELIVERY.fullmatch(value) is None:
        raise InvalidEvent(f"{name} is 1 to 255 printable ASCII characters without space and full stop.")
    return value


def _read(reader: Reader[T], body: bytes, who: str) -> T:
    try:
        return reader(body)
    except Undecodable as error:
        raise InvalidEvent(f"This is not a webhook of {who}: {error}.") from None
