"""Fingerprints of ranges: equal for equal maps, however they grew, and different along the way to each difference."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eventing.overlay import fingerprints
from eventing.overlay.fingerprints import Fingerprints, branches, differing, entry_hash, leaf_of, leaves

ENTRIES = st.dictionaries(st.integers(0, 2**64 - 1), st.integers(1, 2**32 - 1), max_size=30)


def of(entries: dict[int, int]) -> Fingerprints:
    sums = Fingerprints()
    for key, version in entries.items():
        sums.change(leaf_of(key), 0, entry_hash(key, version))
    return sums


def found(one: Fingerprints, other: Fingerprints) -> set[int]:
    """The leaves that a comparison from the root down finds."""
    ranges, result = [0], set()
    while ranges:
        lower: list[int] = []
        for of_range in differing(one, [(each, other[each]) for each in ranges]):
            below = branches(of_range)
            if below:
                lower += below
            else:
                result |= set(leaves(of_range))
        ranges = lower
    return result


@given(ENTRIES, st.randoms(use_true_random=False))
def test_equal_maps_have_equal_sums_whatever_the_order(entries: dict[int, int], chance: object) -> None:
    one, other = of(entries), of(dict(reversed(entries.items())))
    for key, version in entries.items():  # a change and its reverse leave no trace
        other.change(leaf_of(key), entry_hash(key, version), entry_hash(key, version + 1))
        other.change(leaf_of(key), entry_hash(key, version + 1), entry_hash(key, version))
    assert found(one, other) == set()


@given(ENTRIES, ENTRIES)
def test_a_comparison_finds_the_leaves_that_differ_and_no_others(first: dict[int, int], second: dict[int, int]) -> None:
    changed = {leaf_of(key) for key in first.keys() | second.keys() if first.get(key) != second.get(key)}
    assert found(of(first), of(second)) == changed


def test_the_ranges_of_each_level_divide_the_leaves() -> None:
    level: list[int] = [0]
    for _ in range(fingerprints.DEPTH + 1):
        assert [leaf for each in level for leaf in leaves(each)] == list(range(1 << fingerprints.LEAF_BITS))
        level = [below for each in level for below in branches(each)]
    assert level == []


def test_ranges_that_do_not_exist_are_ignored() -> None:
    assert list(differing(Fingerprints(), [(-1, 1), (10**9, 1), (2**70, 1)])) == []
