"""Requests of sinks to an event source or subscription manager, from bytes to typed values. Pure.

Only the form is judged here; leases.py decides what is granted. A message that is no envelope raises MalformedXml, since nothing
states in which dialect to answer; any other fault raises RequestFault, with the form in which it is answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eventing.subscriptions.push.ws_eventing.dialects import (
    ADDRESSING,
    DIALECTS,
    SOAP,
    UNWRAPPED,
    WRAPPED,
    Addressing,
    EventingDialect,
    MessageForm,
    SoapVersion,
)
from eventing.subscriptions.push.ws_eventing.envelopes import PARAMETER_BYTES_MAX, PARAMETERS_MAX, EndpointReference
from eventing.subscriptions.push.ws_eventing.faults import (
    ACTION_UNKNOWN,
    FORMAT_UNAVAILABLE,
    HEADER_MISSING,
    INVALID_MESSAGE,
    MODE_UNAVAILABLE,
    NO_DELIVERY,
    NO_FILTERING,
    NOT_UNDERSTOOD,
    UNUSABLE_ADDRESS,
    FaultRaised,
)
from eventing.subscriptions.push.ws_eventing.xml_documents import (
    MalformedXml,
    UnknownEnvelope,
    name_of,
    parse_xml,
    text_of,
)
from eventing.subscriptions.push.ws_eventing.xml_library import Element, etree

TEXT_CHARS_MAX = 2048  # bound: characters of a URI or another text in a SOAP message; the request is refused
_TRUE = ("true", "1")


@dataclass(frozen=True, slots=True)
class Expires:
    """A requested lease: the text, which is a duration or a date and time, and whether a shorter one is welcome."""

    text: str
    best_effort: bool = False


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A request for a subscription.

    Attributes:
        end_to: where SubscriptionEnd is sent; None for nowhere.
        wrapped: whether notifications are wrapped in Notify.
        expires: the requested lease; None for none.
    """

    notify_to: EndpointReference
    end_to: EndpointReference | None
    wrapped: bool
    expires: Expires | None


@dataclass(frozen=True, slots=True)
class Renew:
    """A request to renew a subscription's lease."""

    expires: Expires | None


