"""TypeScript declarations of shapes, made of their JSON Schemas: portal/web/shapes.d.ts and client/js/answers.d.ts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from admin_rp.shapes import DomainSnapshot, RpSnapshot
from eventing.core.shapes import Shape, components
from eventing.gateway.shapes import CloudEventAnswer, PublishedAnswer
from eventing.membership.map_shapes import MapSnapshot
from eventing.membership.shapes import (
    OverlayAnswer,
    OverlayDomainAnswer,
    OverlayDomainExplanation,
    OverlayLinkList,
)
from eventing.operations.shapes import GatewaySampleData
from eventing.peering.shapes import PeerAnswer
from eventing.replication.shapes import EventPathAnswer
from eventing.rest.shapes import LeaseAnswer

FILES: Final[Mapping[str, tuple[type[Shape], ...]]] = {
    "portal/web/shapes.d.ts": (
        DomainSnapshot,
        RpSnapshot,
        GatewaySampleData,
        PeerAnswer,
        OverlayAnswer,
        OverlayLinkList,
        OverlayDomainAnswer,
        OverlayDomainExplanation,
        EventPathAnswer,
        MapSnapshot,
    ),
    "client/js/answers.d.ts": (CloudEventAnswer, PublishedAnswer, LeaseAnswer),
}
"""The files, each with the shapes that it declares, together with those that they consist of."""
HEAD: Final = "// Made by `manage.py typescript` from the shapes of answers; `make check` keeps it current.\n"
_PLAIN: Final = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def declarations(shapes: tuple[type[Shape], ...]) -> str:
    """Declare `shapes`, and those that they consist of, as interfaces."""
    return HEAD + "".join(_interface(name, schema) for name, schema in components(*shapes).items())


def _interface(name: str, schema: Mapping[str, Any]) -> str:
    members = "".join(
        f"{_comment(one, '  ')}  {member}{'' if member in schema['required'] else '?'}: {_type(one)};\n"
        for member, one in schema["properties"].items()
    )
    return f"\n{_comment(schema)}export interface {name} {{\n{members}}}\n"


def _comment(schema: Mapping[str, Any], indent: str = "") -> str:
    return f"{indent}/** {schema['description']} */\n" if "description" in schema else ""


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(one) for one in schema["anyOf"])
    kinds = schema.get("type", [])
    return " | ".join(_one(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)) or "unknown"


def _one(kind: str, schema: Mapping[str, Any]) -> str:
    if kind == "array":
        of = _type(schema["items"])
        return f"({of})[]" if "|" in of else f"{of}[]"
    if kind == "object":
        members = schema.get("additionalProperties")
        return f"Record<string, {_type(members) if isinstance(members, Mapping) else 'unknown'}>"
    return _PLAIN[kind]
