"""Cursors: what we wrote we read again; anything else is refused as a cursor that is not ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.errors import InvalidCursor
from eventing.core.events.cursors import CURSOR_CHARS_MAX, OFFSET_MAX, POSITION_CHARS_MAX, VECTOR_FEEDS_MAX, Cursor
from eventing.core.events.vectors import SEQUENCE_MAX

epochs = st.from_regex(r"[a-z2-7]{1,26}", fullmatch=True)
feeds = st.from_regex(r"[a-z2-7]{16}", fullmatch=True)
vectors = st.dictionaries(feeds, st.integers(0, SEQUENCE_MAX), min_size=1, max_size=VECTOR_FEEDS_MAX)
cursors = st.builds(Cursor, epochs, st.integers(0, OFFSET_MAX), st.none() | vectors)
A, B = "a" * 16, "b" * 16


@given(cursors)
def test_cursor_survives_being_written_and_read(cursor: Cursor) -> None:
    assert Cursor.parse(str(cursor)) == cursor
    assert len(str(cursor)) <= CURSOR_CHARS_MAX
    assert len(str(cursor.place)) <= POSITION_CHARS_MAX


@given(
    st.text()
    | st.from_regex(r"[a-z0-9]{0,27}:-?[0-9]{0,20}", fullmatch=True)
    | st.from_regex(r"a:1~(a{16}|b{16})=[0-9]{1,17}(\.(a{16}|b{16})=[0-9]{0,17}){0,2}", fullmatch=True)
)
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
        "a:1~",
        f"a:1~{A}",
        f"a:1~{A}=",
        f"a:1~{A}=01",
        f"a:1~{A}=-1",
        f"a:1~{A}=1.",
        f"a:1~{A}=1.{A}=1",
        f"a:1~{B}=1.{A}=1",
        f"a:1~{A}={SEQUENCE_MAX + 1}",
        f"a:1~{A[1:]}=1",
        f"a:1~{A.upper()}=1",
        f"a:1~{A}=1 ",
        "a:1~" + ".".join(f"{number:016d}".translate(str.maketrans("0189", "abcd")) + "=1" for number in range(66)),
        "a:1~" + f"{A}=1." * 5000,
    ],
)
def test_what_we_never_wrote_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursor, match="exactly as an earlier answer gave it"):
        Cursor.parse(text)


def test_vector_stands_behind_the_place_in_the_order_of_the_keys() -> None:
    assert str(Cursor("abc", 7, {B: 2, A: 5})) == f"abc:7~{A}=5.{B}=2"
    assert str(Cursor("abc", 7, {B: 2, A: 5}).place) == "abc:7"
