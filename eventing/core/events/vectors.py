"""Version vectors: per feed key, the highest contiguous sequence held. Pure; vectors are plain mappings.

A feed that a vector does not name is held up to 0. Vectors of one RP form a lattice: `merged` is its join.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eventing.core.events.feeds import FEEDS_MAX, KEY_PATTERN

SEQUENCE_MAX = 2**53 - 1  # exact in every JSON reader

Vector = Mapping[str, int]


def covers(one: Vector, other: Vector) -> bool:
    """Return True if `one` covers all of `other`."""
    for feed, sequence in other.items():  # noqa: SIM110 - all() takes twice the time, and links ask this often
        if one.get(feed, 0) < sequence:
            return False
    return True


def lacking(have: Vector, wanted: Vector) -> dict[str, tuple[int, int]]:
    """Per feed, the first and last sequence of `wanted` that `have` lacks; feeds in the order of their keys."""
    return {feed: (have.get(feed, 0) + 1, wanted[feed]) for feed in sorted(wanted) if wanted[feed] > have.get(feed, 0)}


def merged(one: Vector, other: Vector) -> dict[str, int]:
    """Return the least vector that covers both."""
    joined = dict(one)
    for feed, sequence in other.items():
        if sequence > joined.get(feed, 0):
            joined[feed] = sequence
    return joined


def merged_within(vectors: Iterable[Vector], feeds_max: int) -> list[dict[str, int]]:
    """Merge the vectors into as few as their order allows, each of at most `feeds_max` feeds unless one input has more."""
    found: list[dict[str, int]] = []
    for vector in vectors:
        both = merged(found[-1], vector) if found else dict(vector)
        if found and len(both) <= feeds_max:
            found[-1] = both
        else:
            found.append(dict(vector))
    return found


def distance(have: Vector, wanted: Vector) -> int:
    """Count the events of `wanted` that `have` lacks."""
    return sum(max(0, sequence - have.get(feed, 0)) for feed, sequence in wanted.items())


def valid(vector: Vector) -> bool:
    """Return True if a vector from outside has the form and the bounds of one."""
    return len(vector) <= FEEDS_MAX and all(
        KEY_PATTERN.fullmatch(feed) is not None and 0 <= sequence <= SEQUENCE_MAX for feed, sequence in vector.items()
    )
