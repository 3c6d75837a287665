"""Requests of sinks become the same values in every dialect, and what is wrong is answered with the fault that is specified."""

from __future__ import annotations

import pytest

from eventing.subscriptions.push.ws_eventing.dialects import EVENTING_2004, EVENTING_2011, SOAP_12, MessageForm
from eventing.subscriptions.push.ws_eventing.envelopes import PARAMETERS_MAX
from eventing.subscriptions.push.ws_eventing.faults import (
    UNABLE_TO_RENEW,
    UNKNOWN_SUBSCRIPTION,
    FaultRaised,
    fault_message,
    fault_status,
)
from eventing.subscriptions.push.ws_eventing.requests import (
    Expires,
    GetStatus,
    Renew,
    RequestFault,
    Subscribe,
    Unsubscribe,
    read_request,
)
from eventing.subscriptions.push.ws_eventing.xml_documents import MalformedXml
from tests.subscriptions.push.ws_eventing.messages import (
    DELIVERY,
    DPWS,
    FORMS,
    ID,
    NOTIFY_TO,
    PUSH,
    W3C,
    envelope,
    found,
)

EVERY_FORM = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())


def fault(form: MessageForm, body: bytes) -> tuple[str, list[str], int]:
    """Name of the subcode, details and HTTP status of the fault with which a request is answered."""
    with pytest.raises(RequestFault) as raised:
        read_request(body)
    assert raised.value.form == form
    message = fault_message(form, raised.value, message_id="urn:uuid:2", relates_to=raised.value.message_id)
    path = "//s:Subcode/s:Value" if form.soap is SOAP_12 else "//faultcode"
    (code,) = found(form, message, path)
    details = found(form, message, "//s:Detail/*" if form.soap is SOAP_12 else "//detail/*")
    return code.partition(":")[2], details, fault_status(form, raised.value)


@EVERY_FORM
def test_a_subscription_is_read_in_every_form(form: MessageForm) -> None:
    end_to = "<wse:EndTo><wsa:Address>https://sink.example/ended</wsa:Address></wse:EndTo>"
    request = read_request(envelope(form, "Subscribe", f"{end_to}{DELIVERY}<wse:Expires> PT45S </wse:Expires>"))
    assert (request.form, request.message_id) == (form, ID)
    assert isinstance(request.body, Subscribe)
    assert request.body.notify_to.address == "https://sink.example/events"
    assert request.body.end_to is not None
    assert request.body.end_to.address == "https://sink.example/ended"
    assert request.body.expires == Expires("PT45S")


@EVERY_FORM
def test_the_requests_to_a_manager_are_read_in_every_form(form: MessageForm) -> None:
    assert read_request(envelope(form, "Renew", "<wse:Expires>PT1M</wse:Expires>")).body == Renew(Expires("PT1M"))
    assert read_request(envelope(form, "Renew")).body == Renew(None)
    assert read_request(envelope(form, "GetStatus")).body == GetStatus()
    assert read_request(envelope(form, "Unsubscribe")).body == Unsubscribe()


def test_reference_parameters_are_kept_with_their_namespaces() -> None:
    parameters = "<wsa:ReferenceParameters><x:key>1 &lt; 2</x:key></wsa:ReferenceParameters>"
    delivery = f"<wse:Delivery><wse:NotifyTo><wsa:Address>urn:a</wsa:Address>{parameters}</wse:NotifyTo></wse:Delivery>"
    body = read_request(envelope(DPWS, "Subscribe", delivery)).body
    assert isinstance(body, Subscribe)
    (kept,) = body.notify_to.parameters
    assert b'xmlns:x="urn:x"' in kept
    assert b">1 &lt; 2</x:key>" in kept


