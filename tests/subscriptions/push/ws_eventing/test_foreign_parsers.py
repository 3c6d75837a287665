"""Programs that are not ours understand what is sent: zeep and suds by the served WSDL, the schema of 2004 by validation.

The schema is that of the package sdc11073, which is the published one with the addressing of 2005 that DPWS requires. No package
on PyPI has the schema of 2011.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import Any

import pytest
import suds.client
import suds.sax.element
import suds.store
import zeep
import zeep.exceptions
from lxml import etree

from eventing.subscriptions.push.ws_eventing.answers import (
    renew_answer,
    status_answer,
    subscribe_answer,
    unsubscribe_answer,
)
from eventing.subscriptions.push.ws_eventing.cloudevents_xml import NAMESPACE, event_element
from eventing.subscriptions.push.ws_eventing.dialects import (
    ADDRESSING_2004,
    ADDRESSING_2005,
    EVENTING_2004,
    EVENTING_2011,
    Addressing,
    EventingDialect,
    MessageForm,
)
from eventing.subscriptions.push.ws_eventing.envelopes import EndpointReference
from eventing.subscriptions.push.ws_eventing.faults import NO_FILTERING, FaultRaised, fault_message
from eventing.subscriptions.push.ws_eventing.notifications import (
    CANCELLING,
    EVENT_ACTION,
    notification,
    subscription_end,
)
from eventing.subscriptions.push.ws_eventing.requests import (
    Expires,
    GetStatus,
    Renew,
    SinkRequest,
    Subscribe,
    Unsubscribe,
    read_request,
)
from eventing.subscriptions.push.ws_eventing.wsdl import wsdl_document
from tests.subscriptions.push.ws_eventing.messages import DELIVERY, DPWS, FORMS, ID, W3C, envelope, found
from tests.subscriptions.push.ws_eventing.schemas import published_schema

SINK, MANAGER = "https://sink.example/events", "https://herald.example/ws-eventing/subscriptions/a?b=1&c=2"
DIALECT = pytest.mark.parametrize("dialect", [EVENTING_2004, EVENTING_2011], ids=["2004", "2011"])
ANSWERS: dict[str, Callable[[SinkRequest], bytes]] = {
    "Renew": lambda request: renew_answer(request, message_id="urn:uuid:2", granted="PT60S"),
    "GetStatus": lambda request: status_answer(request, message_id="urn:uuid:2", remaining="PT60S"),
    "Unsubscribe": lambda request: unsubscribe_answer(request, message_id="urn:uuid:2"),
}


def zeep_client(dialect: EventingDialect) -> Any:
    document = wsdl_document(dialect, ADDRESSING_2005, source="https://herald.example/source", manager=MANAGER)
    return zeep.Client(io.BytesIO(document))


@DIALECT
@pytest.mark.parametrize("soap", ["12", "11"])
def test_zeep_subscribes_and_manages_by_the_served_wsdl(dialect: EventingDialect, soap: str) -> None:
    client = zeep_client(dialect)
    source = client.bind("EventSourceService", f"EventSourceSoap{soap}")
    mode = {"Mode": dialect.push_mode} if dialect.push_mode else {}
    delivery = {"NotifyTo": {"Address": SINK}, **mode}
    sent = client.create_message(source, "SubscribeOp", Delivery=delivery, Expires={"_value_1": "PT60S"})
    request = read_request(etree.tostring(sent))
    assert isinstance(request.body, Subscribe)
    assert (request.body.notify_to.address, request.body.expires) == (SINK, Expires("PT60S"))
    answer = subscribe_answer(request, message_id="urn:uuid:2", manager=MANAGER, granted="PT60S")
    reply = source._binding.get("SubscribeOp").process_reply(etree.fromstring(answer))
    assert reply["SubscriptionManager"]["Address"] == MANAGER
    assert "PT60S" in str(reply[dialect.expires])
    manager = client.bind("SubscriptionManagerService", f"SubscriptionManagerSoap{soap}")
    assert manager._binding_options["address"] == MANAGER
    for name, body in (("Renew", Renew(Expires("PT60S"))), ("GetStatus", GetStatus()), ("Unsubscribe", Unsubscribe())):
        stated = {"Expires": {"_value_1": "PT60S"}} if name == "Renew" else {}
        request = read_request(etree.tostring(client.create_message(manager, f"{name}Op", **stated)))
        assert request.body == body
        reply = manager._binding.get(f"{name}Op").process_reply(etree.fromstring(ANSWERS[name](request)))
        assert name == "Unsubscribe" or "PT60S" in str(reply)


@DIALECT
@pytest.mark.parametrize("soap", ["12", "11"])
def test_zeep_is_told_the_reason_of_a_fault(dialect: EventingDialect, soap: str) -> None:
    client = zeep_client(dialect)
    source = client.bind("EventSourceService", f"EventSourceSoap{soap}")
    form = read_request(
        etree.tostring(client.create_message(source, "SubscribeOp", Delivery={"NotifyTo": {"Address": SINK}}))
    ).form
    answer = fault_message(form, FaultRaised(NO_FILTERING), message_id="urn:uuid:2", relates_to=ID)
    with pytest.raises(zeep.exceptions.Fault, match="Filtering is not supported"):
        source._binding.process_error(etree.fromstring(answer), source._binding.get("SubscribeOp"))


@pytest.mark.parametrize(
    ("dialect", "addressing"),
    [(EVENTING_2004, ADDRESSING_2004), (EVENTING_2004, ADDRESSING_2005), (EVENTING_2011, ADDRESSING_2005)],
    ids=["2004, addressing of 2004", "2004, addressing of 2005", "2011"],
)
def test_suds_subscribes_by_the_served_wsdl(dialect: EventingDialect, addressing: Addressing) -> None:
    logging.getLogger("suds").setLevel(logging.CRITICAL)
    document = wsdl_document(dialect, addressing, source="https://herald.example/source", manager=MANAGER)
    store = suds.store.DocumentStore(wsdl=document)
    options = {"documentStore": store, "cache": None, "nosend": True}
    client = suds.client.Client("suds://wsdl", service="EventSourceService", port="EventSourceSoap11", **options)
    prefix = ("wsa", addressing.namespace)
    action = suds.sax.element.Element("Action", ns=prefix).setText(dialect.action("Subscribe"))
    message = suds.sax.element.Element("MessageID", ns=prefix).setText(ID)
    client.set_options(soapheaders=[action, message])
    sent = client.service.SubscribeOp(Delivery={"NotifyTo": {"Address": SINK}}, Expires="PT60S")
    request = read_request(sent.envelope)
    assert isinstance(request.body, Subscribe)
    assert (request.form.eventing, request.form.addressing, request.body.notify_to.address) == (
        dialect,
        addressing,
        SINK,
    )
    reply = sent.process_reply(subscribe_answer(request, message_id="urn:uuid:2", manager=MANAGER, granted="PT60S"))
    assert reply.SubscriptionManager.Address == MANAGER
    assert str(reply[dialect.expires]) == "PT60S"


@pytest.fixture(scope="module")
def published() -> etree.XMLSchema:
    """The published schemas."""
    return published_schema()


def messages(form: MessageForm) -> dict[str, bytes]:
    """One of each message that Herald sends in this form."""
    request = read_request(envelope(form, "Subscribe", DELIVERY))
    sink = EndpointReference(SINK, (b'<x:key xmlns:x="urn:x">1</x:key>',))
    event = event_element({"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}, '{"a": 1}', None)
    return {
        "subscribed": subscribe_answer(request, message_id="urn:uuid:2", manager=MANAGER, granted="PT60S"),
        **{name: make(request) for name, make in ANSWERS.items()},
        "fault": fault_message(form, FaultRaised(NO_FILTERING), message_id="urn:uuid:2", relates_to=ID),
        "ended": subscription_end(
            form, sink, message_id="urn:uuid:2", manager=MANAGER, status=CANCELLING, reason="The RP was deleted."
        ),
        "event": notification(form, sink, event, message_id="urn:uuid:2"),
    }


def test_every_message_of_the_dialect_of_2004_is_valid_by_the_published_schema(published: etree.XMLSchema) -> None:
    for name, message in messages(DPWS).items():
        assert published.validate(etree.fromstring(message)), (name, published.error_log)
    assert not published.validate(etree.fromstring(messages(DPWS)["Renew"].replace(b"PT60S", b"soon")))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_answer_names_its_action_and_the_request(form: MessageForm) -> None:
    for name in ("subscribed", *ANSWERS):
        message = messages(form)[name]
        action = {"subscribed": "SubscribeResponse"}.get(name, f"{name}Response")
        assert found(form, message, "//wsa:Action") == [form.eventing.action(action)]
        assert found(form, message, "//wsa:RelatesTo") == [ID]
    bodies = found(form, messages(form)["Unsubscribe"], "//s:Body/*")
    assert len(bodies) == (1 if form.eventing.year == 2011 else 0), "in 2004 the body of this answer is empty"


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_notification_carries_the_event_and_the_sinks_reference_parameters(form: MessageForm) -> None:
    root = etree.fromstring(messages(form)["event"])
    assert found(form, messages(form)["event"], "//wsa:Action") == [EVENT_ACTION]
    assert found(form, messages(form)["event"], "//wsa:To") == [SINK]
    (event,) = root.findall(f".//{{{NAMESPACE}}}event")
    assert event.get("specversion") == "1.0"
    assert event.findtext(f"{{{NAMESPACE}}}data") == '{"a": 1}'
    (key,) = root.findall(".//{urn:x}key")
    marked = key.get(f"{{{form.addressing.namespace}}}IsReferenceParameter")
    assert marked == ("true" if form.addressing is ADDRESSING_2005 else None)


def test_a_wrapped_notification_is_understood_by_zeep() -> None:
    event = event_element(
        {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "n": 7, "b": True}, None, b"\x00"
    )
    message = notification(W3C, EndpointReference(SINK), event, message_id="urn:uuid:2", wrapped=True)
    wrapped = etree.fromstring(message).find(f".//{{{EVENTING_2011.namespace}}}Notify")
    client = zeep_client(EVENTING_2011)
    parsed = client.get_element(f"{{{EVENTING_2011.namespace}}}Notify").parse(wrapped, client.wsdl.types)
    assert parsed["actionURI"] == EVENT_ACTION
    assert b"AA==" in message
    action = f"{EVENTING_2011.namespace}/WrappedSinkPortType/NotifyEvent"
    assert found(W3C, message, "//wsa:Action") == [action]


def test_text_that_xml_cannot_carry_is_carried_as_base64() -> None:
    made = etree.tostring(event_element({"specversion": "1.0", "id": "1"}, "bell \x07", None))
    assert b"base64Binary" in made
    assert b"YmVsbCAH" in made
