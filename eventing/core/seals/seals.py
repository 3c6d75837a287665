"""Seals: signed, hash-linked statements by which an origin vouches for the runs of its feed. Pure.

A run is sealed once, before it leaves its origin. Whichever domain carries the run, a receiver reads the origin with
`seal_read` and verifies the signature with `signed_by`, the events with `run_verified` and the position in the chain
with `chained`. So nobody but the origin can alter a feed, drop events from its middle, reorder or invent them; and an
origin that signs two statements about one position signs the proof of equivocation (`equivocate`).

    events --leaf hashes--> Merkle root --+
    the previous seal's payload --digest--+--> Seal --MessagePack--> payload --Ed25519--> Signed
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from eventing.core import merkle, signing
from eventing.core.decoding import Reader, Undecodable, msgpack_reader
from eventing.core.events.feeds import Feed
from eventing.core.signing import Signed

VERSION = 1
# The bound of a request between domains (peering/wire/messages.py).
RUN_EVENTS_MAX = 1000  # bound: events of a seal; the others are in the next seal
# bound: bytes of a seal's events; the others are in the next seal; a larger event is sealed alone
RUN_BYTES_MAX = 1024 * 1024
# A seal of the longest names has under 420.
PAYLOAD_BYTES_MAX = 512  # bound: bytes of a seal; the seal is refused: `malformed`
_MS = 1000

Name = Annotated[str, Meta(min_length=1, max_length=253)]
RpId = Annotated[str, Meta(pattern=r"^[a-z2-7]{26}\Z")]
Epoch = Annotated[str, Meta(pattern=r"^[a-z2-7]{1,26}\Z")]
Sequence53 = Annotated[int, Meta(ge=1, le=2**53 - 1)]
Millis = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class BadSeal(Exception):
    """A statement is not a valid seal or low-water mark; the text is one sentence."""


class Seal(msgspec.Struct, array_like=True, frozen=True):
    """Origin's statement about a run of its feed.

    Attributes:
        version: VERSION.
        rp, origin, epoch: identity of the feed.
        first, last: the run's sequences, at most RUN_EVENTS_MAX of them.
        root: of the Merkle tree over the run's events.
        previous: SHA-256 of the payload of the feed's seal before this one; empty for the feed's first.
        sealed_at_ms: time by the origin's clock, Unix milliseconds.
    """

    version: int
    rp: RpId
    origin: Name
    epoch: Epoch
    first: Sequence53
    last: Sequence53
    root: Annotated[bytes, Meta(min_length=32, max_length=32)]
    previous: Annotated[bytes, Meta(max_length=32)]
    sealed_at_ms: Millis

    @property
    def feed(self) -> Feed:
        """Feed of the run."""
        return Feed(self.origin, self.epoch)

    @property
    def count(self) -> int:
        """Number of events that the seal covers."""
        return self.last - self.first + 1


class LowWaterMark(msgspec.Struct, array_like=True, frozen=True):
    """Origin's statement about the beginning of its feed (low-water mark): events before `first` have left its history."""

    version: int
    rp: RpId
    origin: Name
    epoch: Epoch
    first: Sequence53
    stated_at_ms: Millis

    @property
    def feed(self) -> Feed:
        """Feed that the statement is about."""
        return Feed(self.origin, self.epoch)


Statement = TypeVar("Statement", Seal, LowWaterMark)
_encode = msgspec.msgpack.Encoder().encode
_seal = msgpack_reader(Seal)
_low_water_mark = msgpack_reader(LowWaterMark)


def seal_make(
    *,
    rp: str,
    feed: Feed,
    first: int,
    leaves: bytes,
    previous: bytes,
    sealed_at_ms: int,
    private_jwk: Mapping[str, Any],
) -> Signed:
    """Seal a run, as `payload_make`, with the origin's signing key `private_jwk`, which has its `kid`."""
    payload = payload_make(rp=rp, feed=feed, first=first, leaves=leaves, previous=previous, sealed_at_ms=sealed_at_ms)
    return signing.sign(signing.SEAL, payload, private_jwk)


def payload_make(*, rp: str, feed: Feed, first: int, leaves: bytes, previous: bytes, sealed_at_ms: int) -> bytes:
    """Encode a seal's content, to be signed as signing.SEAL.

    Args:
        first: the run's first sequence.
        leaves: the leaf hashes of its events (merkle.leaves), 1 to RUN_EVENTS_MAX.
        previous: `digest` of the feed's seal before this one; empty for the first.

    Raises ValueError for no events, or too many.
    """
    count = len(leaves) // merkle.HASH_BYTES
    if not 1 <= count <= RUN_EVENTS_MAX:
        raise ValueError(f"a seal covers 1 to {RUN_EVENTS_MAX} events")
    last = first + count - 1
    return _encode(Seal(VERSION, rp, feed.origin, feed.epoch, first, last, merkle.root(leaves), previous, sealed_at_ms))


