"""Ed25519 signatures over statements: a domain's claims that anyone can verify, whichever domain carried them. Pure.

The signed bytes are CONTEXT || 0x00 || PAYLOAD, so that a statement of one kind can never pass as one of another. The
payload is stored and sent as the exact bytes that were signed, and is never encoded again.

Statements made together share one signature (`sign_all`): each is a leaf of a Merkle tree (merkle.py), the tree's root
is signed, and a statement's signature consists of the root's signature and the path to the root. Such a signature
proves its statement without the others; and a receiver of all of them verifies one signature, which costs as much as
200 hashes.

    SIGNATURE of (BATCH || 0x00 || COUNT || ROOT), 64 bytes || INDEX, COUNT: a byte each || hashes, 32 bytes each
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from eventing.core import merkle
from eventing.core.container import memoized
from eventing.core.ed25519 import public_key

SIGNATURE_BYTES = 64
# bound: statements under one signature; the others are under the next signature
BATCH_MAX = 16  # statements under one signature: a path of 4 hashes adds 130 bytes to each and divides the cost of verification by 16
_PATH_BYTES_MAX = merkle.HASH_BYTES * 4
KID_CHARS_MAX = 64
KID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_ROOTS_CACHED = 4096  # verified roots, as of several requests at once; ~300 bytes each

# Kinds of statements, each with its context.
DOMAIN = b"herald domain v1"
DESCRIPTOR = b"herald descriptor v1"
ADMISSION = b"herald admission v1"
PROPERTIES = b"herald properties v1"
JOIN = b"herald join v1"
HAND_OVER = b"herald hand-over v1"
SUCCESSION_PLAN = b"herald succession plan v1"
SEAL = b"herald seal v1"
LOW_WATER_MARK = b"herald floor v1"
SUBSCRIPTION = b"herald subscription v1"
OVERLAY_RECORD = b"herald overlay record v1"
OVERLAY_ROW = b"herald overlay row v1"
SPONSORSHIP = b"herald sponsorship v1"
BATCH = b"herald batch v1"  # several statements of one of these kinds


class Signed(msgspec.Struct, array_like=True, frozen=True):
    """A statement: exact bytes, thumbprint of the signing key (RFC 7638), signature."""

    payload: bytes
    kid: str
    signature: bytes


def sign(context: bytes, payload: bytes, private_jwk: Mapping[str, Any]) -> Signed:
    """Sign `payload` as a statement of the kind `context`. `private_jwk` is an Ed25519 JWK with its `kid`."""
    return Signed(payload, str(private_jwk["kid"]), _private(str(private_jwk["d"])).sign(context + b"\0" + payload))


def sign_all(context: bytes, payloads: Sequence[bytes], private_jwk: Mapping[str, Any]) -> list[Signed]:
    """Sign each of `payloads` as `sign` does, in order, with one signature for every BATCH_MAX of them."""
    found: list[Signed] = []
    for begin in range(0, len(payloads), BATCH_MAX):
        some = payloads[begin : begin + BATCH_MAX]
        if len(some) == 1:
            found.append(sign(context, some[0], private_jwk))
            continue
        leaves = merkle.leaves([context + b"\0" + payload for payload in some])
        root, paths = merkle.root_and_paths(leaves)
        signature = sign(BATCH, bytes([len(some)]) + root, private_jwk).signature
        for index, (payload, path) in enumerate(zip(some, paths, strict=True)):
            place = bytes([index, len(some)])
            found.append(Signed(payload, str(private_jwk["kid"]), b"".join([signature, place, *path])))
    return found


def verified(context: bytes, statement: Signed, public_jwk: Mapping[str, Any]) -> bool:
    """Return True if the key signed exactly this statement as one of the kind `context`, alone or in a batch."""
    said, signature = context + b"\0" + statement.payload, statement.signature
    try:
        if len(signature) == SIGNATURE_BYTES:
            return _verified(str(public_jwk["x"]), signature, said)
        root = _root(said, signature[SIGNATURE_BYTES:])
        return root is not None and _root_verified(str(public_jwk["x"]), signature[:SIGNATURE_BYTES], root)
    except (ValueError, KeyError):
        return False


def _root(said: bytes, place: bytes) -> bytes | None:
    """Compute the signed root of a batch from a statement and its path; None for a malformed path."""
    path_bytes = len(place) - 2
    if not 0 < path_bytes <= _PATH_BYTES_MAX or path_bytes % merkle.HASH_BYTES or not 2 <= place[1] <= BATCH_MAX:
        return None
    root = merkle.root_by_path(merkle.leaf(said), place[0], place[1], merkle.split(place[2:]))
    return None if root is None else BATCH + b"\0" + place[1:2] + root


@memoized(maxsize=_ROOTS_CACHED)
def _root_verified(x: str, signature: bytes, root: bytes) -> bool:
    return _verified(x, signature, root)


def _verified(x: str, signature: bytes, said: bytes) -> bool:
    try:
        public_key(x).verify(signature, said)
    except InvalidSignature:
        return False
    return True


@memoized(maxsize=16)
def _private(d: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(_unpadded(d))


def _unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
