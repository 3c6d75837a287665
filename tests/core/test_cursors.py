"""Cursors: what we wrote we read again; anything else is refused as a cursor that is not ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.cursors import CURSOR_CHARS_MAX, OFFSET_MAX, Cursor
from eventing.core.errors import InvalidCursor

epochs = st.from_regex(r"[a-z2-7]{1,26}", fullmatch=True)
cursors = st.builds(Cursor, epochs, st.integers(0, OFFSET_MAX))


@given(cursors)
def test_cursor_survives_being_written_and_read(cursor: Cursor) -> None:
    assert Cursor.parse(str(cursor)) == cursor
    assert len(str(cursor)) <= CURSOR_CHARS_MAX


@given(st.text() | st.from_regex(r"[a-z0-9]{0,27}:-?[0-9]{0,20}", fullmatch=True))
def test_text_is_refused_or_is_exactly_what_we_would_write(text: str) -> None:
    try:
        cursor = Cursor.parse(text)
    except InvalidCursor:
        return
    assert str(cursor) == text
    assert 0 <= cursor.offset <= OFFSET_MAX


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "a",
        "a:",
        ":1",
        "a:-1",
        "a:+1",
        "a:01",
        "a:1.0",
        "a:1 ",
        "a:1\n",
        "a:\u0661",
        "A:1",
        "a1:1",
        "a:1:1",
        "a" * 27 + ":1",
        f"a:{OFFSET_MAX + 1}",
        "a:" + "9" * 5000,
        "earliest",
    ],
)
def test_what_we_never_wrote_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor, match="exactly as an earlier answer gave it"):
        Cursor.parse(text)
