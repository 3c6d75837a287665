"""WSDL 1.1 of the event source and the subscription manager, with bindings to SOAP 1.2 and 1.1, in either dialect. Pure.

The documents of the specifications have port types without bindings, which no generic client can call. Types are stated in the
document itself, as far as the messages here have them, so that a client fetches nothing else.
"""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from eventing.subscriptions.push.ws_eventing.dialects import ADDRESSING_2004, Addressing, EventingDialect
from eventing.subscriptions.push.ws_eventing.notifications import EVENT_ACTION, WRAPPED_ACTION

SOURCE_OPERATIONS = ("Subscribe",)
MANAGER_OPERATIONS = ("Renew", "GetStatus", "Unsubscribe")
_HTTP = "http://schemas.xmlsoap.org/soap/http"


def wsdl_document(dialect: EventingDialect, addressing: Addressing, *, source: str = "", manager: str = "") -> bytes:
    """Make the document.

    Args:
        source: address of the event source, for its service; empty for none.
        manager: address of the subscription manager of one subscription, for its service; empty for none.
    """
    operations = {"EventSource": SOURCE_OPERATIONS, "SubscriptionManager": MANAGER_OPERATIONS}
    addresses = {"EventSource": source, "SubscriptionManager": manager}
    parts = [_types(dialect, addressing)]
    for name in (*SOURCE_OPERATIONS, *MANAGER_OPERATIONS):
        parts += _messages(dialect, name)
    parts += _sink_messages(dialect)
    parts += [_port_type(dialect, port, operations[port]) for port in operations]
    parts += _sink_port_types(dialect)
    for port, names in operations.items():
        parts += [_binding(dialect, port, names, version) for version in ("12", "11")]
    parts += [_service(port, address) for port, address in addresses.items() if address]
    wse = dialect.namespace
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<wsdl:definitions xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/" xmlns:xs="http://www.w3.org/2001/XMLSchema"'
        ' xmlns:soap11="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:soap12="http://schemas.xmlsoap.org/wsdl/soap12/"'
        ' xmlns:wsaw="http://www.w3.org/2006/05/addressing/wsdl" xmlns:wsam="http://www.w3.org/2007/05/addressing/metadata"'
        f' xmlns:wsa="{addressing.namespace}" xmlns:wse="{wse}" targetNamespace="{wse}">\n'
        + "\n".join(parts)
        + "\n</wsdl:definitions>\n"
    ).encode()


def _types(dialect: EventingDialect, addressing: Addressing) -> str:
    return f"<wsdl:types>\n{_addressing_schema(addressing)}\n{_eventing_schema(dialect, addressing)}\n</wsdl:types>"


def _addressing_schema(addressing: Addressing) -> str:
    anything = '<xs:sequence><xs:any namespace="##any" processContents="lax" minOccurs="0" maxOccurs="unbounded"/></xs:sequence>'
    properties = ""
    if addressing is ADDRESSING_2004:
        properties = '<xs:element name="ReferenceProperties" type="wsa:ReferenceParametersType" minOccurs="0"/>'
    return (
        f'<xs:schema targetNamespace="{addressing.namespace}" elementFormDefault="qualified">'
        f'<xs:complexType name="ReferenceParametersType">{anything}</xs:complexType>'
        '<xs:complexType name="EndpointReferenceType"><xs:sequence><xs:element name="Address" type="xs:anyURI"/>'
        f'{properties}<xs:element name="ReferenceParameters" type="wsa:ReferenceParametersType" minOccurs="0"/>'
        '<xs:any namespace="##other" processContents="lax" minOccurs="0" maxOccurs="unbounded"/>'
        "</xs:sequence></xs:complexType>"
        '<xs:element name="EndpointReference" type="wsa:EndpointReferenceType"/></xs:schema>'
    )


