"""What the forms of answers are made of."""

from __future__ import annotations

from typing import Any

from eventing.core.events.cursors import OFFSET_MAX


def ref(name: str) -> dict[str, str]:
    """A reference to a schema below."""
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(optional: tuple[str, ...] = (), **members: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": members,
        "required": [name for name in members if name not in optional],
    }


TEXT: dict[str, Any] = {"type": "string"}

TEXT_OR_NULL: dict[str, Any] = {"type": ["string", "null"]}

TIME: dict[str, Any] = {"type": "string", "format": "date-time"}

TIME_OR_NULL: dict[str, Any] = {"type": ["string", "null"], "format": "date-time"}

COUNT: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": OFFSET_MAX}

TRUTH: dict[str, Any] = {"type": "boolean"}

BASE64: dict[str, Any] = {"type": "string", "contentEncoding": "base64"}

PLACE: dict[str, dict[str, Any]] = {
    "epoch": {"type": "string", "description": "Life of the log's numbering; another epoch is another log."},
    "offset": {"type": "integer", "minimum": 0, "description": "Place of the last event; 0 before the first."},
    "cursor": {"type": "string", "description": "What a reader holds to continue; opaque."},
}


def page_of(name: str) -> dict[str, Any]:
    return object_of(
        items={"type": "array", "items": ref(name)}, next={**TEXT_OR_NULL, "description": "null: the last."}
    )
