"""Strict parser for JSON from strangers (I-JSON, RFC 7493): refuses everything that parsers interpret differently.

Refused are: bytes that are not UTF-8, repeated members, NaN and infinities, integers that are not exact in every
parser, lone surrogates, NUL characters (no SQL text can hold them), and nesting beyond a bound.
"""

from __future__ import annotations

import json
import math
from typing import Any

# Guess: a policy needs 6.
DEPTH_MAX = 32  # bound: nesting levels of a REST body or token; the request is refused
INTEGER_MAX = 2**53 - 1  # RFC 7493 section 2.2
_INTEGER_CHARS_MAX = 17


class NotStrictJson(ValueError):
    """The text is not acceptable JSON; the message gives the reason."""


def parse(data: bytes, *, depth_max: int = DEPTH_MAX) -> Any:
    """Parse one JSON value. Raises NotStrictJson; the caller bounds the length of `data`."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NotStrictJson("The text is not valid UTF-8.") from None
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise NotStrictJson(f"Not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise NotStrictJson(f"Nested deeper than {depth_max} levels.") from None
    _check(value, depth_max)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotStrictJson("A member is named twice.")
    return members


def _integer(text: str) -> int:
    if len(text) > _INTEGER_CHARS_MAX or abs(int(text)) > INTEGER_MAX:
        raise NotStrictJson(f"Integers are from -{INTEGER_MAX} to {INTEGER_MAX}.")
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotStrictJson("A number is too large.")
    return number


def _constant(text: str) -> Any:
    raise NotStrictJson(f"{text} is not JSON.")


def _check(value: Any, depth_max: int) -> None:
    """Check depth and characters of a value, without recursion."""
    level, depth = [value], 0
    while level:
        following: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif isinstance(item, dict):
                for name in item:
                    _check_text(name)
                following.extend(item.values())
            elif isinstance(item, list):
                following.extend(item)
        depth += any(isinstance(item, dict | list) for item in level)
        if depth > depth_max:
            raise NotStrictJson(f"Nested deeper than {depth_max} levels.")
        level = following


def _check_text(text: str) -> None:
    if "\0" in text:
        raise NotStrictJson("Text with a NUL character is not accepted.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotStrictJson("Text with a lone surrogate is not accepted.") from None
