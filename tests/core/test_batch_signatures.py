"""core/signing.py: statements under one signature. Each stands alone, and nobody can make another pass as one of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jwk import OKPKey

from eventing.core import merkle, signing
from eventing.core.signing import BATCH_MAX, LOW_WATER_MARK, SEAL, SIGNATURE_BYTES, Signed, sign, sign_all, verified


def _key() -> tuple[dict[str, Any], dict[str, Any]]:
    made = OKPKey.generate_key("Ed25519")
    return {**made.as_dict(private=True), "kid": made.thumbprint()}, dict(made.as_dict(private=False))


PRIVATE, PUBLIC = _key()
OTHER = _key()[1]


def payloads(count: int) -> list[bytes]:
    return [b"statement %d" % number for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 15, 16, 17, 33, 50])
def test_each_of_a_batch_is_verified_by_itself(count: int) -> None:
    made = sign_all(SEAL, payloads(count), PRIVATE)
    assert [one.payload for one in made] == payloads(count)
    assert all(verified(SEAL, one, PUBLIC) for one in made)
    assert not any(verified(SEAL, one, OTHER) for one in made)
    assert not any(verified(LOW_WATER_MARK, one, PUBLIC) for one in made), "of another kind"
    assert len({one.signature[:SIGNATURE_BYTES] for one in made}) == -(-count // BATCH_MAX)


def test_one_alone_is_signed_as_ever() -> None:
    assert sign_all(SEAL, [b"one"], PRIVATE) == [sign(SEAL, b"one", PRIVATE)]


def test_a_batch_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[bytes] = []
    real = signing._verified
    monkeypatch.setattr(signing, "_verified", lambda *said: looks.append(said[1]) or real(*said))
    private, public = _key()  # of which nothing was looked at before
    made = sign_all(SEAL, payloads(40), private)
    assert all(verified(SEAL, one, public) for one in made)
    assert len(looks) == 3


@given(count=st.integers(2, 16), at=st.integers(0, 15), where=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_no_byte_of_a_statement_of_a_batch_can_be_changed(count: int, at: int, where: int, flip: int) -> None:
    one = sign_all(SEAL, payloads(count), PRIVATE)[at % count]
    whole = bytearray(one.payload + one.signature)
    whole[where % len(whole)] ^= flip
    changed = Signed(bytes(whole[: len(one.payload)]), one.kid, bytes(whole[len(one.payload) :]))
    assert not verified(SEAL, changed, PUBLIC)


@given(st.binary(max_size=300))
def test_no_bytes_at_all_pass_as_a_signature_or_raise_anything(signature: bytes) -> None:
    assert not verified(SEAL, Signed(b"x", "k", signature), PUBLIC)


def test_a_path_is_good_at_its_own_place_only() -> None:
    one, other = sign_all(SEAL, payloads(4), PRIVATE)[:2]
    assert not verified(SEAL, Signed(one.payload, one.kid, other.signature), PUBLIC)
    longer = one.signature + bytes(32)
    assert not verified(SEAL, Signed(one.payload, one.kid, longer), PUBLIC)
    assert not verified(SEAL, Signed(one.payload, one.kid, one.signature[:-32]), PUBLIC)


def test_a_node_of_the_tree_is_no_statement() -> None:
    said = [SEAL + b"\0" + payload for payload in payloads(4)]
    leaves = merkle.leaves(said)
    node = leaves[:64]  # what the first two leaves' parent is the hash of
    signature = sign_all(SEAL, payloads(4), PRIVATE)[0].signature
    shorter = signature[:SIGNATURE_BYTES] + bytes([0, 2]) + signature[-32:]
    assert not verified(SEAL, Signed(node, "k", shorter), PUBLIC)


def test_the_signature_of_a_batch_is_none_of_a_statement() -> None:
    made = sign_all(SEAL, payloads(2), PRIVATE)
    root = merkle.root(merkle.leaves([SEAL + b"\0" + payload for payload in payloads(2)]))
    alone = Signed(bytes([2]) + root, PRIVATE["kid"], made[0].signature[:SIGNATURE_BYTES])
    assert not any(verified(kind, alone, PUBLIC) for kind in (SEAL, LOW_WATER_MARK, signing.DOMAIN, signing.DESCRIPTOR))
