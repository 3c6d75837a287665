"""Range fingerprints: find where two maps of (key, version) differ, in messages that grow with the difference.

Entries are ordered by a hash of their key, in a tree with BRANCHING branches at each of DEPTH levels. A range's fingerprint is the sum of
its entries' hashes modulo 2**64, so one changed entry changes DEPTH + 1 sums, and equal maps have equal sums whatever the order in which
they grew. The comparison keeps no state: each message has all that its answer needs.

Method: range-based set reconciliation (A. Meyer, arXiv 2212.13567), with ranges that the hash fixes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence

BRANCHING_BITS = 4
BRANCHING = 1 << BRANCHING_BITS
DEPTH = 3
"""Levels below the root: 4,096 leaves, of two or three entries each with 10,000 domains."""
LEAF_BITS = BRANCHING_BITS * DEPTH
_MASK = (1 << 64) - 1
_OFFSETS = tuple(((1 << BRANCHING_BITS * level) - 1) // (BRANCHING - 1) for level in range(DEPTH + 2))

Range = int
"""The number of a range: the root is 0, its branches 1 to 16, and so on level by level."""


def entry_hash(key_hash: int, version: int) -> int:
    """Hash of one entry, 64 bits (the finaliser of SplitMix64)."""
    mixed = (key_hash ^ version * 0x9E3779B97F4A7C15) & _MASK
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
    return mixed ^ mixed >> 31


def is_in_share(seed: int, key_hash: int, limit: int) -> bool:
    """Return True if a key is in the share of limit / 2^64 of all keys that a seed draws."""
    return (key_hash ^ seed) * 0x9E3779B97F4A7C15 & _MASK < limit


def share_of(seed: int, key_hashes: Sequence[int], numbers: Iterable[int], limit: int) -> list[int]:
    """Those of the numbers whose keys are in a share (`is_in_share`), in one pass."""
    return [one for one in numbers if (key_hashes[one] ^ seed) * 0x9E3779B97F4A7C15 & _MASK < limit]


def leaf_of(key_hash: int) -> int:
    """The leaf, from 0, in which an entry is."""
    return key_hash >> 64 - LEAF_BITS & (1 << LEAF_BITS) - 1


def is_range(of: int) -> bool:
    """Return whether a number is that of a range."""
    return 0 <= of < _OFFSETS[DEPTH + 1]


def is_leaf(of: int) -> bool:
    """Return whether a number is that of a range without branches."""
    return _OFFSETS[DEPTH] <= of < _OFFSETS[DEPTH + 1]


def branches(of: Range) -> range:
    """The ranges that a range consists of; none for a leaf."""
    first = of * BRANCHING + 1
    return range(first, first + BRANCHING) if first < _OFFSETS[DEPTH + 1] else range(0)


def leaves(of: Range) -> range:
    """The leaves, from 0, below a range."""
    level = 0
    while of >= _OFFSETS[level + 1]:
        level += 1
    bits = BRANCHING_BITS * (DEPTH - level)
    first = of - _OFFSETS[level] << bits
    return range(first, first + (1 << bits))


def around(leaf: int) -> tuple[Range, ...]:
    """The ranges that a leaf, from 0, is in, except the root: from the largest to the leaf's own."""
    return _AROUND[leaf]


_AROUND = tuple(
    tuple(_OFFSETS[level] + (leaf >> BRANCHING_BITS * (DEPTH - level)) for level in range(1, DEPTH + 1))
    for leaf in range(1 << LEAF_BITS)
)


class Fingerprints:
    """The sums of one map."""

    def __init__(self) -> None:
        self._sums = array("Q", bytes(8 * _OFFSETS[DEPTH + 1]))

    def copy(self) -> Fingerprints:
        """The same sums, to be changed by themselves."""
        made = Fingerprints.__new__(Fingerprints)
        made._sums = self._sums[:]
        return made

    def __getitem__(self, of: Range) -> int:
        return self._sums[of]

    def change(self, leaf: int, before: int, after: int) -> None:
        """Replace the hash of an entry of a leaf; 0 stands for an entry that is not there."""
        difference = after - before
        sums = self._sums
        sums[0] = sums[0] + difference & _MASK
        for at in _AROUND[leaf]:
            sums[at] = sums[at] + difference & _MASK


def differing(ours: Fingerprints, theirs: Iterable[tuple[Range, int]]) -> Iterator[Range]:
    """The ranges whose fingerprints differ from those that a peer stated; ranges that do not exist are ignored."""
    for of, fingerprint in theirs:
        if is_range(of) and ours[of] != fingerprint:
            yield of
