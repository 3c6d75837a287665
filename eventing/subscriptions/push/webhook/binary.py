"""CloudEvents in the binary mode of the HTTP binding, made of stored events: ce- fields, and the data as the body."""

from __future__ import annotations

import base64
import re
from urllib.parse import quote_from_bytes

import msgspec

from eventing.core.decoding import Undecodable, json_reader

FIELDS_CHARS_MAX = 8192  # bound: characters of all ce- fields of a request; the event is sent in structured mode
_read_members = json_reader(dict[str, msgspec.Raw])
_read_value = json_reader(object)
_SAFE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')
_STRING = re.compile(rb'"(?:[\x20\x21\x23-\x5b\x5d-\x7e])*"')
JSON_TYPE = "application/json"

BinaryForm = tuple[tuple[tuple[str, str], ...], str, bytes]


def binary_form(event: bytes) -> BinaryForm | None:
    """Return the fields, the content type (empty for none) and the body of a stored event; None if its attributes are too
    long for fields.

    HTTP binding, section 3.1: JSON data is the body as it is stored, a string of another media type is its text.
    """
    try:
        members = _read_members(event)
    except Undecodable:
        return None
    fields: list[tuple[str, str]] = []
    kind = ""
    for name, raw in members.items():
        if name in ("data", "data_base64"):
            continue
        value = _text(bytes(raw))
        if value is None:
            continue
        if name == "datacontenttype":
            kind = value
        else:
            fields.append((f"ce-{name}", quote_from_bytes(value.encode(), safe=_SAFE)))
    if sum(len(name) + len(value) for name, value in fields) > FIELDS_CHARS_MAX or not kind.isascii():
        return None
    return tuple(fields), *_body(members, kind)


def _body(members: dict[str, msgspec.Raw], kind: str) -> tuple[str, bytes]:
    if "data_base64" in members and (text := _read_value(members["data_base64"])) is not None:
        return kind, base64.b64decode(str(text))
    data = bytes(members.get("data", b""))
    if not data:
        return kind, b""
    if kind and not _is_json(kind) and data.startswith(b'"'):
        return kind, str(_read_value(data)).encode()
    return kind or JSON_TYPE, data


def _is_json(kind: str) -> bool:
    media_type = kind.partition(";")[0].strip().lower()
    return media_type == JSON_TYPE or media_type.endswith("+json")


def _text(raw: bytes) -> str | None:
    """Return an attribute's text in canonical form; None for null, which means absent."""
    if _STRING.fullmatch(raw):
        return raw[1:-1].decode()
    value = _read_value(raw)
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
