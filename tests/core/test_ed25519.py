"""Public keys of others: points that anybody can sign for, and second encodings of one key, are taken nowhere."""

from __future__ import annotations

import ast
import itertools
import os

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from demo.harness.servers import ROOT
from eventing.access.rules import tokens
from eventing.core import signing
from eventing.core.ed25519 import BadPublicKey, public_key, public_key_check, public_key_text
from eventing.core.errors import Unauthenticated
from eventing.core.signing import SEAL, Signed
from tests.core.ed25519_vectors import NEUTRAL, NOT_CANONICAL, NOT_ON_THE_CURVE, SMALL_ORDER
from tests.core.test_decoding import SERVER

PRIME = 2**255 - 19
D = -121665 * pow(121666, -1, PRIME) % PRIME
FORGED = NEUTRAL + bytes(32)
"""A signature made without any key: R is the neutral element, S is 0. It verifies where h A is the neutral element."""


def point(data: bytes) -> tuple[int, int]:
    """The point of an encoding, by trial of both roots: another way than the code under test takes."""
    number = int.from_bytes(data, "little")
    y, sign = (number & (2**255 - 1)) % PRIME, number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, PRIME) % PRIME
    root = pow(square, (PRIME + 3) // 8, PRIME)
    for x in (root, root * pow(2, (PRIME - 1) // 4, PRIME) % PRIME):
        if x * x % PRIME == square:
            return (-x % PRIME if x % 2 != sign else x), y
    raise AssertionError("not a point of the curve")


def added(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    (a, b), (c, d) = one, other
    product = D * a * b * c * d % PRIME
    return (
        (a * d + b * c) * pow(1 + product, -1, PRIME) % PRIME,
        (b * d + a * c) * pow(1 - product, -1, PRIME) % PRIME,
    )


def test_the_vectors_are_the_eight_points_whose_order_divides_eight() -> None:
    points = {point(bytes.fromhex(text)) for text in SMALL_ORDER}
    assert len(points) == 8
    assert {added(one, other) for one, other in itertools.product(points, repeat=2)} == points
    for one in points:
        doubled = added(one, one)
        four = added(doubled, doubled)
        assert added(four, four) == (0, 1)


@pytest.mark.parametrize("text", SMALL_ORDER)
def test_a_point_of_small_order_is_refused(text: str) -> None:
    with pytest.raises(BadPublicKey, match="small order"):
        public_key_check(bytes.fromhex(text))


@pytest.mark.parametrize("text", NOT_CANONICAL)
def test_a_second_encoding_of_a_point_is_refused(text: str) -> None:
    with pytest.raises(BadPublicKey, match="not canonical"):
        public_key_check(bytes.fromhex(text))


@pytest.mark.parametrize("text", NOT_ON_THE_CURVE)
def test_what_is_no_point_of_the_curve_is_refused(text: str) -> None:
    with pytest.raises(BadPublicKey, match="not a point of the curve"):
        public_key_check(bytes.fromhex(text))


@pytest.mark.parametrize("data", [b"", bytes(31), bytes(33), b"\x05" * 64])
def test_another_length_is_refused(data: bytes) -> None:
    with pytest.raises(BadPublicKey, match="32 bytes"):
        public_key_check(data)


@pytest.mark.parametrize("change", ["{}=", "{}A", " {}", "{}\n", "{} ", "ü{}", "+{}"])
def test_a_text_that_is_not_the_one_of_its_key_is_refused(change: str) -> None:
    text = public_key_text(Ed25519PrivateKey.generate().public_key().public_bytes_raw())
    assert public_key(text).public_bytes_raw()
    with pytest.raises(BadPublicKey):
        public_key(change.format(text))


@given(st.binary(min_size=32, max_size=32))
def test_the_key_of_every_secret_is_taken(secret: bytes) -> None:
    key = Ed25519PrivateKey.from_private_bytes(secret)
    taken = public_key(public_key_text(key.public_key().public_bytes_raw()))
    taken.verify(key.sign(b"said"), b"said")


@given(st.binary(min_size=32, max_size=32))
def test_nothing_is_taken_that_an_independent_reading_calls_no_point(data: bytes) -> None:
    try:
        public_key_check(data)
    except BadPublicKey:
        return
    x, y = point(data)
    assert ((x & 1) << 255 | y).to_bytes(32, "little") == data


@pytest.mark.parametrize("text", [*SMALL_ORDER, *NOT_CANONICAL])
def test_nothing_is_signed_by_a_key_that_anybody_can_sign_for(text: str) -> None:
    """The library says that the forged signature is good, for some messages with each of these keys."""
    raw, x = bytes.fromhex(text), public_key_text(bytes.fromhex(text))
    forged = 0
    for number in range(64):
        payload = b"%d" % number
        try:
            Ed25519PublicKey.from_public_bytes(raw).verify(FORGED, SEAL + b"\0" + payload)
        except InvalidSignature:
            continue
        forged += 1
        assert not signing.verified(SEAL, Signed(payload, "k", FORGED), {"x": x})
        with pytest.raises(Unauthenticated, match="not usable"):
            tokens.verify_ed25519(x, tokens.Read({}, {}, SEAL + b"\0" + payload, FORGED))
    assert forged or text in NOT_CANONICAL


def test_one_module_makes_public_keys() -> None:
    found = set()
    for path in (path for folder in SERVER for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in ("from_public_bytes", "load_der_public_key"):
                found.add(str(path.relative_to(ROOT)))
    assert found == {"eventing/core/ed25519.py"}


def test_random_bytes_are_refused_about_half_of_the_time() -> None:
    refused = 0
    for _ in range(200):
        try:
            public_key_check(os.urandom(32))
        except BadPublicKey:
            refused += 1
    assert 40 < refused < 160
