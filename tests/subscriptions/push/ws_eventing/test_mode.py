"""The mode as a function: notifications of stored events, the probe, and which answers to it are a consent."""

from __future__ import annotations

from typing import Any

import pytest
from lxml import etree

from eventing.subscriptions.push.modes import PushTarget, StoredEvent
from eventing.subscriptions.push.rules.addresses import EndpointUrl
from eventing.subscriptions.push.rules.verdicts import PushAnswer
from eventing.subscriptions.push.ws_eventing.cloudevents_xml import NAMESPACE, XSI
from eventing.subscriptions.push.ws_eventing.consent import probe_id
from eventing.subscriptions.push.ws_eventing.dialects import ADDRESSING_2004, MessageForm
from eventing.subscriptions.push.ws_eventing.envelopes import EndpointReference
from eventing.subscriptions.push.ws_eventing.mode import WsEventingMode
from eventing.subscriptions.push.ws_eventing.requests import Subscribe
from eventing.subscriptions.push.ws_eventing.sinks import sink_of, sink_parse, sink_text
from tests.subscriptions.push.ws_eventing.messages import FORMS, W3C, found

MODE = WsEventingMode()
FORM = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())


def target(form: MessageForm, *, requester: str = "") -> PushTarget:
    wish = Subscribe(
        EndpointReference("https://sink.example/in", (b'<x:key xmlns:x="urn:x">7</x:key>',)), None, False, None
    )
    data = sink_text(sink_of(form, wish, requester))
    return PushTarget("sub_a", "rp", "here.example", EndpointUrl("https", "sink.example", 443, "/in"), mode_data=data)


def relates(form: MessageForm, to: str, element: str = "RelatesTo") -> bytes:
    wsa = form.addressing.namespace
    return f'<e xmlns:a="{wsa}"><a:{element} RelationshipType="x">\n {to} </a:{element}></e>'.encode()


@FORM
def test_a_sink_is_stored_and_read_again(form: MessageForm) -> None:
    data = target(form, requester="192.0.2.1").mode_data
    assert sink_parse(data).form == form
    assert sink_text(sink_parse(data)) == data


@FORM
def test_a_probe_names_the_sink_and_has_the_token_in_its_id(form: MessageForm) -> None:
    request = MODE.consent_request(target(form), "t0ken", 0)
    assert found(form, request.body, "//wsa:MessageID") == [probe_id("t0ken")]
    assert found(form, request.body, "//wsa:To") == ["https://sink.example/in"]
    assert found(form, request.body, "//wsa:ReplyTo/wsa:Address") == [form.addressing.anonymous]
    (key,) = etree.fromstring(request.body).findall(".//{urn:x}key")
    assert key.text == "7"
    assert (form.addressing is ADDRESSING_2004) == (not key.attrib)


@FORM
def test_an_answer_that_relates_to_the_probe_is_a_consent_be_it_a_fault(form: MessageForm) -> None:
    body = relates(form, probe_id("t0ken"))
    for status in (200, 202, 400, 500):
        assert MODE.consents(target(form), "t0ken", PushAnswer(status, excerpt=body)), status


def test_what_does_not_relate_to_the_probe_is_none() -> None:
    asked, right = target(W3C, requester="192.0.2.1"), relates(W3C, probe_id("t0ken"))
    refused = [
        PushAnswer(200, excerpt=relates(W3C, probe_id("other")), address="192.0.2.2"),
        PushAnswer(200, excerpt=relates(W3C, probe_id("t0ken"), "MessageID"), address="192.0.2.2"),  # an echo
        PushAnswer(200, excerpt=probe_id("t0ken").encode(), address="192.0.2.2"),
        PushAnswer(404, excerpt=right, address="192.0.2.1"),
        PushAnswer(410, excerpt=right, address="192.0.2.1"),
        PushAnswer(0, "connection-closed", excerpt=right, address="192.0.2.1"),
        PushAnswer(400, address="192.0.2.1"),
        PushAnswer(302, address="192.0.2.1"),
    ]
    assert [one for one in refused if MODE.consents(asked, "t0ken", one)] == []
    assert not MODE.consents(target(W3C), "t0ken", PushAnswer(202, address="")), "no address is no requester's"


def test_success_at_the_address_that_subscribed_is_a_consent() -> None:
    asked = target(W3C, requester="192.0.2.1")
    assert MODE.consents(asked, "t0ken", PushAnswer(202, address="192.0.2.1"))
    assert not MODE.consents(asked, "t0ken", PushAnswer(202, address="192.0.2.2"))


@pytest.mark.parametrize(
    ("event", "kind", "data"),
    [
        (b'{"data":{"a":"<&>"}}', "xs:string", '{"a":"<&>"}'),
        (b'{"datacontenttype":"text/plain","data":"a \\"b\\""}', "xs:string", 'a "b"'),
        (b'{"datacontenttype":"application/json","data":"a"}', "xs:string", '"a"'),
        (b'{"data_base64":"AAEC"}', "xs:base64Binary", "AAEC"),
        (b'{"data":null,"n":7,"b":true,"gone":null}', "xs:string", "null"),
        (b"{}", None, None),
    ],
)
def test_data_is_carried_as_it_is(event: bytes, kind: str | None, data: str | None) -> None:
    whole = b'{"specversion":"1.0","id":"1","source":"/s","type":"t"' + (b"," if event != b"{}" else b"") + event[1:]
    request = MODE.request(target(W3C), [StoredEvent("e", 3, whole)], 0)
    (made,) = etree.fromstring(request.body).findall(f".//{{{NAMESPACE}}}event")
    carried: Any = made.find(f"{{{NAMESPACE}}}data")
    assert (None if carried is None else (carried.get(f"{{{XSI}}}type"), carried.text)) == (kind and (kind, data))
    assert made.find(f"{{{NAMESPACE}}}gone") is None


def test_another_event_or_subscription_has_another_message_id() -> None:
    event = b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}'
    ids = {
        found(W3C, MODE.request(target(W3C), [StoredEvent(epoch, offset, event)], now).body, "//wsa:MessageID")[0]
        for epoch, offset, now in (("e", 1, 0), ("e", 1, 9), ("e", 2, 0), ("f", 1, 0))
    }
    assert len(ids) == 3, "an attempt at another time is not another message"