def seal_read(statement: Signed) -> Seal:
    """Decode a seal and check its form and bounds, but not its signature (see `signed_by`). Raises BadSeal."""
    seal = _read(statement, _seal)
    if seal.last < seal.first or seal.count > RUN_EVENTS_MAX:
        raise BadSeal(f"A seal covers 1 to {RUN_EVENTS_MAX} events, not {seal.first} to {seal.last}.")
    if len(seal.previous) not in (0, merkle.HASH_BYTES):
        raise BadSeal("A seal names the previous seal by a SHA-256 digest, or has no such name.")
    return seal


def low_water_mark_make(
    *, rp: str, feed: Feed, first: int, stated_at_ms: int, private_jwk: Mapping[str, Any]
) -> Signed:
    """State that all events before `first` (at least 1) have left the origin's history."""
    low_water_mark = LowWaterMark(VERSION, rp, feed.origin, feed.epoch, first, stated_at_ms)
    return signing.sign(signing.LOW_WATER_MARK, _encode(low_water_mark), private_jwk)


def low_water_mark_read(statement: Signed) -> LowWaterMark:
    """Decode a low-water mark and check its form and bounds, but not its signature. Raises BadSeal."""
    return _read(statement, _low_water_mark)


def signed_by(context: bytes, statement: Signed, at_ms: int, keys: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return True if one of the origin's keys signed this statement within the key's window.

    Args:
        context: signing.SEAL or signing.LOW_WATER_MARK.
        at_ms: time at which the statement claims to have been made, Unix milliseconds.
        keys: the origin's public JWKs by `kid`, with `nbf` and `exp` (Unix seconds) where the window has such ends.
    """
    jwk = keys.get(statement.kid)
    if jwk is None or at_ms < int(jwk.get("nbf", 0)) * _MS:
        return False
    end = jwk.get("exp")
    return (end is None or at_ms < (int(end) + 1) * _MS) and signing.verified(context, statement, jwk)


def run_verified(seal: Seal, events: Sequence[bytes], leaves: bytes = b"") -> bool:
    """Return True if these are exactly the sealed events: `events` the last of the run, `leaves` hashes of those before."""
    if len(leaves) % merkle.HASH_BYTES or len(leaves) // merkle.HASH_BYTES + len(events) != seal.count:
        return False
    return merkle.root(leaves + merkle.leaves(events)) == seal.root


def digest(statement: Signed) -> bytes:
    """Compute the digest by which the feed's next seal names this one."""
    return hashlib.sha256(statement.payload).digest()


def chained(seal: Seal, previous: Signed | None) -> bool:
    """Return True if `seal` follows `previous` in its feed (None: if `seal` is the feed's first).

    Its first sequence is `previous.last + 1`, or a greater one if the events between left the origin's history before
    they were sealed; such a gap then needs the origin's low-water mark. Raises BadSeal if `previous` is malformed.
    """
    if previous is None:
        return seal.previous == b""
    before = seal_read(previous)
    same = (seal.rp, seal.origin, seal.epoch) == (before.rp, before.origin, before.epoch)
    return same and seal.first > before.last and seal.previous == digest(previous)


def equivocate(one: Signed, other: Signed) -> bool:
    """Return True if two seals with valid signatures prove equivocation of their origin.

    They prove it if they differ and cover a common sequence, or both follow the same seal, or one begins where the
    other ends but names another predecessor: no seal fits between them. An honest origin never signs both. Raises
    BadSeal.
    """
    if one.payload == other.payload:
        return False
    a, b = seal_read(one), seal_read(other)
    if (a.rp, a.origin, a.epoch) != (b.rp, b.origin, b.epoch):
        return False
    if (a.first <= b.last and b.first <= a.last) or a.previous == b.previous:
        return True
    before, after = (one, b) if a.last < b.first else (other, a)
    return after.first == min(a.last, b.last) + 1 and after.previous != digest(before)


def proof_make(leaves: bytes, seal: Seal, sequence: int) -> list[bytes]:
    """Compute the Merkle path that proves the event `sequence` of a sealed run with these leaf hashes. Raises ValueError."""
    if len(leaves) != seal.count * merkle.HASH_BYTES:
        raise ValueError("the leaf hashes are not those of the whole run")
    return merkle.path(leaves, sequence - seal.first)


def proof_verified(seal: Seal, sequence: int, event: bytes, path: Sequence[bytes]) -> bool:
    """Return True if the seal vouches for exactly this event at this sequence."""
    found = merkle.root_by_path(merkle.leaf(event), sequence - seal.first, seal.count, path)
    return found is not None and found == seal.root


def _read(statement: Signed, decode: Reader[Statement]) -> Statement:
    if len(statement.payload) > PAYLOAD_BYTES_MAX:
        raise BadSeal(f"A statement about a feed has at most {PAYLOAD_BYTES_MAX} bytes.")
    try:
        read = decode(statement.payload)
    except Undecodable as error:
        raise BadSeal(f"The statement about a feed is malformed: {error}.") from None
    if read.version != VERSION:
        raise BadSeal(f"The statement about a feed has version {read.version}; this domain supports version {VERSION}.")
    if (
        _encode(read) != statement.payload
    ):  # canonical form only: a second encoding of the same content would have another digest
        raise BadSeal("The statement about a feed is not in its canonical form.")
    return read
