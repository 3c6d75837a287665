"""The tables of docs/administrative-events.md, made from the catalogue; the words around them are written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from admin_rp.catalogue import CATALOGUE
from eventing.outbox.kind import DOMAIN, RP, Kind

BEGIN = "<!-- Made by `manage.py administrative_events --write` from the events of each subject; a test keeps it current. -->"
END = "<!-- End of what is made. -->"
_PLACES = {RP: "`ID.admin`", DOMAIN: "`domain.admin`"}


def tables() -> str:
    """A section for each kind: what it says, where, its data, and which members of a state it changes."""
    return "\n".join([BEGIN, "", *(_section(name, kind) for name, kind in CATALOGUE.items()), END])


def filled(document: str) -> str:
    """`document` with its tables as they are now. Raises ValueError if it has no place for them."""
    before, mark, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise ValueError("The document has no place for the tables.")
    return before + tables() + after


def _section(name: str, kind: Kind) -> str:
    lines = [
        f"### {name}",
        "",
        f"{kind.about} At {' and '.join(_PLACES[place] for place in kind.where)}. {_changes(kind)}",
        "",
        "| data | type | |",
        "|---|---|---|",
        *(_row(member, schema, member in kind.optional) for member, schema in kind.data.items()),
        "",
    ]
    return "\n".join(lines)


def _changes(kind: Kind) -> str:
    members = sorted({f"`{effect['at'][0]}`" for effect in kind.effects})
    return f"Changes {', '.join(members)}." if members else "Changes no state."


def _row(member: str, schema: Mapping[str, Any], optional: bool) -> str:
    about = schema.get("description", "")
    return f"| `{member}`{' (optional)' if optional else ''} | {_type(schema)} | {about}{_inner(schema)} |"


def _type(schema: Mapping[str, Any]) -> str:
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " or ".join("time" if kind == "string" and "format" in schema else kind for kind in kinds)


def _inner(schema: Mapping[str, Any]) -> str:
    """What an object or a list is made of, and the values that a word can have."""
    if "enum" in schema:
        return ": " + ", ".join(f"`{value}`" for value in schema["enum"] if value is not None)
    if "items" in schema:
        of = schema["items"]
        inner = "; each: " + _members(of) if "properties" in of else ""
        return f"; at most {schema['maxItems']}{inner}"
    return ": " + _members(schema) if "properties" in schema else ""


def _members(schema: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}`" for name in schema["properties"])
