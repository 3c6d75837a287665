"""Gossip objects: state that every domain holds a copy of and to which each domain contributes one signed row.

A gossip object is {name, digest, delta, merge, bound}. All objects have digest, delta and merge in common (`gossip_rows.RowSet`), because
their states are alike: per contributing domain the newest row that this domain has signed. A definition states the rest: name, bounds,
the domains that may contribute, the check of a payload, and optionally a shorter encoding of a change.

`merge_rows` is the merge of the rows of one contributor: the higher version prevails, and of contradictory rows of one version (evidence
of equivocation) the two least are kept. This is a join of a lattice: commutative, associative, idempotent, so rows may arrive in any
order, repeatedly and by any way. A test applies it to every object in `gossip_objects.ALL`.

docs/how-to/gossip-object.md has an example.
"""

from __future__ import annotations

from enum import IntEnum
from hashlib import blake2b
from typing import Annotated, Any

import msgspec

from eventing.overlay.machine import Id

NAME_CHARS_MAX = 32  # bound: characters of an object's name; a message with a longer one is refused
_DOMAIN_CHARS_MAX = 255
# bound: bytes of a row's payload; larger ones are refused, so that two rows fit into one message
PAYLOAD_BYTES_MAX = 6144
SIGNATURE_BYTES_MAX = 512  # bound: bytes of a row's signature, with its path in a batch; larger ones are refused
LEASE_REFRESHES = 3
"""A row's lease in refresh periods, as for records of the directory: two refreshes may be lost."""
# bound: seconds between two rows of a contributor; beyond it, bytes grow with the number of contributors
REFRESH_S_MAX = 7200.0
LEASE_S_MAX = int(LEASE_REFRESHES * REFRESH_S_MAX)  # bound: seconds from now to a row's expiry; the row is refused

Seconds = Annotated[int, msgspec.Meta(ge=0, lt=2**40)]
"""Seconds since 1970; also a row's version. An integer, so neither NaN nor infinite."""
ObjectName = Annotated[str, msgspec.Meta(max_length=NAME_CHARS_MAX)]
_Payload = Annotated[bytes, msgspec.Meta(max_length=PAYLOAD_BYTES_MAX)]
_Signature = Annotated[bytes, msgspec.Meta(max_length=SIGNATURE_BYTES_MAX)]


class GossipScope(IntEnum):
    """The domains that hold an object."""

    FEDERATION = 0
    ZONE = 1


class SignedRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The contribution of one domain to one object.

    Attributes:
        owner: the contributor, the only domain that can sign its row.
        version: greater than that of every earlier row: seconds of the owner's clock since 1970.
        expires_s: end of the row's lease, seconds since 1970.
        payload: the contribution, encoded as the object defines.
        signature: by the owner, over the object's name and all of the above.
    """

    owner: Id
    version: Seconds
    expires_s: Seconds
    payload: _Payload
    signature: _Signature = b""


class RowChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row as the change of an earlier one. The signature is that of the whole new row, so a change proves itself.

    Attributes:
        base: version of the row that the change applies to; to no other.
        change: as the object encodes it.
    """

    owner: Id
    base: Seconds
    version: Seconds
    expires_s: Seconds
    change: _Payload
    signature: _Signature = b""


Tag = Annotated[int, msgspec.Meta(ge=0)]
Offer = tuple[Id, Seconds, Tag]
"""(owner, version, tag): what a domain holds of a contributor."""


class GossipObject:
    """Definition of a gossip object. Subclasses override what differs.

    Attributes:
        name: of the object, the same at every domain; part of what is signed.
        scope: the domains that hold it.
        share: weight of the object in messages that are full.
        payload_bytes_max: bytes of a payload.
        rows_max: contributors; rows of further ones are refused.
        refresh_s: least time between two rows of a contributor that state the same, to renew the lease.
        change_s: least time between two rows of a contributor that state something else; None: as `refresh_s`.
        urgent: whether new rows are offered on all links at once, not at the next round.
        bytes_per_s: what the object may cost each domain, each way. Contributors wait longer between rows the more contributors
            there are, so that the cost does not grow with their number; REFRESH_S_MAX at most.
    """

    name: str
    scope: GossipScope = GossipScope.FEDERATION
    share: int = 1
    payload_bytes_max: int = 128
    rows_max: int = 16_384
    refresh_s: float = 60.0
    change_s: float | None = None
    urgent: bool = False
    bytes_per_s: float = 150.0

    def may_contribute(self, owner: Id, now: float) -> bool:
        """Return True if a domain of the directory may have a row in this object."""
        return True

    def valid(self, owner: Id, payload: bytes) -> bool:
        """Return True if a payload can be used. Called before the signature is checked; must be cheap and must not raise."""
        return True

    def change(self, before: bytes, after: bytes) -> bytes | None:
        """Encode a payload as a change of an earlier one; None if that is no shorter."""
        return None

    def apply(self, before: bytes, change: bytes) -> bytes | None:
        """Apply a change to the payload that it was made from; None if that is impossible."""
        return None

    @property
    def bytes_max(self) -> int:
        """The most that this object's rows take in memory and in storage."""
        return self.rows_max * (self.payload_bytes_max + SIGNATURE_BYTES_MAX + _DOMAIN_CHARS_MAX)

    @property
    def spacing_s(self) -> float:
        """The least time between any two rows of a contributor."""
        return self.refresh_s if self.change_s is None else min(self.change_s, self.refresh_s)

    def refresh_period_s(self, rows: int, row_bytes: int) -> float:
        """Compute the time between two rows of a contributor.

        Args:
            rows: contributors known.
            row_bytes: cost of one row to each domain that holds the object, each way.
        """
        return min(max(self.refresh_s, rows * row_bytes / self.bytes_per_s), REFRESH_S_MAX)


Rows = tuple[SignedRow, ...]
"""The rows held of one contributor: none, its newest row, or two contradictory rows of its newest version."""


def merge_rows(one: Rows, other: Rows) -> Rows:
    """Merge what two domains hold of one contributor."""
    newest = max((row.version for row in (*one, *other)), default=0)
    kept = {_encoded(row): row for row in (*one, *other) if row.version == newest}
    return tuple(kept[encoded] for encoded in sorted(kept)[:2])


def rows_tag(rows: Rows) -> int:
    """Hash of the rows of one contributor, 64 bits: two domains with different rows of one version find out by it."""
    return int.from_bytes(blake2b(b"".join(map(_encoded, rows)), digest_size=8).digest(), "big")


def row_bytes(row: SignedRow | RowChange) -> int:
    """Upper bound of a row's encoded bytes."""
    body = row.payload if isinstance(row, SignedRow) else row.change
    return id_bytes(row.owner) + len(body) + len(row.signature) + 34


def id_bytes(of: Any) -> int:
    """Upper bound of the encoded bytes of a domain's name."""
    return len(of.encode()) + 3 if isinstance(of, str) else 5


_encoded = msgspec.msgpack.Encoder().encode