def test_wrapped_delivery_and_best_effort_are_of_the_dialect_of_2011() -> None:
    inside = f'{DELIVERY}<wse:Format Name="{EVENTING_2011.namespace}/DeliveryFormats/Wrap"/>'
    body = read_request(envelope(W3C, "Subscribe", f'{inside}<wse:Expires BestEffort="true">PT1H</wse:Expires>')).body
    assert isinstance(body, Subscribe)
    assert body.wrapped
    assert body.expires == Expires("PT1H", best_effort=True)
    assert fault(W3C, envelope(W3C, "Subscribe", f'{DELIVERY}<wse:Format Name="urn:other"/>')) == (
        "DeliveryFormatRequestedUnavailable",
        list(EVENTING_2011.formats),
        400,
    )


def test_another_delivery_mode_is_refused_with_the_supported_one() -> None:
    other = f'<wse:Delivery Mode="urn:pull">{NOTIFY_TO}</wse:Delivery>'
    assert fault(DPWS, envelope(DPWS, "Subscribe", other)) == ("DeliveryModeRequestedUnavailable", [PUSH], 400)
    stated = f'<wse:Delivery Mode="{PUSH}">{NOTIFY_TO}</wse:Delivery>'
    assert isinstance(read_request(envelope(DPWS, "Subscribe", stated)).body, Subscribe)


@EVERY_FORM
def test_a_filter_is_refused_as_the_standard_says(form: MessageForm) -> None:
    body = envelope(form, "Subscribe", f"{DELIVERY}<wse:Filter Dialect='urn:f'>a</wse:Filter>")
    assert fault(form, body)[0] == "FilteringNotSupported"


@EVERY_FORM
def test_a_subscription_without_an_address_is_refused(form: MessageForm) -> None:
    expected = "NoDeliveryMechanismEstablished" if form.eventing.year == 2011 else "InvalidMessage"
    assert fault(form, envelope(form, "Subscribe", "<wse:Delivery/>"))[0] == expected
    assert (
        fault(form, envelope(form, "Subscribe", f"<wse:Delivery>{NOTIFY_TO}{NOTIFY_TO}</wse:Delivery>"))[0] == expected
    )


@EVERY_FORM
def test_faults_are_answered_with_the_status_of_the_version_of_soap(form: MessageForm) -> None:
    assert fault(form, envelope(form, "Subscribe", "<wse:Delivery/>"))[2] == (400 if form.soap is SOAP_12 else 500)
    assert fault_status(form, FaultRaised(UNABLE_TO_RENEW)) == 500


@pytest.mark.parametrize(
    ("form", "expected"), [(DPWS, "wse:InvalidMessage"), (W3C, "wse:UnknownSubscription")], ids=["2004", "2011"]
)
def test_an_unknown_subscription_is_told_in_each_dialect(form: MessageForm, expected: str) -> None:
    message = fault_message(form, FaultRaised(UNKNOWN_SUBSCRIPTION), message_id="urn:uuid:2", relates_to=ID)
    assert found(form, message, "//s:Subcode/s:Value") == [expected]
    assert found(form, message, "//wsa:RelatesTo") == [ID]
    action = "http://www.w3.org/2005/08/addressing/fault" if form is DPWS else f"{EVENTING_2011.namespace}/fault"
    assert found(form, message, "//wsa:Action") == [action]


def test_a_retry_is_told_in_the_detail_of_the_dialect_of_2011_only() -> None:
    raised = FaultRaised(UNKNOWN_SUBSCRIPTION, retry_after_s=30)
    assert found(W3C, fault_message(W3C, raised, message_id="", relates_to=""), "//wse:RetryAfter") == ["30"]
    assert not found(DPWS, fault_message(DPWS, raised, message_id="", relates_to=""), "//wse:RetryAfter")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"<wsa:Action>{EVENTING_2004.action('Renew')}</wsa:Action>", "MessageAddressingHeaderRequired"),
        ("<wsa:MessageID>urn:1</wsa:MessageID>", "MessageAddressingHeaderRequired"),
        ("<wsa:Action>urn:other</wsa:Action><wsa:MessageID>urn:1</wsa:MessageID>", "ActionNotSupported"),
        (
            f"<wsa:Action>{EVENTING_2004.action('GetStatus')}</wsa:Action><wsa:MessageID>urn:1</wsa:MessageID>",
            "ActionNotSupported",
        ),
    ],
)
def test_the_headers_of_addressing_are_required_and_agree_with_the_body(header: str, expected: str) -> None:
    assert fault(DPWS, envelope(DPWS, "Renew", header=header))[0] == expected


