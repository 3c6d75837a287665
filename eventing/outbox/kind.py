"""Kinds of administrative events as the catalogue lists them: description, schema of the data, effects on a state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]
"""A JSON Schema (draft 2020-12), or a part of one."""

Effect = Mapping[str, Any]
"""One operation on a state; admin_rp/state.py defines its members."""

DOMAIN = "domain"
RP = "rp"
OVERLAY = "overlay"
ON_RP = (RP,)
ON_DOMAIN = (DOMAIN,)
ON_BOTH = (RP, DOMAIN)
ON_OVERLAY = (OVERLAY,)


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of administrative event.

    Attributes:
        about: meaning of the event, one sentence.
        where: the administrative RPs at which it is published: ON_RP (`ID.admin`), ON_DOMAIN (`domain.admin`), ON_BOTH,
            ON_OVERLAY (`overlay.admin`).
        data: the members of its data, each with its JSON Schema; units are in the descriptions.
        optional: members that may be missing.
        effects: effects on the states, in order; () for events about something that no state holds.
    """

    about: str
    where: tuple[str, ...]
    data: Mapping[str, Schema]
    optional: frozenset[str] = frozenset()
    effects: tuple[Effect, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the event's data."""
        return obj(self.data, optional=self.optional)


def obj(members: Mapping[str, Schema], about: str = "", *, optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Make the schema of an object with exactly these members."""
    made: dict[str, Any] = {
        "type": "object",
        "properties": dict(members),
        "required": [name for name in members if name not in optional],
        "additionalProperties": False,
    }
    return {**made, "description": about} if about else made


def text(about: str, *, of: tuple[str, ...] = ()) -> dict[str, Any]:
    """Schema of a string; `of`: the allowed values."""
    return {"type": "string", "description": about, **({"enum": list(of)} if of else {})}


def count(about: str) -> dict[str, Any]:
    """Schema of a whole number, 0 or more."""
    return {"type": "integer", "minimum": 0, "description": about}


def number(about: str) -> dict[str, Any]:
    """Schema of a number, 0 or more."""
    return {"type": "number", "minimum": 0, "description": about}


def moment(about: str) -> dict[str, Any]:
    """Schema of a point in time."""
    return {"type": "string", "format": "date-time", "description": f"{about}; RFC 3339 in UTC, microseconds"}


def truth(about: str) -> dict[str, Any]:
    """Schema of a boolean."""
    return {"type": "boolean", "description": about}


def items(of: Schema, about: str, *, most: int) -> dict[str, Any]:
    """Schema of a list of at most `most` items."""
    return {"type": "array", "items": dict(of), "maxItems": most, "description": about}


def table(of: Schema, about: str) -> dict[str, Any]:
    """Schema of an object whose member names are data."""
    return {"type": "object", "additionalProperties": dict(of), "description": about}


def or_null(schema: Schema) -> dict[str, Any]:
    """Schema of the same, or null."""
    made = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        made["enum"] = [*schema["enum"], None]
    return made
