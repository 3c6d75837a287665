"""What two readers could take differently is refused, not repaired."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.strict_json import DEPTH_MAX, INTEGER_MAX, NotStrictJson, parse


@pytest.fixture(autouse=True)
def _stores() -> None:
    """Pure: no store."""


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"a":1,"a":2}',
        b'{"a":{"b":1,"b":1}}',
        b"NaN",
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b'"\\u0000"',
        b'{"\\u0000":1}',
        b'"\\ud800"',
        b'["\\udc00x"]',
        b'"\xff"',
        b"\xef\xbb\xbf{}",
        str(INTEGER_MAX + 1).encode(),
        b"1" * 5000,
        b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1),
        b"[" * 50_000,
        b'{"a":' * 20_000,
        b"{}{}",
        b"'a'",
    ],
)
def test_ambiguous_json_is_refused(text: bytes) -> None:
    with pytest.raises(NotStrictJson):
        parse(text)


def test_what_is_within_the_bounds_is_read() -> None:
    assert parse(b"[" * DEPTH_MAX + b"]" * DEPTH_MAX)
    assert parse(str(INTEGER_MAX).encode()) == INTEGER_MAX
    assert parse(' {"a": [1, 2.5, null, true, "\\ud83d\\ude00 ü"]} '.encode()) == {"a": [1, 2.5, None, True, "😀 ü"]}


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(NotStrictJson):
        parse(data)
