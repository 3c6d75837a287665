"""Decoding of JSON and MessagePack into types: the only module of the server that calls msgspec's decoders.

msgspec raises `DecodeError` for most malformed input, but `UnicodeDecodeError` for text that is not UTF-8 and
`RecursionError` for deep nesting. A reader made here raises Undecodable for all of them, so that a caller handles every
kind of malformed bytes alike. Bytes from outside the process (requests, peers' answers, statements, events, values in
Redis) are decoded only by these readers and by strict_json.py; a test enforces this.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import msgspec

_MALFORMED_JSON = re.compile(r"JSON is malformed: (.*) \(byte (\d+)\)")  # the wording of msgspec
_TRUNCATED = "Input data was truncated"
# msgspec quotes the sender's values in it.
EXPLANATION_CHARS_MAX = 200  # bound: characters of the explanation of malformed bytes; the explanation is cut

T = TypeVar("T")
Bytes = bytes | bytearray | memoryview | msgspec.Raw
Reader = Callable[[Bytes], T]


class Undecodable(ValueError):
    """The bytes are not valid in their format, or not of the expected type.

    The text is a phrase for one line: printable, at most EXPLANATION_CHARS_MAX characters, without a full stop at its
    end.

    Attributes:
        reason: the same text without the position where the bytes are malformed JSON; else the same text.
        at: index of the first wrong byte of malformed JSON, the length where JSON ends too early; else None.
    """

    def __init__(self, text: str, reason: str = "", at: int | None = None) -> None:
        super().__init__(text)
        self.reason = reason or text
        self.at = at


class NestedTooDeeply(Undecodable):
    """The bytes nest deeper than the decoder supports."""


def json_reader(kind: type[T]) -> Reader[T]:
    """Make a function that decodes JSON into `kind` and raises Undecodable.

    Members that `kind` does not name are skipped and, as msgspec.Raw, not checked to be UTF-8.
    """
    return _reader(msgspec.json.Decoder(kind).decode)


def json_position(data: Bytes, at: int) -> tuple[int, int]:
    """Return line and column of the byte `at` of a JSON text, both counted from 1. A column is a character."""
    before = bytes(data)[:at]
    return before.count(b"\n") + 1, len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1


def placed(error: Undecodable, data: Bytes) -> tuple[str, dict[str, int]]:
    """Describe the fault in `data`, for malformed JSON with line and column; return these also as members of a problem document."""
    if error.at is None:
        return str(error), {}
    line, column = json_position(data, error.at)
    return f"{error.reason} at line {line}, column {column}", {"line": line, "column": column}


def msgpack_reader(kind: type[T]) -> Reader[T]:
    """Make a function that decodes MessagePack into `kind` and raises Undecodable."""
    return _reader(msgspec.msgpack.Decoder(kind).decode)


def converted(plain: Any, kind: type[T]) -> T:
    """Convert plain data, as parsers of TOML and others return it, into `kind`. Raises Undecodable, with the path of the wrong value."""
    try:
        return msgspec.convert(plain, kind)
    except (ValueError, RecursionError) as error:
        _refuse(error, b"")


def _reader(decode: Callable[[Any], T]) -> Reader[T]:
    def read(data: Bytes) -> T:
        try:
            return decode(data)
        except (ValueError, RecursionError) as error:
            _refuse(error, data)

    return read


def _refuse(error: ValueError | RecursionError, data: Bytes) -> NoReturn:
    if isinstance(error, RecursionError):
        raise NestedTooDeeply("it nests too deeply") from None
    if isinstance(error, UnicodeError):
        raise Undecodable("it has text that is not UTF-8") from None
    text = "".join(character if character.isprintable() else "?" for character in str(error)[:EXPLANATION_CHARS_MAX])
    malformed = _MALFORMED_JSON.fullmatch(text)
    if malformed is not None:
        reason, at = malformed[1], int(malformed[2])
        raise Undecodable(text, reason, at - _is_behind(reason, bytes(data)[at - 1 : at])) from None
    if text == _TRUNCATED:
        raise Undecodable("it ends too early", at=len(bytes(data))) from None
    raise Undecodable(text.rstrip(".")) from None


def _is_behind(reason: str, before: bytes) -> bool:
    """Return True if msgspec names the byte after the wrong one; `before` is the byte before the named one.

    It does so for bytes after the value, and for a literal that begins like true, false or null and continues
    otherwise.
    """
    return reason == "trailing characters" or (reason == "invalid character" and before in (b"t", b"f", b"n"))
