"""SOAP envelopes that are sent: headers of WS-Addressing, an empty body to be filled, endpoint references. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from eventing.subscriptions.push.ws_eventing.dialects import MessageForm
from eventing.subscriptions.push.ws_eventing.xml_library import etree

PARAMETERS_MAX = 16  # bound: reference parameters of an endpoint reference; the request is refused
PARAMETER_BYTES_MAX = 4096  # bound: bytes of the reference parameters of an endpoint reference; the request is refused


@dataclass(frozen=True, slots=True)
class EndpointReference:
    """An endpoint reference.

    Attributes:
        address: its URL.
        parameters: the reference parameters, each as XML; they become headers of messages that are sent there.
    """

    address: str
    parameters: tuple[bytes, ...] = ()


class Envelope:
    """An envelope to be filled: `body` is empty.

    Args:
        to: receiver; None for an answer in the same HTTP exchange.
        relates_to: id of the request that is answered; empty for none.
        replies: whether an answer is expected, in the same HTTP exchange.
    """

    def __init__(
        self,
        form: MessageForm,
        action: str,
        *,
        message_id: str = "",
        relates_to: str = "",
        to: EndpointReference | None = None,
        replies: bool = False,
    ) -> None:
        self.form = form
        names = {"s": form.soap.namespace, "wsa": form.addressing.namespace, "wse": form.eventing.namespace}
        self._root = etree.Element(self.soap("Envelope"), nsmap=names)
        header = etree.SubElement(self._root, self.soap("Header"))
        etree.SubElement(header, self.addressing("To")).text = form.addressing.anonymous if to is None else to.address
        etree.SubElement(header, self.addressing("Action")).text = action
        if message_id:
            etree.SubElement(header, self.addressing("MessageID")).text = message_id
        if relates_to:
            etree.SubElement(header, self.addressing("RelatesTo")).text = relates_to
        if replies:
            reply_to = etree.SubElement(header, self.addressing("ReplyTo"))
            etree.SubElement(reply_to, self.addressing("Address")).text = form.addressing.anonymous
        for parameter in () if to is None else to.parameters:
            element = etree.fromstring(parameter, _parser())
            if form.addressing.marked:
                element.set(self.addressing("IsReferenceParameter"), "true")
            header.append(element)
        self.body = etree.SubElement(self._root, self.soap("Body"))

    def soap(self, name: str) -> str:
        """Return the qualified name of an element of SOAP."""
        return f"{{{self.form.soap.namespace}}}{name}"

    def addressing(self, name: str) -> str:
        """Return the qualified name of an element of WS-Addressing."""
        return f"{{{self.form.addressing.namespace}}}{name}"

    def eventing(self, name: str) -> str:
        """Return the qualified name of an element of WS-Eventing."""
        return f"{{{self.form.eventing.namespace}}}{name}"

    def element(self, name: str, text: str = "") -> etree._Element:
        """Make an element of WS-Eventing."""
        made = etree.Element(self.eventing(name), nsmap={"wse": self.form.eventing.namespace})
        made.text = text or None
        return made

    def encoded(self) -> bytes:
        """Return the document in UTF-8."""
        return etree.tostring(self._root, encoding="utf-8", xml_declaration=True)


def reference_append(made: Envelope, parent: etree._Element, name: str, reference: EndpointReference) -> None:
    """Append an endpoint reference as the element `name` of WS-Eventing."""
    element = etree.SubElement(parent, made.eventing(name))
    etree.SubElement(element, made.addressing("Address")).text = reference.address
    if reference.parameters:
        parameters = etree.SubElement(element, made.addressing("ReferenceParameters"))
        for parameter in reference.parameters:
            parameters.append(etree.fromstring(parameter, _parser()))


def _parser() -> etree.XMLParser:
    """Make a parser for reference parameters, which were parsed within the bounds of strangers' XML before."""
    return etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)
