"""Faults of WS-Eventing and WS-Addressing: which a dialect has, and their envelopes. Pure.

2004: member submission, section 4. 2011: Recommendation, section 6. A subscription that is not known has no fault of its own
in 2004: Renew is answered UnableToRenew, the others InvalidMessage, as deployed implementations do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eventing.subscriptions.push.ws_eventing.dialects import SOAP_12, MessageForm, SoapVersion
from eventing.subscriptions.push.ws_eventing.envelopes import Envelope
from eventing.subscriptions.push.ws_eventing.xml_library import etree

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
DETAILS_MAX = 8  # bound: elements of a fault's detail; the others are left out


@dataclass(frozen=True, slots=True)
class FaultKind:
    """A kind of fault.

    Attributes:
        name: local name of the subcode, in the namespace of the dialect, or of WS-Addressing if `addressing`.
        receiver: whether the domain is at fault, not the sender.
        detail: local name of the elements of the detail; empty for none.
        of_soap: whether `name` is a fault code of SOAP itself, without a subcode.
        plain: whether no dialect has a subcode for it.
    """

    name: str
    reason: str
    receiver: bool = False
    detail: str = ""
    addressing: bool = False
    of_soap: bool = False
    plain: bool = False


MODE_UNAVAILABLE = FaultKind(
    "DeliveryModeRequestedUnavailable",
    "The requested delivery mode is not supported.",
    detail="SupportedDeliveryMode",
)
FORMAT_UNAVAILABLE = FaultKind(
    "DeliveryFormatRequestedUnavailable",
    "The requested delivery format is not supported.",
    detail="SupportedDeliveryFormat",
)
NO_DELIVERY = FaultKind("NoDeliveryMechanismEstablished", "The subscription states no address to notify.")
INVALID_EXPIRATION = FaultKind("InvalidExpirationTime", "The expiration time requested is invalid.")
EXPIRATION_TYPE = FaultKind("UnsupportedExpirationType", "Only expiration durations are supported.")
EXPIRATION_VALUE = FaultKind("UnsupportedExpirationValue", "The expiration requested is not granted exactly.")
NO_FILTERING = FaultKind("FilteringNotSupported", "Filtering is not supported.")
INVALID_MESSAGE = FaultKind("InvalidMessage", "The message is not valid and cannot be processed.")
UNKNOWN_SUBSCRIPTION = FaultKind("UnknownSubscription", "The subscription is not known.")
UNABLE_TO_RENEW = FaultKind("UnableToRenew", "The subscription could not be renewed.", receiver=True)
UNABLE = FaultKind("EventSourceUnableToProcess", "The event source cannot process the subscription.", receiver=True)
UNUSABLE_ADDRESS = FaultKind("UnusableEPR", "An endpoint reference cannot be used.")
ACTION_UNKNOWN = FaultKind("ActionNotSupported", "The action is not supported here.", addressing=True)
HEADER_MISSING = FaultKind(
    "MessageAddressingHeaderRequired", "A required addressing header is missing.", addressing=True
)

NOT_UNDERSTOOD = FaultKind("MustUnderstand", "A header that must be understood is not understood here.", of_soap=True)

VERSION_MISMATCH = FaultKind("VersionMismatch", "The message is of a version of SOAP that is not spoken.", of_soap=True)
REFUSED = FaultKind("Refused", "The request is refused.", plain=True)
UNAVAILABLE = FaultKind("Unavailable", "The request cannot be served now.", receiver=True, plain=True)

ONLY_2004 = frozenset({MODE_UNAVAILABLE, INVALID_EXPIRATION, INVALID_MESSAGE, UNABLE_TO_RENEW, UNABLE})
ONLY_2011 = frozenset({FORMAT_UNAVAILABLE, NO_DELIVERY, EXPIRATION_VALUE, UNKNOWN_SUBSCRIPTION, UNUSABLE_ADDRESS})


class FaultRaised(Exception):
    """A request is answered with a fault.

    Args:
        kind: the kind.
        reason: what is wrong, for people; empty: the kind's.
        details: texts of the elements of the detail.
        retry_after_s: of the dialect of 2011: when a retry may succeed, seconds.
    """

    def __init__(
        self, kind: FaultKind, reason: str = "", details: Sequence[str] = (), retry_after_s: int | None = None
    ) -> None:
        super().__init__(reason or kind.reason)
        self.kind = kind
        self.reason = reason or kind.reason
        self.details = tuple(details[:DETAILS_MAX])
        self.retry_after_s = retry_after_s


def fault_of(kind: FaultKind, form: MessageForm) -> FaultKind | None:
    """Return the fault of this dialect that stands for `kind`; None for a SOAP fault without a subcode."""
    year = form.eventing.year
    if kind.plain:
        return None
    if year == 2004 and kind in ONLY_2011:
        return {
            UNKNOWN_SUBSCRIPTION: INVALID_MESSAGE,
            EXPIRATION_VALUE: INVALID_EXPIRATION,
            FORMAT_UNAVAILABLE: MODE_UNAVAILABLE,
        }.get(kind, INVALID_MESSAGE)
    if year == 2011 and kind in ONLY_2004:
        return {INVALID_EXPIRATION: EXPIRATION_VALUE, MODE_UNAVAILABLE: FORMAT_UNAVAILABLE}.get(kind)
    return kind


def fault_message(form: MessageForm, fault: FaultRaised, *, message_id: str, relates_to: str) -> bytes:
    """Make the envelope of a fault, which is answered with `fault_status`.

    Args:
        message_id: a fresh id.
        relates_to: id of the request; empty if it states none.
    """
    kind = fault_of(fault.kind, form)
    action = form.eventing.fault_action or form.addressing.fault_action
    if kind is not None and kind.addressing:
        action = form.addressing.fault_action
    elif kind is None or kind.of_soap:
        action = form.addressing.soap_fault_action
    made = Envelope(form, action, message_id=message_id, relates_to=relates_to)
    soap = form.soap
    code = soap.receiver if fault.kind.receiver else soap.sender
    subcode = None
    if fault.kind.of_soap:
        code = fault.kind.name
    elif kind is not None:
        subcode = f"{'wsa' if kind.addressing else 'wse'}:{kind.name}"
    _fault_append(made.body, soap, code, subcode, fault.reason, _details(made, kind, fault))
    return made.encoded()


def unaddressed_fault(soap: SoapVersion, fault: FaultRaised) -> bytes:
    """Make the envelope of a fault about a message in which no form of addressing was found."""
    root = etree.Element(f"{{{soap.namespace}}}Envelope", nsmap={"s": soap.namespace})
    body = etree.SubElement(root, f"{{{soap.namespace}}}Body")
    code = fault.kind.name if fault.kind.of_soap else soap.receiver if fault.kind.receiver else soap.sender
    _fault_append(body, soap, code, None, fault.reason, [])
    return etree.tostring(root, encoding="utf-8", xml_declaration=True)


def fault_status(form: MessageForm, fault: FaultRaised) -> int:
    """Return the HTTP status of a fault: SOAP 1.2 part 2, section 7.5.2.2, has 400 for senders; SOAP 1.1, section 6.2, 500 for all."""
    return 400 if form.soap is SOAP_12 and not (fault.kind.receiver or fault.kind.of_soap) else 500


def _fault_append(
    parent: etree._Element,
    soap: SoapVersion,
    code: str,
    subcode: str | None,
    reason: str,
    details: Sequence[etree._Element],
) -> None:
    def child(above: etree._Element, name: str, text: str | None = None) -> etree._Element:
        made = etree.SubElement(above, f"{{{soap.namespace}}}{name}")
        made.text = text
        return made

    body = child(parent, "Fault")
    if soap is SOAP_12:
        stated = child(body, "Code")
        child(stated, "Value", f"s:{code}")
        if subcode is not None:
            child(child(stated, "Subcode"), "Value", subcode)
        child(child(body, "Reason"), "Text", reason).set(XML_LANG, "en")
        if details:
            child(body, "Detail").extend(details)
    else:
        etree.SubElement(body, "faultcode").text = subcode or f"s:{code}"
        etree.SubElement(body, "faultstring").text = reason
        if details:
            etree.SubElement(body, "detail").extend(details)


def _details(made: Envelope, kind: FaultKind | None, fault: FaultRaised) -> list[etree._Element]:
    found = []
    if kind is not None and kind.detail:
        for text in fault.details:
            found.append(made.element(kind.detail, text))
    if fault.retry_after_s is not None and made.form.eventing.year == 2011:
        found.append(made.element("RetryAfter", str(fault.retry_after_s)))
    return found
