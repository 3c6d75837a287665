"""Data that its publisher declares to be JSON: what is none is refused, with the line and column where it goes wrong. Pure.

Declared it is by a content type of JSON in UTF-8. Only what breaks JSON's grammar (RFC 8259) is refused. Valid JSON that an
event cannot carry as JSON (nested too deeply, or with half of a surrogate pair) is carried as base64, as other bytes are.
"""

from __future__ import annotations

import re

import msgspec

from eventing.core.decoding import NestedTooDeeply, Undecodable, json_place, json_reader
from eventing.core.errors import InvalidEvent
from eventing.core.events.cloudevents_attributes import split_media_type

JSON_CHARSETS = ("utf-8", "us-ascii")
_decode_raw = json_reader(msgspec.Raw)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def media_type_of(content_type: str | None) -> tuple[str, str]:
    """The lower-case media type without parameters, empty if none, and the lower-case charset, utf-8 if none."""
    split = split_media_type(content_type) if content_type is not None else None
    if split is None:
        return "", "utf-8"
    charsets = [value.lower() for name, value in split[1] if name == "charset"]
    return split[0], " ".join(charsets) if charsets else "utf-8"


def is_json(media_type: str) -> bool:
    """Whether a media type, lower-case and without parameters, is one of JSON."""
    return media_type.endswith(("/json", "+json"))


def check_declared(content_type: str, data: bytes) -> None:
    """Raise InvalidEvent where the content type says JSON in UTF-8 and `data`, which may be empty, is none."""
    media_type, charset = media_type_of(content_type)
    if data and is_json(media_type) and (charset == "utf-8" or (charset == "us-ascii" and data.isascii())):
        require_grammar(media_type, data)


def require_grammar(media_type: str, data: bytes) -> None:
    """Raise InvalidEvent, with the members `line` and `column`, unless `data` is JSON by its grammar."""
    found = _fault(data)
    if found is not None:
        reason, at = found
        line, column = json_place(data, at)
        raise InvalidEvent(
            f"The content type is {media_type}, and the data is not JSON: {reason} at line {line}, column {column}. "
            "Correct the data, or state the content type that it has.",
            line=line,
            column=column,
        )


def _fault(data: bytes) -> tuple[str, int] | None:
    """What is wrong, and at which byte; None if nothing is that grammar forbids, or it nests too deeply to tell."""
    if data.startswith(_BYTE_ORDER_MARK):
        return "a byte order mark", 0
    try:
        data.decode()
        _decode_raw(_SURROGATE.sub(rb"\\u0000", data))  # of one length, so that places stay
    except UnicodeDecodeError as error:
        return "text that is not UTF-8", error.start
    except NestedTooDeeply:
        return None
    except Undecodable as error:
        return error.reason, len(data) if error.at is None else error.at
    return None
