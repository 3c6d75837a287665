"""The shapes of answers and of administrative events: types, and the JSON Schemas made of them.

A shape is stated once. From it are made the JSON of an answer, its component in the OpenAPI document, the schema of an
administrative event's data, and the console's TypeScript declarations.

    class LeaseAnswer(Shape):
        \"\"\"A lease.\"\"\"

        granted_s: Annotated[Count, doc("Seconds granted.")]
        expires_at: Moment

A component is named as the class, without the suffix `Answer`. Shapes that only administrative events show have the suffix
`Data`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Self, cast

import msgspec

from eventing.core.events.cursors import OFFSET_MAX
from eventing.core.timestamps import timestamp

REF: Final = "#/components/schemas/{name}"
_NONE: Final = object()


def doc(description: str) -> msgspec.Meta:
    """Describe a member for people."""
    return msgspec.Meta(description=description)


def one_of(*values: str) -> msgspec.Meta:
    """State which texts a member may have."""
    return msgspec.Meta(extra_json_schema={"enum": list(values)})


Count = Annotated[int, msgspec.Meta(ge=0, le=OFFSET_MAX)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Number = Annotated[float, msgspec.Meta(ge=0)]
Base64 = Annotated[str, msgspec.Meta(extra_json_schema={"contentEncoding": "base64"})]
Moment = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
"""RFC 3339 in UTC with microseconds: `timestamp` writes it."""


class Shape(msgspec.Struct):
    """Base of all shapes. A member with the default `msgspec.UNSET` may be missing."""

    @classmethod
    def of(cls, source: object, /, **stated: Any) -> Self:
        """Build from `stated` members, and the others from the attributes of `source` that have their names.

        A datetime becomes a Moment. Raises TypeError if a member is neither stated nor an attribute, unless it may be missing.
        """
        for name in cls.__struct_fields__:
            if name not in stated and (value := getattr(source, name, _NONE)) is not _NONE:
                stated[name] = timestamp(value) if isinstance(value, datetime) else value
        return cls(**stated)


class PageAnswer(Shape):
    """A page of a list."""

    next: Annotated[str | None, doc("The cursor of the next page; null: this is the last.")]


def page_of(item: type[Shape]) -> type[PageAnswer]:
    """Make the shape of a page of `item`s."""
    name = f"{component_name(item.__name__)}PageAnswer"
    fields = [("items", list[item])]  # type: ignore[valid-type]
    return cast(type[PageAnswer], msgspec.defstruct(name, fields, bases=(PageAnswer,)))


def component_name(name: str) -> str:
    """Name the component of the class called `name`."""
    return name.removesuffix("Answer")


def components(*shapes: Any) -> dict[str, dict[str, Any]]:
    """Make the OpenAPI components of `shapes` and of what they consist of, by name."""
    made = msgspec.json.schema_components(shapes, ref_template=REF)[1]
    return {component_name(name): _tidied(schema) for name, schema in made.items()}


def closed_schema(shape: type[Shape], description: str = "") -> dict[str, Any]:
    """Make the JSON Schema of `shape` for administrative events: in one piece, and without further members."""
    made = components(shape)

    def whole(schema: Any) -> Any:
        if isinstance(schema, list):
            return [whole(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        schema = dict(schema)
        reference = schema.pop("$ref", None)
        if "anyOf" in schema:  # a shape or null
            reference = schema.pop("anyOf")[0]["$ref"]
            schema["type"] = ["object", "null"]
        if reference:
            schema = {**made[reference.rpartition("/")[2]], **schema}
        closed = {"additionalProperties": False} if "properties" in schema else {}
        return {name: whole(one) for name, one in schema.items()} | closed

    found: dict[str, Any] = whole(made[component_name(shape.__name__)])
    return {**found, "description": description} if description else found


def _tidied(schema: Any) -> Any:
    """Name references after components, drop titles, and write `T or null` as one type where T is a plain one."""
    if isinstance(schema, list):
        return [_tidied(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {name: _tidied(one) for name, one in schema.items() if name != "title" or not isinstance(one, str)}
    if isinstance(reference := made.get("$ref"), str):
        made["$ref"] = component_name(reference)
    options = made.get("anyOf", [])
    if len(options) == 2 and isinstance(options[0].get("type"), str) and options[1] == {"type": "null"}:
        del made["anyOf"]
        made |= {**options[0], "type": [options[0]["type"], "null"]}
        if "enum" in made:
            made["enum"] = [*made["enum"], None]
    return made