@dataclass(frozen=True, slots=True)
class GetStatus:
    """A request for the remaining lease."""


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A request to end a subscription."""


SinkRequestBody = Subscribe | Renew | GetStatus | Unsubscribe


@dataclass(frozen=True, slots=True)
class SinkRequest:
    """A request with what its answer needs.

    Attributes:
        parameters: headers marked as reference parameters, each as XML, by qualified name.
    """

    form: MessageForm
    message_id: str
    body: SinkRequestBody
    parameters: tuple[tuple[tuple[str, str], str], ...] = ()


class RequestFault(FaultRaised):
    """A fault with the form of its answer, and the id of the request, empty if it states none."""

    def __init__(self, form: MessageForm, message_id: str, fault: FaultRaised) -> None:
        super().__init__(fault.kind, fault.reason, fault.details, fault.retry_after_s)
        self.form = form
        self.message_id = message_id


def read_request(body: bytes) -> SinkRequest:
    """Parse a request. Raises MalformedXml, RequestFault."""
    root = parse_xml(body)
    namespace, name = name_of(root)
    soap = SOAP.get(namespace)
    if soap is None or name != "Envelope":
        kind = UnknownEnvelope if name == "Envelope" else MalformedXml
        raise kind("it is not an envelope of SOAP 1.1 or 1.2")
    header, content = _parts(root, soap)
    addressing, headers = _addressing(header)
    dialect = _dialect(headers.get("Action", ""), content)
    form = MessageForm(soap, addressing, dialect)
    message_id = headers.get("MessageID", "")
    try:
        return SinkRequest(form, message_id, _body(form, headers, header, content), _marked(form, header))
    except FaultRaised as fault:
        raise RequestFault(form, message_id, fault) from None
    except MalformedXml as error:
        raise RequestFault(form, message_id, FaultRaised(INVALID_MESSAGE, f"Not a valid message: {error}.")) from None


def _parts(root: Element, soap: SoapVersion) -> tuple[Sequence[Element], Element | None]:
    """Return the headers and the one element of the body; None for an empty body."""
    header: Sequence[Element] = ()
    bodies: list[Element] = []
    for part in root:
        if name_of(part) == (soap.namespace, "Header") and not bodies:
            header = list(part)
        elif name_of(part) == (soap.namespace, "Body"):
            bodies.append(part)
        else:
            raise MalformedXml("an envelope has a header and a body")
    if len(bodies) != 1 or len(bodies[0]) > 1:
        raise MalformedXml("an envelope has one body with one element")
    return header, bodies[0][0] if len(bodies[0]) else None


def _addressing(header: Sequence[Element]) -> tuple[Addressing, dict[str, str]]:
    """Return the version of WS-Addressing, and the texts of its headers. A repeated header could be understood in two ways."""
    used = {namespace: ADDRESSING[namespace] for namespace, _ in map(name_of, header) if namespace in ADDRESSING}
    if len(used) != 1:
        raise MalformedXml("its headers are of one version of WS-Addressing")
    (addressing,) = used.values()
    headers: dict[str, str] = {}
    for element in header:
        namespace, name = name_of(element)
        if namespace == addressing.namespace:
            if name in headers:
                raise MalformedXml(f"the header {name[:TEXT_CHARS_MAX]} is given twice")
            headers[name] = "" if len(element) else _text(element)
    return addressing, headers


def _dialect(action: str, content: Element | None) -> EventingDialect:
    namespace = name_of(content)[0] if content is not None else action.rpartition("/")[0]
    dialect = DIALECTS.get(namespace)
    if dialect is None:
        raise MalformedXml("its body is not of WS-Eventing")
    return dialect


def _body(
    form: MessageForm, headers: dict[str, str], header: Sequence[Element], content: Element | None
) -> SinkRequestBody:
    if form.addressing not in form.eventing.addressings:
        raise FaultRaised(INVALID_MESSAGE, "This dialect of WS-Eventing is used with WS-Addressing of August 2005.")
    _require_understood(form, header)
    for name in ("Action", "MessageID"):
        if not headers.get(name):
            raise FaultRaised(HEADER_MISSING, f"The header wsa:{name} is missing.")
    _require_answered_here(form, header)
    if content is None:
        raise FaultRaised(INVALID_MESSAGE, "The body is empty.")
    name = name_of(content)[1]
    if headers["Action"] != form.eventing.action(name) or name not in _READERS:
        raise FaultRaised(
            ACTION_UNKNOWN, "The action is not one of an event source, or does not name the body's element."
        )
    return _READERS[name](form, content)


def _require_understood(form: MessageForm, header: Sequence[Element]) -> None:
    for element in header:
        must = element.get(f"{{{form.soap.namespace}}}mustUnderstand", "").strip()
        if must in _TRUE and name_of(element)[0] != form.addressing.namespace:
            raise FaultRaised(NOT_UNDERSTOOD)


def _require_answered_here(form: MessageForm, header: Sequence[Element]) -> None:
    for element in header:
        if name_of(element) in ((form.addressing.namespace, "ReplyTo"), (form.addressing.namespace, "FaultTo")):
            address = _reference(form, element).address
            if address != form.addressing.anonymous:
                raise FaultRaised(INVALID_MESSAGE, "Answers are sent in the same HTTP exchange: ReplyTo is anonymous.")


def _subscribe(form: MessageForm, content: Element) -> Subscribe:
    parts = _children(form, content, ("EndTo", "Delivery", "Format", "Expires", "Filter"))
    if "Delivery" not in parts:
        raise FaultRaised(INVALID_MESSAGE, "Subscribe has the element Delivery.")
    delivery = parts["Delivery"]
    if form.eventing.push_mode:
        mode = _attribute(delivery, "Mode") or form.eventing.push_mode
        if mode != form.eventing.push_mode:
            raise FaultRaised(MODE_UNAVAILABLE, details=[form.eventing.push_mode])
    wrapped = False
    if form.eventing.formats and "Format" in parts:
        name = _attribute(parts["Format"], "Name") or UNWRAPPED
        if name not in form.eventing.formats:
            raise FaultRaised(FORMAT_UNAVAILABLE, details=form.eventing.formats)
        wrapped = name == WRAPPED
    if "Filter" in parts:
        raise FaultRaised(NO_FILTERING)
    targets = [child for child in delivery if name_of(child) == (form.eventing.namespace, "NotifyTo")]
    if len(targets) != 1:
        raise FaultRaised(NO_DELIVERY, "Delivery has one element NotifyTo.")
    end_to = _reference(form, parts["EndTo"]) if "EndTo" in parts else None
    return Subscribe(_reference(form, targets[0]), end_to, wrapped, _expires(parts))


def _renew(form: MessageForm, content: Element) -> Renew:
    return Renew(_expires(_children(form, content, ("Expires",))))


_READERS: Mapping[str, Callable[[MessageForm, Element], SinkRequestBody]] = {
    "Subscribe": _subscribe,
    "Renew": _renew,
    "GetStatus": lambda form, content: GetStatus(),
    "Unsubscribe": lambda form, content: Unsubscribe(),
}


def _children(form: MessageForm, parent: Element, names: Sequence[str]) -> dict[str, Element]:
    """Return the children of WS-Eventing by name; elements of other namespaces are extensions, and are passed over."""
    found: dict[str, Element] = {}
    for child in parent:
        namespace, name = name_of(child)
        if namespace != form.eventing.namespace:
            continue
        if name not in names or name in found:
            raise MalformedXml("it has an element of WS-Eventing that is not expected there, or twice")
        found[name] = child
    return found


def _expires(parts: dict[str, Element]) -> Expires | None:
    if "Expires" not in parts:
        return None
    element = parts["Expires"]
    return Expires(_text(element), _attribute(element, "BestEffort") in _TRUE)


def _reference(form: MessageForm, element: Element) -> EndpointReference:
    """Read an endpoint reference with its reference parameters, and in 2004/08 its reference properties."""
    address, parameters = "", []
    for child in element:
        namespace, name = name_of(child)
        if namespace != form.addressing.namespace:
            continue
        if name == "Address":
            address = _text(child)
        elif name in ("ReferenceParameters", "ReferenceProperties"):
            parameters += [etree.tostring(one, encoding="utf-8", with_tail=False) for one in child]
    if not address:
        raise FaultRaised(UNUSABLE_ADDRESS, "An endpoint reference has an address.")
    if len(parameters) > PARAMETERS_MAX or sum(map(len, parameters)) > PARAMETER_BYTES_MAX:
        raise FaultRaised(UNUSABLE_ADDRESS, "An endpoint reference has too many reference parameters.")
    return EndpointReference(address, tuple(parameters))


def _marked(form: MessageForm, header: Sequence[Element]) -> tuple[tuple[tuple[str, str], str], ...]:
    """Return name and text of the headers that may be reference parameters: those of other namespaces without elements."""
    ours = (form.addressing.namespace, form.soap.namespace)
    return tuple((name_of(one), _text(one)) for one in header if name_of(one)[0] not in ours and not len(one))


def _text(element: Element) -> str:
    text = text_of(element)
    if len(text) > TEXT_CHARS_MAX:
        raise MalformedXml(f"a text has more than {TEXT_CHARS_MAX} characters")
    return text


def _attribute(element: Element, name: str) -> str:
    value = element.get(name, "").strip()
    if len(value) > TEXT_CHARS_MAX:
        raise MalformedXml(f"an attribute has more than {TEXT_CHARS_MAX} characters")
    return value
