"""Version vectors: merging within a bound of feeds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eventing.core.events.vectors import covers, merged, merged_within

VECTORS = st.lists(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9), max_size=3))


@given(VECTORS, st.integers(3, 6))
def test_vectors_merged_within_a_bound_cover_the_same_and_stay_within_it(
    vectors: list[dict[str, int]], feeds_max: int
) -> None:
    found = merged_within(vectors, feeds_max)
    assert all(len(one) <= feeds_max for one in found)
    assert all(any(covers(one, vector) for one in found) for vector in vectors)
    whole: dict[str, int] = {}
    joined: dict[str, int] = {}
    for vector in vectors:
        whole = merged(whole, vector)
    for one in found:
        joined = merged(joined, one)
    assert joined == whole
    assert len(found) <= len(vectors)


def test_vectors_of_few_feeds_become_one() -> None:
    assert merged_within([{"a": 1, "b": 5}, {"a": 3}, {"c": 1}], 3) == [{"a": 3, "b": 5, "c": 1}]
    assert merged_within([], 3) == []
