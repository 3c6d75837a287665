"""The overlap report: who reads what, which RPs are alike, and the regions that those make."""

from __future__ import annotations

from typing import Any

import pytest

from spark.transforms import overlap
from tests.spark.frames import Frames, distinct, ordered

pytestmark = [pytest.mark.long, pytest.mark.processes]

PAIRS = {"rp": "string", "principal": "string"}
SIZES = {"rp": "string", "subscribers": "bigint"}
FOUND = {"rp_a": "string", "rp_b": "string"}
JOINED = {"rp": "string", "region": "string"}


def pairs(frames: Frames, **readers: str) -> Any:
    """Each RP's readers, a letter each."""
    rows = [{"rp": rp, "principal": principal} for rp, some in readers.items() for principal in some]
    return frames.of(PAIRS, *rows)


def test_subscribers_are_different_pairs_of_good_readings(frames: Frames) -> None:
    given = frames.records(
        overlap.COLUMNS,
        *({"operation": operation} for operation in ("deliver", "history", "subscribe", "subscribe")),
        {"operation": "history", "principal": "p2"},
        *({"operation": "deliver"} | other for other in ({"principal": ""}, {"rp": ""})),
        *({"principal": "p3"} | other for other in ({"operation": "publish"}, {"operation": "unsubscribe"})),
        {"operation": "subscribe", "principal": "p3", "outcome": "refused"},
    )
    assert distinct(overlap.subscribers(given)) == {("rp1", "p1"), ("rp1", "p2")}


def test_rps_are_compared_from_two_subscribers_on(frames: Frames) -> None:
    assert distinct(overlap.sizes(pairs(frames, one="a", two="ab", three="abc"))) == {("two", 2), ("three", 3)}


def test_candidates_are_pairs_in_order_of_rps_that_are_compared(frames: Frames) -> None:
    given = pairs(frames, b="xyz", a="xyz", c="xyz", other="uvw", small="x", alike="x")
    sizes = frames.of(SIZES, *({"rp": rp, "subscribers": 3} for rp in ("a", "b", "c", "other")))
    found = overlap.candidates(given, sizes)
    assert distinct(found, "rp_a", "rp_b") == {("a", "b"), ("a", "c"), ("b", "c")}


def test_of_many_alike_each_is_paired_with_those_that_follow_and_all_are_connected(frames: Frames) -> None:
    many = [f"rp{number:02d}" for number in range(overlap.ALL_PAIRS_MAX + 2)]
    given = pairs(frames, **dict.fromkeys(many, "xy"))
    found = distinct(overlap.candidates(given, overlap.sizes(given)), "rp_a", "rp_b")
    everything = {(one, other) for one in many for other in many if one < other}
    assert everything - found == {(many[0], many[-1])}
    assert overlap.connected(sorted(found)) == [(rp, many[0]) for rp in many]


def test_candidates_are_verified_by_their_exact_index_from_its_bound_on(frames: Frames) -> None:
    given = pairs(frames, a="12345", at_bound="1234", below="12346", b="12345", small="123")
    candidates = [("a", name) for name in ("at_bound", "b", "below", "small")] + [("a", "not compared")]
    found = frames.of(FOUND, *({"rp_a": one, "rp_b": other} for one, other in candidates))
    assert distinct(overlap.verified(found, given, overlap.sizes(given)), of="overlap.pairs") == {
        ("a", "at_bound", 4, 5, 0.8),
        ("a", "b", 5, 5, 1.0),
    }


def test_members_have_their_region_and_their_size(frames: Frames) -> None:
    joined = frames.of(JOINED, {"rp": "a", "region": "a"}, {"rp": "b", "region": "a"})
    sizes = frames.of(SIZES, {"rp": "a", "subscribers": 3}, {"rp": "b", "subscribers": 2}, {"rp": "c"})
    assert distinct(overlap.members(joined, sizes), of="overlap.members") == {("a", "a", 3), ("a", "b", 2)}


def test_regions_come_by_what_they_save(frames: Frames) -> None:
    regions = {"a": "a", "b": "a", "c": "a", "d": "d", "e": "d", "f": "f", "g": "f"}
    members = frames.table("overlap", "members", *({"rp": rp, "region": region} for rp, region in regions.items()))
    given = pairs(frames, a="wxyz", b="wxyz", c="wxy", d="xy", e="xy", f="uv", g="uv", alone="abc")
    live_gateways = [("a", "b", 1.0), ("b", "c", 0.8), ("a", "c", 0.9), ("d", "e", 1.0), ("f", "g", 1.0)]
    verified = frames.table("overlap", "pairs", *({"rp_a": a, "rp_b": b, "jaccard": j} for a, b, j in live_gateways))
    assert ordered(overlap.regions(members, given, verified), of="overlap.regions") == [
        ("a", 3, 4, 11, 7, 0.8),
        ("d", 2, 2, 4, 2, 1.0),
        ("f", 2, 2, 4, 2, 1.0),
    ]


def test_no_readings_make_empty_tables(frames: Frames) -> None:
    nothing, sizes = pairs(frames), frames.of(SIZES)
    assert ordered(overlap.subscribers(frames.records(overlap.COLUMNS))) == []
    assert ordered(overlap.sizes(nothing)) == []
    assert ordered(overlap.candidates(nothing, sizes)) == []
    assert ordered(overlap.verified(frames.of(FOUND), nothing, sizes), of="overlap.pairs") == []
    assert ordered(overlap.members(frames.of(JOINED), sizes), of="overlap.members") == []
    tables = frames.table("overlap", "members"), nothing, frames.table("overlap", "pairs")
    assert ordered(overlap.regions(*tables), of="overlap.regions") == []
