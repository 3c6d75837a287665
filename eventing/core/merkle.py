"""Merkle trees over a run of events, as in RFC 6962 section 2.1 (unchanged in RFC 9162). Pure.

Leaf and node are hashed with different first bytes, so that a node can never pass as an event. Leaf hashes are sent and
stored as one string of bytes, HASH_BYTES each, in the order of the events. Anybody computes the root from them, and the
path that proves one event by log2(n) hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256

HASH_BYTES = 32
PATH_MAX = 64  # hashes of a path: no tree has more than 2**64 leaves


def leaf(event: bytes) -> bytes:
    """Hash one event's exact bytes."""
    return sha256(b"\0" + event).digest()


def leaves(events: Iterable[bytes]) -> bytes:
    """Hash events; the leaf hashes are concatenated."""
    return b"".join([sha256(b"\0" + event).digest() for event in events])


def split(hashes: bytes) -> list[bytes]:
    """Split concatenated leaf hashes. Raises ValueError if the length is not a multiple of HASH_BYTES."""
    if len(hashes) % HASH_BYTES:
        raise ValueError(f"leaf hashes have {HASH_BYTES} bytes each")
    return [hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES)]


def root(hashes: bytes) -> bytes:
    """Compute the root of the tree over leaf hashes; of no leaves, the hash of the empty string. Raises ValueError as `split`."""
    level = split(hashes)
    if not level:
        return sha256(b"").digest()
    while len(level) > 1:
        level = _above(level)
    return level[0]


def path(hashes: bytes, index: int) -> list[bytes]:
    """Compute the hashes that prove the leaf `index` (from 0), from its sibling up to below the root.

    Raises ValueError for an index out of range, and as `split`.
    """
    level = split(hashes)
    if not 0 <= index < len(level):
        raise ValueError(f"there is no leaf {index} among {len(level)}")
    found = []
    while len(level) > 1:
        neighbour = index ^ 1
        if neighbour < len(level):
            found.append(level[neighbour])
        level, index = _above(level), index >> 1
    return found


def root_and_paths(hashes: bytes) -> tuple[bytes, list[list[bytes]]]:
    """Compute the root, and the `path` of every leaf, from one walk up the tree. Raises ValueError as `split`."""
    level = split(hashes)
    paths: list[list[bytes]] = [[] for _ in level]
    height = 0
    while len(level) > 1:
        for index, found in enumerate(paths):
            neighbour = (index >> height) ^ 1
            if neighbour < len(level):
                found.append(level[neighbour])
        level, height = _above(level), height + 1
    return level[0] if level else sha256(b"").digest(), paths


def root_by_path(leaf_hash: bytes, index: int, size: int, hashes: Sequence[bytes]) -> bytes | None:
    """Compute the root that a path leads to (RFC 9162 section 2.1.3.2); None if no tree of `size` leaves has such a
    path.

    Args:
        leaf_hash, index: the leaf, and its index from 0.
        hashes: the path, from the leaf's sibling up to below the root.
    """
    if not 0 <= index < size or len(hashes) > PATH_MAX:
        return None
    if any(len(one) != HASH_BYTES for one in (leaf_hash, *hashes)):
        return None
    current, last = leaf_hash, size - 1
    for neighbour in hashes:
        if last == 0:
            return None  # the path is longer than the height of the tree
        if index & 1 or index == last:
            current = sha256(b"\1" + neighbour + current).digest()
            while not index & 1 and index:  # the last leaf of an odd level rises without a sibling
                index, last = index >> 1, last >> 1
        else:
            current = sha256(b"\1" + current + neighbour).digest()
        index, last = index >> 1, last >> 1
    return current if last == 0 else None


def _above(level: list[bytes]) -> list[bytes]:
    """Compute the next level: pairs are hashed, the last of an odd number rises unchanged (exactly RFC 6962's tree)."""
    pairs = zip(level[::2], level[1::2], strict=False)
    above = [sha256(b"\1" + left + right).digest() for left, right in pairs]
    if len(level) & 1:
        above.append(level[-1])
    return above
