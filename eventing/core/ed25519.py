"""Validation of foreign Ed25519 public keys: which 32 bytes are accepted as a key, everywhere. Pure.

A library accepts any 32 bytes that decode to a point of the curve. Eight points are of small order: anybody can make
signatures that verify with such a key, for any message, without a private key, so that a statement signed by it proves
nothing. And where a coordinate beyond the field's prime is tolerated, the same point has several encodings, and one key
two thumbprints. Decoding of a point: RFC 8032 section 5.1.3. Differences of implementations and small order: J.-P.
Aumasson et al., "Taming the many EdDSAs" (2020), section 3.

Points of mixed order (a key of the subgroup plus one of the eight) are accepted: their maker holds the private key.
"""

from __future__ import annotations

import base64
import binascii

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from eventing.core.container import memoized

KEY_BYTES = 32
# About 1 KiB each.
KEYS_CACHED = 4096  # bound: checked public keys in memory; the least recently used key is checked again, 0.2 ms
_PRIME = 2**255 - 19
_D = -121665 * pow(121666, -1, _PRIME) % _PRIME
_ROOT_OF_MINUS_1 = pow(2, (_PRIME - 1) // 4, _PRIME)


class BadPublicKey(ValueError):
    """The bytes are not an acceptable public key. The text is a phrase with the reason, without a full stop."""


def public_key_check(data: bytes) -> None:
    """Refuse an invalid public key: wrong length, non-canonical encoding, not on the curve, or of small order.

    Raises BadPublicKey.
    """
    if len(data) != KEY_BYTES:
        raise BadPublicKey(f"an Ed25519 public key has {KEY_BYTES} bytes, this one has {len(data)}")
    x, y = _decoded(data)
    for _ in range(3):  # 8 P: the neutral element (0, 1) for points whose order divides 8
        x, y = _doubled(x, y)
    if (x, y) == (0, 1):
        raise BadPublicKey("the point is of small order: anybody can make signatures for it")


def public_key_text(data: bytes) -> str:
    """Encode the key as the member `x` of a JWK: base64url without padding, the only accepted text of these bytes."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@memoized(maxsize=KEYS_CACHED)
def public_key(x: str) -> Ed25519PublicKey:
    """Make the verification key from the member `x` of a JWK. Raises BadPublicKey."""
    try:
        data = base64.b64decode(x + "=" * (-len(x) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise BadPublicKey("it is not base64url") from None
    if public_key_text(data) != x:
        raise BadPublicKey("it is not canonical base64url without padding")
    public_key_check(data)
    return Ed25519PublicKey.from_public_bytes(data)


def _decoded(data: bytes) -> tuple[int, int]:
    """Decode the point (RFC 8032 section 5.1.3)."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if y >= _PRIME:
        raise BadPublicKey("the encoding is not canonical: its coordinate is not below the field's prime")
    numerator, denominator = (y * y - 1) % _PRIME, (_D * y * y + 1) % _PRIME
    x = numerator * pow(denominator, 3, _PRIME) % _PRIME
    x = x * pow(numerator * pow(denominator, 7, _PRIME), (_PRIME - 5) // 8, _PRIME) % _PRIME
    square = denominator * x * x % _PRIME
    if square == _PRIME - numerator:
        x = x * _ROOT_OF_MINUS_1 % _PRIME
    elif square != numerator:
        raise BadPublicKey("it is not a point of the curve")
    if x == 0 and sign:
        raise BadPublicKey("the encoding is not canonical: zero has a sign")
    return (_PRIME - x if x & 1 != sign else x), y


def _doubled(x: int, y: int) -> tuple[int, int]:
    """Add the point to itself, by the curve's addition law, which is complete (RFC 8032 section 5.1.4)."""
    product = _D * x * x * y * y % _PRIME
    return (
        2 * x * y * pow(1 + product, -1, _PRIME) % _PRIME,
        (y * y + x * x) * pow(1 - product, -1, _PRIME) % _PRIME,
    )
