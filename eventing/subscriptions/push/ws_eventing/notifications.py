"""Messages to sinks: notifications, wrapped and unwrapped, and the end of a subscription. Pure."""

from __future__ import annotations

from eventing.subscriptions.push.ws_eventing.dialects import MessageForm
from eventing.subscriptions.push.ws_eventing.envelopes import EndpointReference, Envelope, reference_append
from eventing.subscriptions.push.ws_eventing.faults import XML_LANG
from eventing.subscriptions.push.ws_eventing.xml_library import etree

EVENT_ACTION = "urn:herald:event"
"""Action of a notification; of a wrapped one, its `actionURI`."""

DELIVERY_FAILURE, SHUTTING_DOWN, CANCELLING = "DeliveryFailure", "SourceShuttingDown", "SourceCancelling"
WRAPPED_ACTION = "WrappedSinkPortType/NotifyEvent"


def notification(
    form: MessageForm, to: EndpointReference, event: etree._Element, *, message_id: str, wrapped: bool = False
) -> bytes:
    """Make a notification of an event.

    Args:
        to: NotifyTo of the subscription; its reference parameters become headers.
        event: the event's element; it is moved into the message.
        wrapped: whether it is wrapped in Notify, as the dialect of 2011 offers.
    """
    action = form.eventing.action(WRAPPED_ACTION) if wrapped else EVENT_ACTION
    made = Envelope(form, action, message_id=message_id, to=to)
    parent = made.body
    if wrapped:
        parent = etree.SubElement(made.body, made.eventing("Notify"), actionURI=EVENT_ACTION)
    parent.append(event)
    return made.encoded()


def subscription_end(
    form: MessageForm,
    to: EndpointReference,
    *,
    message_id: str,
    manager: str,
    status: str,
    reason: str = "",
) -> bytes:
    """Make the message that a subscription has ended before its lease, which is not sent at its natural end or after
    Unsubscribe.

    Args:
        to: EndTo of the subscription.
        manager: address of its subscription manager; stated in 2004 only.
        status: one of the three names above.
        reason: for people, in English; empty for none.
    """
    made = Envelope(form, form.eventing.action("SubscriptionEnd"), message_id=message_id, to=to)
    ended = etree.SubElement(made.body, made.eventing("SubscriptionEnd"))
    if form.eventing.year == 2004:
        reference_append(made, ended, "SubscriptionManager", EndpointReference(manager))
    ended.append(made.element("Status", form.eventing.action(status)))
    if reason:
        told = made.element("Reason", reason)
        told.set(XML_LANG, "en")
        ended.append(told)
    return made.encoded()
