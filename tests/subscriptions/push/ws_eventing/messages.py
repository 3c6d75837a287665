"""Messages of sinks, written by hand, in any form."""

from __future__ import annotations

from typing import Any

from lxml import etree

from eventing.subscriptions.push.ws_eventing.dialects import (
    ADDRESSING_2004,
    ADDRESSING_2005,
    EVENTING_2004,
    EVENTING_2011,
    SOAP_11,
    SOAP_12,
    MessageForm,
)

FORMS = {
    "2004, addressing of 2004, SOAP 1.1": MessageForm(SOAP_11, ADDRESSING_2004, EVENTING_2004),
    "2004, addressing of 2004, SOAP 1.2": MessageForm(SOAP_12, ADDRESSING_2004, EVENTING_2004),
    "2004, addressing of 2005, SOAP 1.2": MessageForm(SOAP_12, ADDRESSING_2005, EVENTING_2004),
    "2011, SOAP 1.1": MessageForm(SOAP_11, ADDRESSING_2005, EVENTING_2011),
    "2011, SOAP 1.2": MessageForm(SOAP_12, ADDRESSING_2005, EVENTING_2011),
}
DPWS = FORMS["2004, addressing of 2005, SOAP 1.2"]
W3C = FORMS["2011, SOAP 1.2"]
ID = "urn:uuid:4d1f9a1c-0000-4000-8000-000000000001"
PUSH = f"{EVENTING_2004.namespace}/DeliveryModes/Push"
NOTIFY_TO = "<wse:NotifyTo><wsa:Address>https://sink.example/events</wsa:Address></wse:NotifyTo>"
DELIVERY = f"<wse:Delivery>{NOTIFY_TO}</wse:Delivery>"


def envelope(form: MessageForm, name: str, inside: str = "", *, header: str | None = None, more: str = "") -> bytes:
    """A request; `header` in place of Action and MessageID, `more` besides."""
    action = form.eventing.action(name)
    stated = f"<wsa:Action>{action}</wsa:Action><wsa:MessageID>{ID}</wsa:MessageID>" if header is None else header
    return (
        f'<?xml version="1.0" encoding="utf-8"?><s:Envelope xmlns:s="{form.soap.namespace}"'
        f' xmlns:wsa="{form.addressing.namespace}" xmlns:wse="{form.eventing.namespace}" xmlns:x="urn:x">'
        f"<s:Header>{stated}{more}</s:Header><s:Body><wse:{name}>{inside}</wse:{name}></s:Body></s:Envelope>"
    ).encode()


def found(form: MessageForm, message: bytes, path: str) -> list[str]:
    """Texts at an XPath in a message that Herald made."""
    names = {"s": form.soap.namespace, "wsa": form.addressing.namespace, "wse": form.eventing.namespace}
    root: Any = etree.fromstring(message)
    return [str(one if isinstance(one, str) else one.text) for one in root.xpath(path, namespaces=names)]
