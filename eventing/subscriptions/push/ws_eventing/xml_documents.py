"""XML of strangers: parsed with lxml, without DTDs, entities and network, within bounds on size, depth and elements. Pure.

A document is UTF-8. It is searched for a document type before it is parsed, so that no entity is ever declared: neither
external ones (XXE) nor nested ones (billion laughs), which libxml2 would expand in attributes whatever its options.
"""

from __future__ import annotations

import re

from eventing.subscriptions.push.ws_eventing.xml_library import Element, etree

BYTES_MAX = 64 * 1024  # bound: bytes of a SOAP message; the message is refused
DEPTH_MAX = 32  # bound: nested elements of a SOAP message; the message is refused
ELEMENTS_MAX = 1000  # bound: elements of a SOAP message; the message is refused
_DECLARED = re.compile(r"""^\ufeff?<\?xml[^>]*\bencoding\s*=\s*["']([^"']*)["']""")
_FORBIDDEN = re.compile(r"<!(?:DOCTYPE|ENTITY|ELEMENT|ATTLIST|NOTATION)", re.IGNORECASE)


class MalformedXml(ValueError):
    """The bytes are not an XML document that is read here. The text is a phrase, without a full stop."""


class UnknownEnvelope(MalformedXml):
    """The root is an envelope of a version of SOAP that is not spoken here."""


def parse_xml(body: bytes) -> Element:
    """Parse a document and return its root, without comments and processing instructions. Raises MalformedXml."""
    if len(body) > BYTES_MAX:
        raise MalformedXml(f"it has more than {BYTES_MAX} bytes")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise MalformedXml("it is not UTF-8") from None
    declared = _DECLARED.match(text)
    if declared is not None and declared[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise MalformedXml("it declares an encoding other than UTF-8")
    if _FORBIDDEN.search(text):
        raise MalformedXml("it has a document type, which SOAP forbids")
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError):
        raise MalformedXml("it is not well-formed") from None
    _require_bounds(root)
    return root


def _require_bounds(root: Element) -> None:
    level, elements = [root], 0
    for _ in range(DEPTH_MAX):
        elements += len(level)
        if elements > ELEMENTS_MAX:
            raise MalformedXml(f"it has more than {ELEMENTS_MAX} elements")
        level = [child for element in level for child in element]
        if not level:
            return
    raise MalformedXml(f"it nests deeper than {DEPTH_MAX} elements")


def name_of(element: Element) -> tuple[str, str]:
    """Return namespace, empty for none, and local name of an element."""
    name = etree.QName(element)
    return name.namespace or "", name.localname


def text_of(element: Element) -> str:
    """Return an element's text without surrounding white space. Raises MalformedXml if it has elements."""
    if len(element):
        raise MalformedXml(f"{name_of(element)[1]} has text only")
    return (element.text or "").strip()
