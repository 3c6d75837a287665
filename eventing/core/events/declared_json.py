"""Validation of event data that is declared to be JSON: malformed data is refused, with line and column. Pure.

Data is declared to be JSON by a content type of JSON in UTF-8. Only breaches of JSON's grammar (RFC 8259) are refused.
Valid JSON that an event cannot carry as JSON (nested too deeply, or with half of a surrogate pair) is carried as
base64.
"""

from __future__ import annotations

import re

import msgspec

from eventing.core.decoding import NestedTooDeeply, Undecodable, json_position, json_reader
from eventing.core.errors import InvalidEvent
from eventing.core.events.cloudevents_attributes import split_media_type

JSON_CHARSETS = ("utf-8", "us-ascii")
_decode_raw = json_reader(msgspec.Raw)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def media_type_of(content_type: str | None) -> tuple[str, str]:
    """Split a content type into the lower-case media type, empty if none, and the lower-case charset, utf-8 if none."""
    split = split_media_type(content_type) if content_type is not None else None
    if split is None:
        return "", "utf-8"
    charsets = [value.lower() for name, value in split[1] if name == "charset"]
    return split[0], " ".join(charsets) if charsets else "utf-8"


def is_json(media_type: str) -> bool:
    """Return True if a media type, lower-case and without parameters, is one of JSON."""
    return media_type.endswith(("/json", "+json"))


def check_declared(content_type: str, data: bytes) -> None:
    """Raise InvalidEvent if `content_type` is JSON in UTF-8 and `data`, which may be empty, is not JSON."""
    media_type, charset = media_type_of(content_type)
    if data and is_json(media_type) and (charset == "utf-8" or (charset == "us-ascii" and data.isascii())):
        require_grammar(media_type, data)


def require_grammar(media_type: str, data: bytes) -> None:
    """Raise InvalidEvent, with the members `line` and `column`, unless `data` is valid JSON by its grammar."""
    found = _fault(data)
    if found is not None:
        reason, at = found
        line, column = json_position(data, at)
        raise InvalidEvent(
            f"The content type is {media_type}, and the data is not JSON: {reason} at line {line}, column {column}. Correct the data, or state its actual content type.",
            line=line,
            column=column,
        )


def _fault(data: bytes) -> tuple[str, int] | None:
    """Return the first fault in the grammar and its byte; None if there is none, or the data nests too deeply to decide."""
    if data.startswith(_BYTE_ORDER_MARK):
        return "a byte order mark", 0
    try:
        data.decode()
        _decode_raw(_SURROGATE.sub(rb"\\u0000", data))  # of equal length, so that positions stay valid
    except UnicodeDecodeError as error:
        return "text that is not UTF-8", error.start
    except NestedTooDeeply:
        return None
    except Undecodable as error:
        return error.reason, len(data) if error.at is None else error.at
    return None
