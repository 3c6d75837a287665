"""Proofs of one event: that a domain published exactly these bytes, at this place of its feed. Verified locally.

    document = await client.proof(rp, cursor)                # a domain's statement; it may be any replica
    proved = check(document, rp=rp, fingerprint="yWt1...")   # verified, no matter who stated it; raises ProofError

What is checked: the event's hash leads by the Merkle path (RFC 9162) to the root that the origin sealed; the seal's
signature is by a key of the origin's domain document, within that key's window; that document is signed by the domain's
first key, whose id is the domain's fingerprint. Only the fingerprint is taken on trust: give the one that you got from
the origin itself. Without it, the proof only shows that the holder of that key published the event.

Needs the package cryptography: `pip install herald-client[proofs]`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from herald.errors import HeraldError, InputError

SEAL_CONTEXT = b"herald seal v1\0"
BATCH_CONTEXT = b"herald batch v1\0"  # for several seals under one signature
BATCH_MAX = 16
DOMAIN_CONTEXT = b"herald domain v1\0"
SEAL_VERSION = 1
RUN_EVENTS_MAX = 1000  # events of one seal
PATH_MAX = 16  # hashes: more than a run of RUN_EVENTS_MAX ever needs
SIGNATURE_BYTES = 64
HASH_BYTES = 32
KEYS_MAX = 32
DOCUMENT_BYTES_MAX = 16 * 1024
SEAL_BYTES_MAX = 512
_FIELD_PRIME = 2**255 - 19
_OF_ORDER_8 = int.from_bytes(
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
)
_SMALL_ORDER = frozenset({0, 1, _FIELD_PRIME - 1, _OF_ORDER_8, _FIELD_PRIME - _OF_ORDER_8})
"""The y coordinates of Ed25519's points of small order; both signs of x."""


