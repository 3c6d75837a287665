"""The published schemas, as the package sdc11073 carries them."""

from __future__ import annotations

from importlib import resources
from typing import Any

from lxml import etree

from tests.subscriptions.push.ws_eventing.messages import DPWS


class _Bundled(etree.Resolver):
    """Finds the imports of the published schemas in the package, and refuses the network."""

    def resolve(self, url: str, public_id: str, context: Any) -> Any:  # type: ignore[override]  # the stubs lack it
        name = url.rpartition("/")[2]
        found: Any = self
        return found.resolve_string((resources.files("sdc11073") / "xsd" / name).read_text(), context)


def published_schema() -> etree.XMLSchema:
    """The published schemas of SOAP 1.2, WS-Addressing 2005/08 and WS-Eventing 2004/08 together."""
    parser = etree.XMLParser(no_network=True)
    parser.resolvers.add(_Bundled())
    imports = {
        DPWS.soap.namespace: "soap-envelope.xsd",
        DPWS.addressing.namespace: "ws-addr.xsd",
        DPWS.eventing.namespace: "eventing.xsd",
    }
    lines = "".join(f'<xs:import namespace="{name}" schemaLocation="{file}"/>' for name, file in imports.items())
    whole = f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{lines}</xs:schema>'
    return etree.XMLSchema(etree.fromstring(whole, parser))
