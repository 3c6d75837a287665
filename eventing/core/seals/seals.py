"""Seals: the signed, linked statements by which an origin vouches for the runs of its feed. Pure.

Before a run leaves its origin it is sealed, once. Whoever carries it: a receiver finds the origin by `seal_read`, the
signature by `signed_by`, the events by `run_verified` and the place in the chain by `chained`. So nobody but the origin
can alter, drop from the middle of, reorder or invent a feed; and an origin that says two things about one place signs
the proof of it (`equivocate`).

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
RUN_EVENTS_MAX = 1000  # of one seal: what one exchange carries (peering/wire/messages.py)
RUN_BYTES_MAX = 1024 * 1024  # of one seal's events; one event that is larger is sealed alone
PAYLOAD_BYTES_MAX = 512  # a seal of the longest names has under 420
_MS = 1000

Name = Annotated[str, Meta(min_length=1, max_length=253)]
RpId = Annotated[str, Meta(pattern=r"^[a-z2-7]{26}\Z")]
Epoch = Annotated[str, Meta(pattern=r"^[a-z2-7]{1,26}\Z")]
Sequence53 = Annotated[int, Meta(ge=1, le=2**53 - 1)]
Millis = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class BadSeal(Exception):
    """A statement that is no seal (or floor); the text is one sentence."""


class Seal(msgspec.Struct, array_like=True, frozen=True):
    """What an origin says about a run of its feed.

    Attributes:
        version: VERSION.
        rp, origin, epoch: whose feed.
        first, last: the run's sequences, at most RUN_EVENTS_MAX of them.
        root: of the Merkle tree over the run's events.
        previous: SHA-256 of the payload of the feed's seal before this one; empty for the feed's first.
        sealed_at_ms: by the origin's clock, Unix milliseconds.
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
        """Whose run it is."""
        return Feed(self.origin, self.epoch)

    @property
    def count(self) -> int:
        """How many events it covers."""
        return self.last - self.first + 1


class Floor(msgspec.Struct, array_like=True, frozen=True):
    """What an origin says about the beginning of its feed: all before `first` is out of its history, for everybody."""

    version: int
    rp: RpId
    origin: Name
    epoch: Epoch
    first: Sequence53
    stated_at_ms: Millis

    @property
    def feed(self) -> Feed:
        """Whose feed it is about."""
        return Feed(self.origin, self.epoch)


Statement = TypeVar("Statement", Seal, Floor)
_encode = msgspec.msgpack.Encoder().encode
_seal = msgpack_reader(Seal)
_floor = msgpack_reader(Floor)


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
    """Seal a run: see `payload_make`; `private_jwk` is the origin's signing key, with its `kid`."""
    payload = payload_make(rp=rp, feed=feed, first=first, leaves=leaves, previous=previous, sealed_at_ms=sealed_at_ms)
    return signing.sign(signing.SEAL, payload, private_jwk)


def payload_make(*, rp: str, feed: Feed, first: int, leaves: bytes, previous: bytes, sealed_at_ms: int) -> bytes:
    """What a seal says, to be signed as signing.SEAL.

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
    """What a statement says, form and bounds checked; the signature is not (see `signed_by`). Raises BadSeal."""
    seal = _read(statement, _seal)
    if seal.last < seal.first or seal.count > RUN_EVENTS_MAX:
        raise BadSeal(f"A seal covers 1 to {RUN_EVENTS_MAX} events, not {seal.first} to {seal.last}.")
    if len(seal.previous) not in (0, merkle.HASH_BYTES):
        raise BadSeal("A seal names the one before it by a SHA-256 digest, or none.")
    return seal


def floor_make(*, rp: str, feed: Feed, first: int, stated_at_ms: int, private_jwk: Mapping[str, Any]) -> Signed:
    """State that all before `first` (at least 1) is out of the origin's history."""
    floor = Floor(VERSION, rp, feed.origin, feed.epoch, first, stated_at_ms)
    return signing.sign(signing.FLOOR, _encode(floor), private_jwk)


def floor_read(statement: Signed) -> Floor:
    """What a floor says, form and bounds checked; the signature is not. Raises BadSeal."""
    return _read(statement, _floor)


def signed_by(context: bytes, statement: Signed, at_ms: int, keys: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether one of the origin's keys made this statement, within the key's window.

    Args:
        context: signing.SEAL or signing.FLOOR.
        at_ms: when the statement says that it was made.
        keys: the origin's public JWKs by `kid`, with `nbf` and `exp` (Unix seconds) where the window has such ends.
    """
    jwk = keys.get(statement.kid)
    if jwk is None or at_ms < int(jwk.get("nbf", 0)) * _MS:
        return False
    end = jwk.get("exp")
    return (end is None or at_ms < (int(end) + 1) * _MS) and signing.verified(context, statement, jwk)


def run_verified(seal: Seal, events: Sequence[bytes], leaves: bytes = b"") -> bool:
    """Whether these are exactly the sealed events: `events` the run's last ones, `leaves` the hashes of those before."""
    if len(leaves) % merkle.HASH_BYTES or len(leaves) // merkle.HASH_BYTES + len(events) != seal.count:
        return False
    return merkle.root(leaves + merkle.leaves(events)) == seal.root


def digest(statement: Signed) -> bytes:
    """What the next seal of the feed names this one by."""
    return hashlib.sha256(statement.payload).digest()


def chained(seal: Seal, previous: Signed | None) -> bool:
    """Whether `seal` is the next of its feed after `previous` (None: whether it is the feed's first).

    Its first sequence is `previous.last + 1`, or a greater one when what lies between left the origin's history before it
    was sealed; that gap then needs the origin's Floor. Raises BadSeal if `previous` is none.
    """
    if previous is None:
        return seal.previous == b""
    before = seal_read(previous)
    same = (seal.rp, seal.origin, seal.epoch) == (before.rp, before.origin, before.epoch)
    return same and seal.first > before.last and seal.previous == digest(previous)


def equivocate(one: Signed, other: Signed) -> bool:
    """Whether two seals, signatures valid, prove that their origin told two stories: an honest one never signs both.

    Two stories are two different seals that cover one sequence, that both follow the same seal, or of which one begins
    where the other ends and names another one before it: between those two no seal has a place. Raises BadSeal.
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
    """The Merkle path that proves the event `sequence` of a sealed run with these leaf hashes. Raises ValueError."""
    if len(leaves) != seal.count * merkle.HASH_BYTES:
        raise ValueError("the leaf hashes are not those of the whole run")
    return merkle.path(leaves, sequence - seal.first)


def proof_verified(seal: Seal, sequence: int, event: bytes, path: Sequence[bytes]) -> bool:
    """Whether the seal vouches for exactly this event at this sequence."""
    found = merkle.root_by_path(merkle.leaf(event), sequence - seal.first, seal.count, path)
    return found is not None and found == seal.root


def _read(statement: Signed, decode: Reader[Statement]) -> Statement:
    if len(statement.payload) > PAYLOAD_BYTES_MAX:
        raise BadSeal(f"A statement about a feed has at most {PAYLOAD_BYTES_MAX} bytes.")
    try:
        read = decode(statement.payload)
    except Undecodable as error:
        raise BadSeal(f"The statement about a feed is not understood: {error}.") from None
    if read.version != VERSION:
        raise BadSeal(f"The statement about a feed has version {read.version}; {VERSION} is understood here.")
    if _encode(read) != statement.payload:  # one statement has one digest: no second spelling of the same content
        raise BadSeal("The statement about a feed is not in its one form.")
    return read
