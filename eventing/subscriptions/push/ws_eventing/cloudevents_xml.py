"""An event in the XML format of CloudEvents 1.0 (cloudevents/spec, formats/xml-format), as a notification carries it. Pure.

JSON data is carried as text: the data of an event is not interpreted. Text that XML 1.0 cannot carry is carried as base64.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from eventing.subscriptions.push.ws_eventing.xml_library import etree

NAMESPACE = "http://cloudevents.io/xmlformat/V1"
XSD, XSI = "http://www.w3.org/2001/XMLSchema", "http://www.w3.org/2001/XMLSchema-instance"
_TYPE = f"{{{XSI}}}type"
_NOT_XML = re.compile("[^\\x09\\x0a\\x0d\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def event_element(attributes: dict[str, str | int | bool], text: str | None, binary: bytes | None) -> etree._Element:
    """Make the element of an event.

    Args:
        attributes: all of the event, `specversion` included.
        text: the data as text, JSON or other; None for none.
        binary: the data as bytes; None for none.
    """
    prefixes: dict[Any, str] = {None: NAMESPACE, "xs": XSD, "xsi": XSI}
    root = etree.Element(_name("event"), nsmap=prefixes)
    root.set("specversion", str(attributes["specversion"]))
    for name, value in attributes.items():
        if name != "specversion":
            child = etree.SubElement(root, _name(name))
            child.text = _written(value)
            if not isinstance(value, str):
                child.set(_TYPE, "xs:boolean" if isinstance(value, bool) else "xs:int")
    if text is not None and _NOT_XML.search(text) is not None:
        binary, text = text.encode("utf-8", "surrogatepass"), None
    if text is not None:
        data = etree.SubElement(root, _name("data"))
        data.set(_TYPE, "xs:string")
        data.text = text
    elif binary is not None:
        data = etree.SubElement(root, _name("data"))
        data.set(_TYPE, "xs:base64Binary")
        data.text = base64.b64encode(binary).decode()
    return root


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    # An attribute has no control characters (core/events/cloudevents_attributes.py); noncharacters are the exception.
    return _NOT_XML.sub("\ufffd", str(value))


def _name(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"