def _eventing_schema(dialect: EventingDialect, addressing: Addressing) -> str:
    new = dialect.year == 2011
    reference, granted = "wsa:EndpointReferenceType", dialect.expires
    expires = '<xs:element name="Expires" type="wse:ExpirationType" minOccurs="0"/>'
    grant = f'<xs:element name="{granted}" type="{"xs:string" if new else "wse:ExpirationType"}"/>'
    mode = "" if new else '<xs:attribute name="Mode" type="xs:anyURI"/>'
    wish = '<xs:attribute name="BestEffort" type="xs:boolean"/>' if new else ""
    form = ""
    if new:
        form = (
            '<xs:element name="Format" minOccurs="0"><xs:complexType><xs:attribute name="Name" type="xs:anyURI"/>'
            "</xs:complexType></xs:element>"
        )
    target = (
        f'<xs:element name="NotifyTo" type="{reference}"/><xs:complexType name="DeliveryType"><xs:sequence>'
        f'<xs:element ref="wse:NotifyTo" minOccurs="0"/></xs:sequence>{mode}</xs:complexType>'
    )
    manager = f'<xs:element name="SubscriptionManager" type="{reference}"/>'
    bodies = {
        "Subscribe": f'<xs:element name="EndTo" type="{reference}" minOccurs="0"/>'
        f'<xs:element name="Delivery" type="wse:DeliveryType"/>{form}{expires}',
        "SubscribeResponse": manager + grant,
        "Renew": expires,
        "RenewResponse": grant,
        "GetStatus": "",
        "GetStatusResponse": grant,
        "Unsubscribe": "",
        **({"UnsubscribeResponse": ""} if new else {}),
        "SubscriptionEnd": ("" if new else manager)
        + '<xs:element name="Status" type="xs:anyURI"/>'
        + '<xs:element name="Reason" type="xs:string" minOccurs="0" maxOccurs="unbounded"/>',
        **({"Notify": '<xs:any namespace="##other" processContents="lax" minOccurs="0"/>'} if new else {}),
    }
    actions = {"Notify": '<xs:attribute name="actionURI" type="xs:anyURI"/>'}
    elements = "".join(
        f'<xs:element name="{name}"><xs:complexType><xs:sequence>{inside}</xs:sequence>{actions.get(name, "")}'
        "</xs:complexType></xs:element>"
        for name, inside in bodies.items()
    )
    return (
        f'<xs:schema targetNamespace="{dialect.namespace}" elementFormDefault="qualified">'
        f'<xs:import namespace="{addressing.namespace}"/>'
        f'<xs:complexType name="ExpirationType"><xs:simpleContent><xs:extension base="xs:string">{wish}</xs:extension>'
        f"</xs:simpleContent></xs:complexType>{target}{elements}</xs:schema>"
    )


def _messages(dialect: EventingDialect, name: str) -> list[str]:
    answer = f'<wsdl:part name="body" element="wse:{name}Response"/>'
    if name == "Unsubscribe" and dialect.year == 2004:
        answer = ""  # the body of its answer is empty
    return [
        f'<wsdl:message name="{name}Msg"><wsdl:part name="body" element="wse:{name}"/></wsdl:message>',
        f'<wsdl:message name="{name}ResponseMsg">{answer}</wsdl:message>',
    ]


def _sink_messages(dialect: EventingDialect) -> list[str]:
    names = ("SubscriptionEnd", "Notify") if dialect.year == 2011 else ("SubscriptionEnd",)
    return [
        f'<wsdl:message name="{name}Msg"><wsdl:part name="body" element="wse:{name}"/></wsdl:message>' for name in names
    ]


def _port_type(dialect: EventingDialect, port: str, names: tuple[str, ...]) -> str:
    operations = "".join(
        f'<wsdl:operation name="{name}Op">'
        f'<wsdl:input message="wse:{name}Msg" {_actions(dialect.action(name))}/>'
        f'<wsdl:output message="wse:{name}ResponseMsg" {_actions(dialect.action(f"{name}Response"))}/></wsdl:operation>'
        for name in names
    )
    return f'<wsdl:portType name="{port}">{operations}</wsdl:portType>'


def _sink_port_types(dialect: EventingDialect) -> list[str]:
    """Make the port types that sinks offer; they have no binding here, since their addresses are theirs."""
    end = dialect.action("SubscriptionEnd")
    sinks = [("SubscriptionEndPortType", "SubscriptionEnd", "SubscriptionEnd", end)]
    if dialect.year == 2011:
        sinks.append(("WrappedSinkPortType", "NotifyEvent", "Notify", dialect.action(WRAPPED_ACTION)))
    return [
        f'<wsdl:portType name="{port}"><wsdl:operation name="{operation}"><wsdl:input message="wse:{message}Msg"'
        f" {_actions(action)}/></wsdl:operation></wsdl:portType>"
        for port, operation, message, action in sinks
    ] + [f"<!-- An unwrapped notification has the action {EVENT_ACTION} and the event as its body. -->"]


def _actions(action: str) -> str:
    """State an action in both vocabularies: that of WS-Addressing's metadata, and the one before, which tools read more often."""
    return f'wsam:Action="{action}" wsaw:Action="{action}"'


def _binding(dialect: EventingDialect, port: str, names: tuple[str, ...], version: str) -> str:
    soap = f"soap{version}"
    operations = "".join(
        f'<wsdl:operation name="{name}Op"><{soap}:operation soapAction="{dialect.action(name)}" style="document"/>'
        f'<wsdl:input><{soap}:body use="literal"/></wsdl:input><wsdl:output><{soap}:body use="literal"/></wsdl:output>'
        "</wsdl:operation>"
        for name in names
    )
    return (
        f'<wsdl:binding name="{port}Soap{version}" type="wse:{port}"><{soap}:binding style="document" transport="{_HTTP}"/>'
        f"<wsaw:UsingAddressing/>{operations}</wsdl:binding>"
    )


def _service(port: str, address: str) -> str:
    ports = "".join(
        f'<wsdl:port name="{port}Soap{version}" binding="wse:{port}Soap{version}">'
        f"<soap{version}:address location={quoteattr(address)}/></wsdl:port>"
        for version in ("12", "11")
    )
    return f'<wsdl:service name="{port}Service">{ports}</wsdl:service>'
