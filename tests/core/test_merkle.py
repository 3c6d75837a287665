"""core/merkle.py: RFC 6962's trees, by the known answers of its reference implementation and by its own definition."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core import merkle

# The inputs and answers of Certificate Transparency's reference implementation (merkletree tests).
INPUTS = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
PATHS = {
    (0, 1): [],
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (1, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
EVENTS = st.lists(st.binary(max_size=40), min_size=1, max_size=70)


def defined(events: list[bytes]) -> bytes:
    """MTH of RFC 6962 section 2.1, word by word."""
    if len(events) == 1:
        return sha256(b"\0" + events[0]).digest()
    k = 1
    while k * 2 < len(events):
        k *= 2
    return sha256(b"\1" + defined(events[:k]) + defined(events[k:])).digest()


@pytest.mark.parametrize("size", range(9))
def test_roots_are_those_of_the_reference_implementation(size: int) -> None:
    assert merkle.root(merkle.leaves(INPUTS[:size])).hex() == ROOTS[size]


@pytest.mark.parametrize(("index", "size"), PATHS)
def test_paths_are_those_of_the_reference_implementation(index: int, size: int) -> None:
    path = merkle.path(merkle.leaves(INPUTS[:size]), index)
    assert [one.hex() for one in path] == PATHS[index, size]
    assert merkle.root_by_path(merkle.leaf(INPUTS[index]), index, size, path) == bytes.fromhex(ROOTS[size])


@given(EVENTS)
def test_the_root_is_as_the_rfc_defines_it(events: list[bytes]) -> None:
    assert merkle.root(merkle.leaves(events)) == defined(events)


@given(EVENTS, st.data())
def test_a_path_leads_to_the_root_from_its_own_leaf_only(events: list[bytes], data: st.DataObject) -> None:
    hashes, size = merkle.leaves(events), len(events)
    index = data.draw(st.integers(0, size - 1))
    path, root = merkle.path(hashes, index), merkle.root(hashes)
    assert len(path) <= (size - 1).bit_length()
    leaf = merkle.leaf(events[index])
    assert merkle.root_by_path(leaf, index, size, path) == root
    other = data.draw(st.binary(max_size=41).filter(lambda event: event != events[index]))
    assert merkle.root_by_path(merkle.leaf(other), index, size, path) != root
    if path:
        place, bit = data.draw(st.integers(0, len(path) - 1)), data.draw(st.integers(0, 255))
        altered = bytearray(path[place])
        altered[bit // 8] ^= 1 << bit % 8
        assert merkle.root_by_path(leaf, index, size, [*path[:place], bytes(altered), *path[place + 1 :]]) != root
        assert merkle.root_by_path(leaf, index, size, path[:-1]) != root
    assert merkle.root_by_path(leaf, index, size, [*path, root]) is None


def test_a_node_never_passes_as_an_event() -> None:
    two = merkle.leaves([b"a", b"b"])
    assert merkle.leaf(two) != merkle.root(two)


def test_what_is_no_place_or_no_hash_is_refused() -> None:
    hashes = merkle.leaves([b"a", b"b", b"c"])
    with pytest.raises(ValueError):
        merkle.path(hashes, 3)
    with pytest.raises(ValueError):
        merkle.root(hashes[:-1])
    path = merkle.path(hashes, 0)
    assert merkle.root_by_path(merkle.leaf(b"a"), 3, 3, path) is None
    assert merkle.root_by_path(merkle.leaf(b"a"), -1, 3, path) is None
    assert merkle.root_by_path(merkle.leaf(b"a"), 0, 3, [path[0], path[1][:-1]]) is None
    assert merkle.root_by_path(merkle.leaf(b"a"), 0, 2**70, [path[0]] * 65) is None


@given(EVENTS)
def test_one_walk_gives_the_root_and_all_paths(events: list[bytes]) -> None:
    hashes = merkle.leaves(events)
    assert merkle.root_and_paths(hashes) == (
        merkle.root(hashes),
        [merkle.path(hashes, index) for index in range(len(events))],
    )


def test_a_tree_of_nothing_has_no_paths() -> None:
    assert merkle.root_and_paths(b"") == (merkle.root(b""), [])
