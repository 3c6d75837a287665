"""The dialects of WS-Eventing, WS-Addressing and SOAP, and what differs between them, as data. Pure.

A message is in one form of each, and is answered in the same three. DPWS and SDC devices use the eventing namespace of 2004
with the addressing of 2005; the Recommendation of 2011 is used with the addressing of 2005 only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class SoapVersion:
    """A version of SOAP.

    Attributes:
        content_type: of messages; SOAP 1.1 states the action in a header of its own.
        sender, receiver: names of the fault codes.
    """

    namespace: str
    content_type: str
    sender: str
    receiver: str


SOAP_11 = SoapVersion("http://schemas.xmlsoap.org/soap/envelope/", "text/xml; charset=utf-8", "Client", "Server")
SOAP_12 = SoapVersion(
    "http://www.w3.org/2003/05/soap-envelope", "application/soap+xml; charset=utf-8", "Sender", "Receiver"
)
SOAP: Mapping[str, SoapVersion] = MappingProxyType({one.namespace: one for one in (SOAP_11, SOAP_12)})


@dataclass(frozen=True, slots=True)
class Addressing:
    """A version of WS-Addressing.

    Attributes:
        anonymous: the address that means the same HTTP exchange.
        none: the address that means no answer; empty if there is none.
        marked: whether a reference parameter in a header carries IsReferenceParameter.
        fault_action: action of a fault of the 2004 dialect of eventing.
        soap_fault_action: action of a fault that SOAP itself defines.
    """

    namespace: str
    anonymous: str
    none: str
    marked: bool
    fault_action: str
    soap_fault_action: str


_WSA_2004 = "http://schemas.xmlsoap.org/ws/2004/08/addressing"
_WSA_2005 = "http://www.w3.org/2005/08/addressing"
ADDRESSING_2004 = Addressing(
    _WSA_2004, f"{_WSA_2004}/role/anonymous", "", False, f"{_WSA_2004}/fault", f"{_WSA_2004}/fault"
)
ADDRESSING_2005 = Addressing(
    _WSA_2005, f"{_WSA_2005}/anonymous", f"{_WSA_2005}/none", True, f"{_WSA_2005}/fault", f"{_WSA_2005}/soap/fault"
)
ADDRESSING: Mapping[str, Addressing] = MappingProxyType(
    {one.namespace: one for one in (ADDRESSING_2004, ADDRESSING_2005)}
)


@dataclass(frozen=True, slots=True)
class EventingDialect:
    """A dialect of WS-Eventing.

    Attributes:
        year: 2004 or 2011.
        addressings: versions of WS-Addressing with which it is used.
        expires: name of the element with the granted lease.
        push_mode: the delivery mode that is supported; empty if the dialect has none.
        formats: names of the formats of delivery; empty if the dialect has none.
        zero_is_endless: whether a duration of zero asks for a subscription without end. In 2004 it is a fault.
        exact: whether a lease other than the requested one is granted only with BestEffort.
        fault_action: action of faults; empty: that of the version of WS-Addressing.
    """

    year: int
    namespace: str
    addressings: tuple[Addressing, ...]
    expires: str
    push_mode: str
    formats: tuple[str, ...]
    zero_is_endless: bool
    exact: bool
    fault_action: str

    def action(self, name: str) -> str:
        """Return the action URI of a message."""
        return f"{self.namespace}/{name}"


_WSE_2004 = "http://schemas.xmlsoap.org/ws/2004/08/eventing"
_WSE_2011 = "http://www.w3.org/2011/03/ws-evt"
UNWRAPPED, WRAPPED = f"{_WSE_2011}/DeliveryFormats/Unwrap", f"{_WSE_2011}/DeliveryFormats/Wrap"
EVENTING_2004 = EventingDialect(
    2004,
    _WSE_2004,
    (ADDRESSING_2004, ADDRESSING_2005),
    "Expires",
    f"{_WSE_2004}/DeliveryModes/Push",
    (),
    False,
    False,
    "",
)
EVENTING_2011 = EventingDialect(
    2011,
    _WSE_2011,
    (ADDRESSING_2005,),
    "GrantedExpires",
    "",
    (UNWRAPPED, WRAPPED),
    True,
    True,
    f"{_WSE_2011}/fault",
)
DIALECTS: Mapping[str, EventingDialect] = MappingProxyType(
    {one.namespace: one for one in (EVENTING_2004, EVENTING_2011)}
)


@dataclass(frozen=True, slots=True)
class MessageForm:
    """The three dialects of a message, in which it is answered too."""

    soap: SoapVersion
    addressing: Addressing
    eventing: EventingDialect
