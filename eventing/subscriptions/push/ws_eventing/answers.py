"""Answers of the event source and of the subscription manager. Pure."""

from __future__ import annotations

from eventing.subscriptions.push.ws_eventing.envelopes import EndpointReference, Envelope, reference_append
from eventing.subscriptions.push.ws_eventing.requests import SinkRequest
from eventing.subscriptions.push.ws_eventing.xml_library import etree


def subscribe_answer(request: SinkRequest, *, message_id: str, manager: str, granted: str) -> bytes:
    """Answer Subscribe.

    Args:
        message_id: a fresh id, here and below.
        manager: address of the subscription manager for this subscription alone. It has no reference parameters: clients
            that validate what they send against the schema of 2004 cannot return wse:Identifier.
        granted: the granted lease, a duration or an instant.
    """
    made, answer = _begun(request, "SubscribeResponse", message_id)
    reference_append(made, answer, "SubscriptionManager", EndpointReference(manager))
    answer.append(made.element(made.form.eventing.expires, granted))
    return made.encoded()


def renew_answer(request: SinkRequest, *, message_id: str, granted: str) -> bytes:
    """Answer Renew."""
    made, answer = _begun(request, "RenewResponse", message_id)
    answer.append(made.element(made.form.eventing.expires, granted))
    return made.encoded()


def status_answer(request: SinkRequest, *, message_id: str, remaining: str) -> bytes:
    """Answer GetStatus."""
    made, answer = _begun(request, "GetStatusResponse", message_id)
    answer.append(made.element(made.form.eventing.expires, remaining))
    return made.encoded()


def unsubscribe_answer(request: SinkRequest, *, message_id: str) -> bytes:
    """Answer Unsubscribe: in 2004 by an empty body."""
    if request.form.eventing.year == 2011:
        return _begun(request, "UnsubscribeResponse", message_id)[0].encoded()
    action = request.form.eventing.action("UnsubscribeResponse")
    return Envelope(request.form, action, message_id=message_id, relates_to=request.message_id).encoded()


def _begun(request: SinkRequest, name: str, message_id: str) -> tuple[Envelope, etree._Element]:
    made = Envelope(
        request.form, request.form.eventing.action(name), message_id=message_id, relates_to=request.message_id
    )
    return made, etree.SubElement(made.body, made.eventing(name))
