"""Progress: what passes a reader is new to it, or covered, or shows what is lost; the cursor has all of it behind it."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from eventing.core.events.cursors import Cursor
from eventing.core.events.positions import OffsetGap
from eventing.core.events.progress import ReaderProgress, feed_positions

A, B, C = "a" * 16, "b" * 16, "c" * 16
vectors = st.dictionaries(st.sampled_from([A, B, C]), st.integers(0, 5), min_size=1)


def test_what_passes_is_new_or_covered_or_behind_a_hole() -> None:
    progress = ReaderProgress({A: 2, B: 1})
    new, covered, late = progress.passes("abc", 7, [(A, 3), (B, 1), (C, 4)])
    assert (new.covered, new.gap, new.vector.decode()) == (False, None, f"~{A}=3.{B}=1")
    assert (covered.covered, covered.vector) == (True, new.vector)
    assert late.gap == OffsetGap("abc", 9, 8, {C: (1, 3)}, f"abc:8~{A}=3.{B}=1.{C}=3")
    assert late.vector.decode() == f"~{A}=3.{B}=1.{C}=4"


def test_places_of_a_feed_count_on() -> None:
    assert feed_positions(A, 4, 3) == [(A, 4), (A, 5), (A, 6)]


@given(vectors, st.lists(st.tuples(st.sampled_from([A, B, C]), st.integers(1, 8)), max_size=30))
def test_cursor_behind_each_event_has_exactly_what_has_passed(
    held: Mapping[str, int], places: list[tuple[str, int]]
) -> None:
    progress, model = ReaderProgress(held), dict(held)
    for offset, place in enumerate(places, 1):
        (passed,) = progress.passes("abc", offset, [place])
        feed, sequence = place
        had = model.get(feed, 0)
        assert passed.covered is (sequence <= had)
        assert (passed.gap is not None) is (sequence > had + 1)
        model[feed] = max(had, sequence)
        assert Cursor.parse(f"abc:{offset}{passed.vector.decode()}").vector == model
    assert progress.covers(model)
    assert not progress.covers({A: 9})