class ProofError(HeraldError):
    """The proof proves nothing; the message states in one sentence what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Proved:
    """The result of a valid proof.

    Attributes:
        rp: id of the rendezvous point.
        origin: the domain that published the event.
        epoch, sequence: the event's place in the origin's feed of that RP.
        event: its exact bytes.
        first, last: the sequences that the seal covers.
        sealed_at_ms: time of the seal, by the origin's clock; Unix milliseconds.
        key_id: the key that signed the seal.
        fingerprint: id of the origin's first key, which vouches for `key_id`.
        pinned: whether the fingerprint is one that the caller gave.
    """

    rp: str
    origin: str
    epoch: str
    sequence: int
    event: bytes
    first: int
    last: int
    sealed_at_ms: int
    key_id: str
    fingerprint: str
    pinned: bool


def check(
    proof: Mapping[str, Any],
    *,
    rp: str | None = None,
    origin: str | None = None,
    fingerprint: str | None = None,
    event: bytes | None = None,
) -> Proved:
    """Verify the answer of GET /api/v1/rps/RP/proof, without any request.

    Args:
        proof: the answer, parsed.
        rp: id of the RP that the event must be of; None for any.
        origin: name of the domain that must have published it; None for any.
        fingerprint: the origin's, from the origin itself; spaces are ignored. None: not compared.
        event: the exact bytes to prove; None for those in the proof.

    Raises ProofError; InputError without the package cryptography.
    """
    text = _binary(proof, "event")
    if event is not None and event != text:
        raise ProofError("The proof is of another event.")
    payload, kid, signature = _statement(proof.get("seal"), "seal", SEAL_BYTES_MAX)
    seal = _seal(payload)
    keys = _document(proof.get("document"), seal["origin"])
    first_key = next(iter(keys))
    if fingerprint is not None and "".join(fingerprint.split()) != first_key:
        raise ProofError(f"The fingerprint of {seal['origin']} is {first_key}, not the one given.")
    if rp is not None and seal["rp"] != rp:
        raise ProofError(f"The proof is of an event at {seal['rp']}.")
    if origin is not None and seal["origin"] != origin:
        raise ProofError(f"The event was published by {seal['origin']}.")
    key = keys.get(kid)
    if key is None:
        raise ProofError(f"The seal is signed by a key that {seal['origin']} does not list.")
    if not _in_window(key, seal["sealed_at_ms"]):
        raise ProofError("The seal was made outside the window of the key that signed it.")
    if not _sealed(SEAL_CONTEXT + payload, signature, key["x"]):
        raise ProofError("The signature of the seal is wrong.")
    index = _number(proof.get("leaf_index"), "leaf_index")
    size = seal["last"] - seal["first"] + 1
    path = _path(proof.get("path"))
    if _root(hashlib.sha256(b"\0" + text).digest(), index, size, path) != seal["root"]:
        raise ProofError("The event is not the one that was sealed: its hash does not lead to the sealed root.")
    return Proved(
        seal["rp"],
        seal["origin"],
        seal["epoch"],
        seal["first"] + index,
        text,
        seal["first"],
        seal["last"],
        seal["sealed_at_ms"],
        kid,
        first_key,
        fingerprint is not None,
    )


def _sealed(said: bytes, signature: bytes, x: str) -> bool:
    """Return whether the key signed this, alone, or the root of a tree of several seals to which a path leads."""
    own, place = signature[:SIGNATURE_BYTES], signature[SIGNATURE_BYTES:]
    if not place:
        return _signed(said, own, x)
    hashes = [place[at : at + HASH_BYTES] for at in range(2, len(place), HASH_BYTES)]
    if not 1 <= len(hashes) <= PATH_MAX or len(hashes[-1]) != HASH_BYTES or not 2 <= place[1] <= BATCH_MAX:
        return False
    root = _root(hashlib.sha256(b"\0" + said).digest(), place[0], place[1], hashes)
    return root is not None and _signed(BATCH_CONTEXT + place[1:2] + root, own, x)


def _root(leaf: bytes, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """Return the root that the path leads to (RFC 9162 section 2.1.3.2); None if no tree of `size` leaves has such a
    path.
    """
    if not 0 <= index < size:
        return None
    current, last = leaf, size - 1
    for neighbour in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            current = hashlib.sha256(b"\1" + neighbour + current).digest()
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            current = hashlib.sha256(b"\1" + current + neighbour).digest()
        index, last = index >> 1, last >> 1
    return current if last == 0 else None


def _seal(payload: bytes) -> dict[str, Any]:
    """Return the members of a seal, an array in MessagePack. Raises ProofError."""
    names = ("version", "rp", "origin", "epoch", "first", "last", "root", "previous", "sealed_at_ms")
    kinds = (int, str, str, str, int, int, bytes, bytes, int)
    values, rest = _array(payload)
    if rest or len(values) != len(names) or any(type(v) is not k for v, k in zip(values, kinds, strict=False)):
        raise ProofError("The seal has a format that this client cannot read.")
    seal = dict(zip(names, values, strict=True))
    if seal["version"] != SEAL_VERSION or len(seal["root"]) != HASH_BYTES:
        raise ProofError("The seal has a format that this client cannot read.")
    if not 1 <= seal["first"] <= seal["last"] < seal["first"] + RUN_EVENTS_MAX:
        raise ProofError(f"A seal covers 1 to {RUN_EVENTS_MAX} events.")
    return seal


def _array(data: bytes) -> tuple[list[Any], bytes]:
    """Return a short MessagePack array of numbers from 0, texts and bytes, which is all that a seal contains, and the
    rest of the data.
    """
    if not data or data[0] & 0xF0 != 0x90:
        raise ProofError("The seal is not a MessagePack array.")
    values, rest = [], data[1:]
    for _ in range(data[0] & 0x0F):
        value, rest = _value(rest)
        values.append(value)
    return values, rest


def _value(data: bytes) -> tuple[Any, bytes]:
    kind = data[0] if data else 0xC1
    if kind < 0x80:
        return kind, data[1:]
    if kind & 0xE0 == 0xA0:
        head, size, text = 1, kind & 0x1F, True
    elif 0xCC <= kind <= 0xCF:
        end = 1 + (1 << (kind - 0xCC))
        if len(data) < end:
            raise ProofError("The seal is truncated.")
        return int.from_bytes(data[1:end], "big"), data[end:]
    elif kind in (0xC4, 0xC5, 0xD9, 0xDA):
        head = 2 if kind in (0xC4, 0xD9) else 3
        size, text = int.from_bytes(data[1:head], "big"), kind in (0xD9, 0xDA)
    else:
        raise ProofError("The seal contains an invalid value.")
    body = data[head : head + size]
    if len(data) < head or len(body) != size:
        raise ProofError("The seal is truncated.")
    try:
        return body.decode() if text else body, data[head + size :]
    except UnicodeDecodeError:
        raise ProofError("The seal contains an invalid text.") from None


def _document(members: Any, domain: str) -> dict[str, dict[str, Any]]:
    """Return the keys in the domain's document, by id, the first one first, which must have signed it. Raises
    ProofError.
    """
    if not isinstance(members, Mapping):
        raise ProofError("The proof has no domain document.")
    payload, signatures, kids = _binary(members, "payload"), _binary(members, "signature"), members.get("kids")
    try:
        said = json.loads(payload) if len(payload) <= DOCUMENT_BYTES_MAX else None
    except (ValueError, RecursionError):
        said = None
    said = said if isinstance(said, dict) else {}
    listed = said.get("keys")
    if not isinstance(listed, list) or not 1 <= len(listed) <= KEYS_MAX or not isinstance(kids, list):
        raise ProofError("The domain document has a format that this client cannot read.")
    if said.get("domain") != domain:
        raise ProofError(f"The domain document is not that of {domain}.")
    keys = {}
    for key in listed:
        x = key.get("x") if isinstance(key, dict) else None
        if not isinstance(x, str) or _thumbprint(x) != key.get("kid"):
            raise ProofError("The domain document lists a key that is not named by its thumbprint.")
        if _of_small_order(x):
            raise ProofError("The domain document lists a key of small order: anybody can make signatures for it.")
        keys[key["kid"]] = key
    first = next(iter(keys))
    place = kids.index(first) if first in kids else -1
    signature = signatures[place * SIGNATURE_BYTES : (place + 1) * SIGNATURE_BYTES]
    if place < 0 or not _signed(DOMAIN_CONTEXT + payload, signature, keys[first]["x"]):
        raise ProofError("The domain document is not signed by the domain's first key.")
    return keys


def _in_window(key: Mapping[str, Any], at_ms: int) -> bool:
    begin, end = key.get("nbf"), key.get("exp")
    if not isinstance(begin, int) or not (end is None or isinstance(end, int)):
        return False
    return at_ms >= begin * 1000 and (end is None or at_ms < (end + 1) * 1000)


def _signed(message: bytes, signature: bytes, x: str) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise InputError("Proofs need a package: pip install 'herald-client[proofs]'.") from None
    try:
        Ed25519PublicKey.from_public_bytes(base64.urlsafe_b64decode(x + "=" * (-len(x) % 4))).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _of_small_order(x: str) -> bool:
    """Return whether a key is one of the eight points whose order divides 8, in any of their encodings: the sign is
    ignored.
    """
    try:
        data = base64.urlsafe_b64decode(x + "=" * (-len(x) % 4))
    except ValueError:
        return False  # no key at all: nothing verifies with it
    return (int.from_bytes(data, "little") & (1 << 255) - 1) % _FIELD_PRIME in _SMALL_ORDER


def _thumbprint(x: str) -> str:
    """Return the RFC 7638 thumbprint."""
    digest = hashlib.sha256(f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _statement(members: Any, name: str, bytes_max: int) -> tuple[bytes, str, bytes]:
    if not isinstance(members, Mapping) or not isinstance(members.get("kid"), str):
        raise ProofError(f"The proof has no {name}.")
    payload = _binary(members, "payload")
    if len(payload) > bytes_max:
        raise ProofError(f"The {name} is too long.")
    return payload, members["kid"], _binary(members, "signature")


def _path(values: Any) -> list[bytes]:
    if not isinstance(values, list) or len(values) > PATH_MAX:
        raise ProofError(f"The proof's path is not a list of at most {PATH_MAX} hashes.")
    path = [_binary({"path": value}, "path") for value in values]
    if any(len(one) != HASH_BYTES for one in path):
        raise ProofError("A hash of the proof's path has not 32 bytes.")
    return path


def _number(value: Any, name: str) -> int:
    if type(value) is not int or value < 0:
        raise ProofError(f"The proof's {name} is not a number from 0.")
    return value


def _binary(members: Mapping[str, Any], name: str) -> bytes:
    value = members.get(name)
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else _absent(name)
    except (binascii.Error, ValueError):
        raise ProofError(f"The proof's {name} is not base64.") from None


def _absent(name: str) -> bytes:
    raise ProofError(f"The proof has no {name}.")