@EVERY_FORM
def test_a_header_that_must_be_understood_and_is_not_is_a_fault_of_soap(form: MessageForm) -> None:
    with pytest.raises(RequestFault) as raised:
        read_request(envelope(form, "Renew", more='<x:own s:mustUnderstand="1"/>'))
    message = fault_message(form, raised.value, message_id="urn:uuid:2", relates_to=ID)
    path = "//s:Code/s:Value" if form.soap is SOAP_12 else "//faultcode"
    assert (found(form, message, path), found(form, message, "//s:Subcode")) == (["s:MustUnderstand"], [])
    assert found(form, message, "//wsa:Action") == [form.addressing.soap_fault_action]
    assert fault_status(form, raised.value) == 500
    read_request(envelope(form, "Renew", more='<x:own s:mustUnderstand="0"/>'))


def test_an_answer_is_sent_nowhere_else() -> None:
    elsewhere = "<wsa:ReplyTo><wsa:Address>http://10.0.0.1/</wsa:Address></wsa:ReplyTo>"
    assert fault(DPWS, envelope(DPWS, "Renew", more=elsewhere))[0] == "InvalidMessage"
    here = f"<wsa:ReplyTo><wsa:Address>{DPWS.addressing.anonymous}</wsa:Address></wsa:ReplyTo>"
    assert read_request(envelope(DPWS, "Renew", more=f"{here}<x:own>1</x:own>")).parameters == (
        (("urn:x", "own"), "1"),
    )


@pytest.mark.parametrize(
    "inside",
    [
        f"{DELIVERY}{DELIVERY}",
        f"{DELIVERY}<wse:Unknown/>",
        f"{DELIVERY}<wse:Expires><x:a/></wse:Expires>",
        f"{DELIVERY}<wse:Expires>{'1' * 3000}</wse:Expires>",
        "<wse:Delivery><wse:NotifyTo/></wse:Delivery>",
        "<wse:Delivery><wse:NotifyTo><wsa:Address>urn:a</wsa:Address><wsa:ReferenceParameters>"
        + "<x:a/>" * (PARAMETERS_MAX + 1)
        + "</wsa:ReferenceParameters></wse:NotifyTo></wse:Delivery>",
    ],
)
def test_a_malformed_subscription_is_an_invalid_message(inside: str) -> None:
    assert fault(DPWS, envelope(DPWS, "Subscribe", inside))[0] == "InvalidMessage"


@pytest.mark.parametrize(
    "body",
    [
        b"<a/>",
        b'<s:Envelope xmlns:s="urn:soap"/>',
        f'<s:Envelope xmlns:s="{SOAP_12.namespace}"/>'.encode(),
        f'<s:Envelope xmlns:s="{SOAP_12.namespace}"><s:Body/><s:Body/></s:Envelope>'.encode(),
        envelope(DPWS, "Renew").replace(b"<wse:Renew>", b"<x:Renew>").replace(b"</wse:Renew>", b"</x:Renew>"),
        envelope(DPWS, "Renew", more=f"<wsa:MessageID>{ID}</wsa:MessageID>"),
        envelope(DPWS, "Renew").replace(b"</wse:Renew>", b"</wse:Renew><wse:GetStatus/>"),
        envelope(DPWS, "Renew").replace(b"</s:Body>", b"</s:Body><s:Body><wse:Unsubscribe/></s:Body>"),
        envelope(DPWS, "Renew", header=""),
    ],
)
def test_what_is_no_envelope_of_one_meaning_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedXml):
        read_request(body)
