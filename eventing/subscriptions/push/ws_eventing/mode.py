"""The mode `ws-eventing`: each event is a SOAP message to the subscription's NotifyTo, in the form of its Subscribe. Pure."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Sequence

import msgspec

from eventing.core.decoding import json_reader
from eventing.subscriptions.push.modes import PushRequest, PushTarget, StoredEvent
from eventing.subscriptions.push.rules.verdicts import AttemptVerdict, PushAnswer, judged
from eventing.subscriptions.push.ws_eventing.cloudevents_xml import event_element
from eventing.subscriptions.push.ws_eventing.consent import has_consented, probe, probe_action
from eventing.subscriptions.push.ws_eventing.dialects import SOAP_11, SoapVersion
from eventing.subscriptions.push.ws_eventing.notifications import (
    EVENT_ACTION,
    WRAPPED_ACTION,
    notification,
    subscription_end,
)
from eventing.subscriptions.push.ws_eventing.sinks import EventSink, sink_parse

_read_members = json_reader(dict[str, msgspec.Raw])
_read_value = json_reader(object)
_IDS = uuid.uuid5(uuid.NAMESPACE_URL, "urn:herald:notification")


class WsEventingMode:
    """Delivery by WS-Eventing."""

    def request(self, target: PushTarget, events: Sequence[StoredEvent], now: int) -> PushRequest:
        """Make the notification of an event. Its message id is the same in all attempts."""
        sink, event = sink_parse(target.mode_data), events[0]
        action = sink.form.eventing.action(WRAPPED_ACTION) if sink.wrapped else EVENT_ACTION
        content = notification(
            sink.form,
            sink.notify_to.reference,
            event_element(*_parts(event.body)),
            message_id=uuid.uuid5(_IDS, f"{target.subscription} {event.epoch} {event.offset}").urn,
            wrapped=sink.wrapped,
        )
        return soap_request(sink.form.soap, action, content)

    def verdict(self, answer: PushAnswer) -> AttemptVerdict:
        """Judge as for webhooks: 2xx is success, 410 ends the endpoint; a fault has another status."""
        return judged(answer)

    def consent_request(self, target: PushTarget, token: str, now: int) -> PushRequest:
        """Make the probe."""
        sink = sink_parse(target.mode_data)
        return soap_request(sink.form.soap, probe_action(sink.form), probe(sink.form, sink.notify_to.reference, token))

    def consents(self, target: PushTarget, token: str, answer: PushAnswer) -> bool:
        """Return True if the answer relates to the probe, or is a success at the address that sent Subscribe."""
        return has_consented(answer, token, sink_parse(target.mode_data).requester)


def end_request(sink: EventSink, *, manager: str, message_id: str, status: str, reason: str) -> PushRequest:
    """Make the message that a subscription with EndTo has ended before its lease."""
    if sink.end_to is None:
        raise ValueError("the sink has no EndTo")
    content = subscription_end(
        sink.form,
        sink.end_to.reference,
        message_id=message_id,
        manager=manager,
        status=status,
        reason=reason,
    )
    return soap_request(sink.form.soap, sink.form.eventing.action("SubscriptionEnd"), content)


def soap_request(soap: SoapVersion, action: str, content: bytes) -> PushRequest:
    """Make a request of an envelope: SOAP 1.1 states the action in a header, SOAP 1.2 in the media type."""
    if soap is SOAP_11:
        return PushRequest("POST", (("Content-Type", soap.content_type), ("SOAPAction", f'"{action}"')), content)
    return PushRequest("POST", (("Content-Type", f'{soap.content_type}; action="{action}"'),), content)


def _parts(event: bytes) -> tuple[dict[str, str | int | bool], str | None, bytes | None]:
    """Return attributes, data as text, and data as bytes of a stored event. JSON data is the text as it is stored."""
    attributes: dict[str, str | int | bool] = {}
    text: str | None = None
    binary: bytes | None = None
    members = _read_members(event)
    for name, raw in members.items():
        if name == "data":
            text = bytes(raw).decode("utf-8", "replace")
        elif (value := _read_value(raw)) is None:
            continue
        elif name == "data_base64":
            binary = base64.b64decode(str(value))
        elif isinstance(value, str | int | bool):
            attributes[name] = value
    kind = str(attributes.get("datacontenttype", ""))
    if text is not None and text.startswith('"') and kind and not _is_json(kind):
        text = str(_read_value(text.encode()))
    return attributes, text, binary


def _is_json(kind: str) -> bool:
    media_type = kind.partition(";")[0].strip().lower()
    return media_type == "application/json" or media_type.endswith("+json")
