"""core/seals/seals.py and core/seals/seal_heads.py: whatever is done to a sealed feed on its way, whoever checks it finds it."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey

from eventing.core import merkle, signing
from eventing.core.events.feeds import Feed
from eventing.core.seals import seals
from eventing.core.seals.seal_heads import same_events, verdict
from eventing.core.seals.seals import BadSeal, Seal
from eventing.core.signing import Signed

RP, OTHER_RP = "a" * 26, "b" * 26
FEED = Feed("one.example", "abcdefgh")
VERIFY_MS_MAX = 15.0  # the number for one run of 1,000 events

EVENTS = st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=30)


def key() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """A private key, and the public one as a domain document lists it."""
    made = OKPKey.generate_key("Ed25519")
    kid = made.thumbprint()
    return {**made.as_dict(private=True), "kid": kid}, {kid: {**made.as_dict(private=False), "nbf": 0}}


PRIVATE, KEYS = key()


def sealed(
    events: list[bytes], *, first: int = 1, previous: bytes = b"", feed: Feed = FEED, rp: str = RP, at_ms: int = 5000
) -> Signed:
    leaves = merkle.leaves(events)
    return seals.seal_make(
        rp=rp, feed=feed, first=first, leaves=leaves, previous=previous, sealed_at_ms=at_ms, private_jwk=PRIVATE
    )


def signed_by_us(statement: Signed) -> bool:
    return seals.signed_by(signing.SEAL, statement, seals.seal_read(statement).sealed_at_ms, KEYS)


def resealed(seal: Seal, **changes: Any) -> Signed:
    """A seal with other members and the honest signature: what a carrier without the key can make."""
    statement = sealed([b"x"])
    altered = msgspec.structs.replace(seal, **changes)
    return Signed(msgspec.msgpack.encode(altered), statement.kid, statement.signature)


@given(EVENTS, st.integers(0, 30))
def test_a_sealed_run_verifies_with_any_beginning_as_leaves(events: list[bytes], held_from: int) -> None:
    statement = sealed(events, first=7)
    seal = seals.seal_read(statement)
    assert (seal.rp, seal.feed, seal.first, seal.last) == (RP, FEED, 7, 6 + len(events))
    assert signed_by_us(statement)
    cut = min(held_from, len(events))
    assert seals.run_verified(seal, events[cut:], merkle.leaves(events[:cut]))


@given(EVENTS, st.data())
def test_any_alteration_of_an_event_is_found(events: list[bytes], data: st.DataObject) -> None:
    seal = seals.seal_read(sealed(events))
    index = data.draw(st.integers(0, len(events) - 1))
    altered = bytearray(events[index])
    bit = data.draw(st.integers(0, 8 * len(altered) - 1))
    altered[bit // 8] ^= 1 << bit % 8
    assert not seals.run_verified(seal, [*events[:index], bytes(altered), *events[index + 1 :]])


@given(EVENTS, st.data())
def test_any_drop_or_addition_is_found(events: list[bytes], data: st.DataObject) -> None:
    seal = seals.seal_read(sealed(events))
    index = data.draw(st.integers(0, len(events) - 1))
    assert not seals.run_verified(seal, [*events[:index], *events[index + 1 :]])
    assert not seals.run_verified(seal, [*events[:index], events[index], *events[index:]])


@given(EVENTS, st.data())
def test_any_reordering_is_found(events: list[bytes], data: st.DataObject) -> None:
    seal = seals.seal_read(sealed(events))
    shuffled = data.draw(st.permutations(events))
    assert seals.run_verified(seal, shuffled) == (shuffled == events)


@given(EVENTS, st.data())
def test_leaves_that_are_not_the_runs_are_found(events: list[bytes], data: st.DataObject) -> None:
    seal = seals.seal_read(sealed(events))
    cut = data.draw(st.integers(1, len(events)))
    leaves = merkle.leaves(events[:cut])
    assert not seals.run_verified(seal, events[cut:], leaves[:-1])
    assert not seals.run_verified(seal, events[cut:], leaves + leaves[:32])
    assert not seals.run_verified(seal, events[cut:], bytes(32) + leaves[32:])


@pytest.mark.parametrize(
    "changes",
    [
        {"rp": OTHER_RP},
        {"origin": "two.example"},
        {"epoch": "zzzzzzzz"},
        {"first": 2, "last": 2},
        {"root": bytes(32)},
        {"previous": bytes(32)},
        {"sealed_at_ms": 5001},
    ],
)
def test_a_seal_of_another_place_or_content_needs_another_signature(changes: dict[str, Any]) -> None:
    statement = sealed([b"x"])
    assert signed_by_us(statement)
    assert not signed_by_us(resealed(seals.seal_read(statement), **changes))


def test_a_floor_does_not_pass_as_a_seal_nor_a_seal_as_a_floor() -> None:
    floor = seals.low_water_mark_make(rp=RP, feed=FEED, first=9, stated_at_ms=5000, private_jwk=PRIVATE)
    read = seals.low_water_mark_read(floor)
    assert (read.rp, read.feed, read.first) == (RP, FEED, 9)
    assert seals.signed_by(signing.LOW_WATER_MARK, floor, read.stated_at_ms, KEYS)
    assert not seals.signed_by(signing.SEAL, floor, read.stated_at_ms, KEYS)
    with pytest.raises(BadSeal):
        seals.seal_read(floor)
    with pytest.raises(BadSeal):
        seals.low_water_mark_read(sealed([b"x"]))


def test_a_key_seals_within_its_window_only() -> None:
    kid = PRIVATE["kid"]
    statement = sealed([b"x"], at_ms=20_500)
    for window, good in (
        ({"nbf": 20}, True),
        ({"nbf": 21}, False),
        ({"nbf": 1, "exp": 20}, True),  # an end is told in whole seconds
        ({"nbf": 1, "exp": 19}, False),
    ):
        keys = {kid: {**KEYS[kid], **window}}
        if "exp" not in window:
            keys[kid].pop("exp", None)
        assert seals.signed_by(signing.SEAL, statement, 20_500, keys) is good
    assert not seals.signed_by(signing.SEAL, statement, 20_500, {})
    assert not seals.signed_by(signing.SEAL, statement, 20_500, {kid: next(iter(key()[1].values()))})


@given(st.lists(EVENTS, min_size=2, max_size=5), st.data())
def test_a_run_dropped_or_swapped_breaks_the_chain(runs: list[list[bytes]], data: st.DataObject) -> None:
    chain: list[Signed] = []
    first = 1
    for events in runs:
        chain.append(sealed(events, first=first, previous=seals.digest(chain[-1]) if chain else b""))
        first += len(events)
    read = [seals.seal_read(one) for one in chain]
    assert seals.chained(read[0], None)
    assert all(seals.chained(seal, before) for seal, before in zip(read[1:], chain, strict=False))
    assert not seals.chained(read[1], None)
    after = data.draw(st.integers(0, len(chain) - 1))
    for index, seal in enumerate(read):
        assert seals.chained(seal, chain[after]) == (index == after + 1)


def test_a_seal_of_another_feed_never_follows() -> None:
    before = sealed([b"x"])
    for feed, rp in ((Feed("two.example", FEED.epoch), RP), (Feed(FEED.origin, "zzzz"), RP), (FEED, OTHER_RP)):
        after = sealed([b"y"], first=2, previous=seals.digest(before), feed=feed, rp=rp)
        assert not seals.chained(seals.seal_read(after), before)


def test_equivocation_is_two_seals_for_one_sequence_after_one_seal_or_side_by_side_and_not_linked() -> None:
    one = sealed([b"a", b"b", b"c"])
    assert not seals.equivocate(one, one)
    assert seals.equivocate(one, sealed([b"a", b"X", b"c"]))
    assert seals.equivocate(one, sealed([b"X"], first=3, previous=bytes(32)))
    link = seals.digest(one)
    following = sealed([b"d"], first=4, previous=link)
    assert not seals.equivocate(one, following)
    assert seals.equivocate(following, sealed([b"e"], first=9, previous=link))
    unlinked = sealed([b"d"], first=4, previous=bytes(32))
    assert seals.equivocate(one, unlinked)
    assert seals.equivocate(unlinked, one)
    assert not seals.equivocate(following, one)
    assert not seals.equivocate(one, sealed([b"d"], first=5, previous=bytes(32))), "a seal may be between them"
    assert not seals.equivocate(one, sealed([b"X"], feed=Feed("two.example", FEED.epoch)))
    assert not seals.equivocate(one, sealed([b"X"], rp=OTHER_RP))
    assert not seals.equivocate(one, sealed([b"X"], feed=Feed(FEED.origin, "zzzz")))


@given(EVENTS, st.data())
def test_a_proof_holds_for_its_event_at_its_sequence_only(events: list[bytes], data: st.DataObject) -> None:
    seal = seals.seal_read(sealed(events, first=100))
    sequence = data.draw(st.integers(seal.first, seal.last))
    path = seals.proof_make(merkle.leaves(events), seal, sequence)
    event = events[sequence - seal.first]
    assert seals.proof_verified(seal, sequence, event, path)
    assert not seals.proof_verified(seal, sequence, event + b"!", path)
    for other in (seal.first - 1, seal.last + 1):
        assert not seals.proof_verified(seal, other, event, path)
    if len(events) > 1 and events[0] != events[1]:
        assert not seals.proof_verified(seal, seal.first, events[1], seals.proof_make(merkle.leaves(events), seal, 100))


def _encoded(**changes: Any) -> bytes:
    members = {"version": 1, "rp": RP, "origin": "one.example", "epoch": "abc"}
    members |= {"first": 1, "last": 1, "root": bytes(32), "previous": b"", "at": 5}
    return msgspec.msgpack.encode(list({**members, **changes}.values()))


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xc1",
        _encoded()[:-1],
        _encoded() + b"\0",
        _encoded(version=2),
        _encoded(version=0),
        _encoded(rp="a" * 25),
        _encoded(rp="A" * 26),
        _encoded(rp="a" * 26 + "\n"),
        _encoded(origin=""),
        _encoded(origin="a" * 254),
        _encoded(epoch="ab1\n"),
        _encoded(first=0),
        _encoded(first=-1),
        _encoded(first=2, last=1),
        _encoded(last=1001),
        _encoded(last=2**53),
        _encoded(first=2**60, last=2**60),
        _encoded(root=bytes(31)),
        _encoded(previous=bytes(31)),
        _encoded(previous=bytes(33)),
        _encoded(at=-1),
        _encoded(at=1.5),
        msgspec.msgpack.encode([1, RP, "one.example", "abc", 1, 1, bytes(32), b"", 5, "more"]),
        b"\x99\xcd\x00\x01" + _encoded()[2:],  # the same number, spelled longer
        b"\x00" * 513,
        b"\x91" * 512,
    ],
)
def test_what_is_no_seal_is_refused(payload: bytes) -> None:
    with pytest.raises(BadSeal):
        seals.seal_read(Signed(payload, "k", bytes(64)))


def test_a_seal_within_all_bounds_is_read() -> None:
    assert seals.seal_read(Signed(_encoded(), "k", bytes(64))).last == 1
    longest = _encoded(
        origin="a" * 253, epoch="a" * 26, first=2**53 - 1, last=2**53 - 1, previous=bytes(32), at=2**53 - 1
    )
    assert len(longest) <= seals.PAYLOAD_BYTES_MAX
    assert seals.seal_read(Signed(longest, "k", bytes(64))).count == 1


@given(st.binary(max_size=200))
def test_no_bytes_at_all_raise_anything_but_bad_seal(payload: bytes) -> None:
    with suppress(BadSeal):
        assert seals.seal_read(Signed(payload, "k", b"")).count >= 1


def test_nothing_and_too_much_cannot_be_sealed() -> None:
    for events in ([], [b"x"] * 1001):
        with pytest.raises(ValueError):
            sealed(events)


def test_a_run_of_1000_events_verifies_within_15_ms() -> None:
    events = [
        b'{"specversion":"1.0","id":"%d","source":"/s","type":"t","data":"%s"}' % (i, b"d" * 128) for i in range(1000)
    ]
    statement = sealed(events)
    took = []
    for _ in range(5):
        begin = time.process_time()
        seal = seals.seal_read(statement)
        assert signed_by_us(statement)
        assert seals.run_verified(seal, events)
        took.append((time.process_time() - begin) * 1000)
    assert min(took) <= VERIFY_MS_MAX


@pytest.mark.parametrize(
    ("heads", "epoch", "own", "sealed_to", "expected"),
    [
        ({}, "e", 5, 0, "equal"),
        ({}, "e", 5, 3, "ahead"),
        ({"e": 3}, "e", 5, 3, "equal"),
        ({"e": 3}, "e", 5, 5, "ahead"),
        ({"e": 5}, "e", 5, 3, "behind"),
        ({"e": 5}, "e", 9, 3, "behind"),
        ({"e": 5}, "e", 4, 3, "stale"),
        ({"e": 5}, "e", 3, 3, "stale"),
        ({"e": 5}, "e", 0, 0, "stale"),
        ({"e": 5, "f": 2}, "e", 5, 5, "stale"),
        ({"e": 5, "f": 2}, "f", 2, 2, "equal"),
        ({"e": 5}, "f", 2, 0, "equal"),
    ],
)
def test_how_a_log_stands_to_its_heads(
    heads: dict[str, int], epoch: str, own: int, sealed_to: int, expected: str
) -> None:
    assert verdict(heads, epoch, own, sealed_to) == expected


@given(EVENTS, st.data())
def test_a_log_holds_what_was_sealed_only_if_its_last_events_are_the_seals(
    events: list[bytes], data: st.DataObject
) -> None:
    seal, leaves = seals.seal_read(sealed(events, first=11)), merkle.leaves(events)
    cut = data.draw(st.integers(0, len(events) - 1))
    assert same_events(seal, leaves, 11 + cut, events[cut:])
    assert not same_events(seal, leaves, 11 + cut, [*events[cut:-1], events[-1] + b"!"])
    assert not same_events(seal, leaves, 11 + cut, [*events[cut:], b"more"])
    assert not same_events(seal, leaves, 12 + cut, events[cut:])
    assert not same_events(seal, leaves, 11, [])
    assert not same_events(seal, leaves[:-32] + bytes(32), 11 + cut, events[cut:])
