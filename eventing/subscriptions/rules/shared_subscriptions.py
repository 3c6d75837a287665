"""Signed statements about shared durable subscriptions, which are recorded at several replicas of an RP. Pure.

| statement | signed by | content |
|---|---|---|
| record | the keeper, where it was created | owner, start, holders in order of succession; or the end |
| line | the holder that delivers now | term and beat (overlay/takeover.py), and the owner's acknowledgements |

Each is the canonical JSON of exactly its members, so there is one form of each and no member is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from eventing.core import signing
from eventing.core.decoding import json_reader
from eventing.core.events.cursors import VECTOR_FEEDS_MAX
from eventing.core.events.vectors import SEQUENCE_MAX
from eventing.core.ids import canonical_json
from eventing.core.names import DOMAIN_PATTERN
from eventing.core.seals.seals import signed_by
from eventing.core.signing import Signed
from eventing.overlay.takeover import TERM_MAX, TakeoverRules
from eventing.rps.rules.statements import BadStatement, Keys

VERSION = 1
SHARED_MODES = ("pull", "webhook")  # modes of delivery of subscriptions that several domains hold
REPLICAS_MAX = 5  # holders of one subscription: more make its lines cost more than they make it safer
RECORD_BYTES_MAX = 8 * 1024  # identity, five names and a vector of 65 feeds take less than 6 KiB
LINE_BYTES_MAX = 4 * 1024  # a vector of 65 feeds takes 2.5 KiB
OWNER_CHARS_MAX = 767 + 1 + 253  # an identity, and the domain put before it
LEASE_MS_MIN, LEASE_MS_MAX = 1000, 300_000
FUTURE_MS = 60_000  # how far another domain's clock may be ahead

_Number = Annotated[int, Meta(ge=0, le=SEQUENCE_MAX)]
_Positive = Annotated[int, Meta(ge=1, le=SEQUENCE_MAX)]
_Domain = Annotated[str, Meta(max_length=253, pattern=f"^{DOMAIN_PATTERN.pattern}$")]
_Id = Annotated[str, Meta(pattern="^sub_[a-z2-7]{26}$")]
_Rp = Annotated[str, Meta(pattern="^[a-z2-7]{26}$")]
_Feed = Annotated[str, Meta(pattern="^[a-z2-7]{16}$")]
_Vector = Annotated[dict[_Feed, _Number], Meta(max_length=VECTOR_FEEDS_MAX)]
_Holders = Annotated[list[_Domain], Meta(min_length=1, max_length=REPLICAS_MAX)]


class History(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of a subscription's lag; a holder grants at most its replica's own bounds."""

    max_events: _Positive
    max_bytes: _Positive
    max_age_s: _Positive | None


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keeper's statement about a subscription.

    Attributes:
        version: from 1; the higher of two records prevails.
        owner: identity of the owner as `abroad` writes it.
        holders: domains that record it, in the order of succession, the keeper first.
        lease_ms: length of the lease to deliver.
        start: the vector at which it begins.
        mode: of delivery, one of SHARED_MODES. An endpoint is not in the record: its owner states it at each holder.
        expires_at_ms: end of the subscription's lease, Unix milliseconds; a line may state a later one.
        ended: whether it was deleted, or is no longer kept.
    """

    v: int
    kind: str
    id: _Id
    rp: _Rp
    keeper: _Domain
    version: _Positive
    owner: Annotated[str, Meta(min_length=1, max_length=OWNER_CHARS_MAX)]
    holders: _Holders
    lease_ms: Annotated[int, Meta(ge=LEASE_MS_MIN, le=LEASE_MS_MAX)]
    start: _Vector
    history: History
    mode: Annotated[str, Meta(max_length=16)]
    expires_at_ms: _Positive
    at_ms: _Positive
    ended: bool

    @property
    def rules(self) -> TakeoverRules:
        """Return the rules for takeover."""
        return TakeoverRules(tuple(self.holders), self.lease_ms)


class LineStatement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The statement of the holder that delivers.

    Attributes:
        by: the holder.
        term: the term in which it delivers; 0 of a holder that does not deliver and only states acknowledgements that
            the received line lacks, taken while it could not reach the others.
        acked: the acknowledged sequence of each feed.
        expires_at_ms: end of the subscription's lease, as the owner renewed it.
        told: holders to which the deliverer sends its lines itself; a recipient forwards them to others that it
            reaches.
    """

    v: int
    kind: str
    id: _Id
    by: _Domain
    term: Annotated[int, Meta(ge=0, le=TERM_MAX)]
    beat: _Positive
    acked: _Vector
    expires_at_ms: _Positive
    told: Annotated[list[_Domain], Meta(max_length=REPLICAS_MAX)]
    at_ms: _Positive


S = TypeVar("S", Record, LineStatement)


def sign(statement: Record | LineStatement, private_jwk: Mapping[str, Any]) -> Signed:
    """Sign a statement with its domain's key."""
    return signing.sign(signing.SUBSCRIPTION, canonical_json(msgspec.to_builtins(statement)), private_jwk)


def record_read(statement: Signed) -> Record:
    """Decode a record and check everything that needs no key. Raises BadStatement."""
    read = _read(statement, Record, RECORD_BYTES_MAX, "record")
    if read.holders[0] != read.keeper or len(set(read.holders)) != len(read.holders):
        raise BadStatement("The holders of a subscription are different domains, its keeper first.")
    if read.mode not in SHARED_MODES:
        raise BadStatement(f"Subscriptions of the mode {read.mode} are not shared.")
    return read


def line_read(statement: Signed) -> LineStatement:
    """Decode a line and check everything that needs no key. Raises BadStatement."""
    return _read(statement, LineStatement, LINE_BYTES_MAX, "line")


def verified(statement: Signed, at_ms: int, keys: Keys, now_ms: int) -> None:
    """Verify the signer of a statement. Raises BadStatement.

    Args:
        at_ms: the time of the statement, as it states.
        keys: of the domain that must have signed it.
    """
    if at_ms > now_ms + FUTURE_MS:
        raise BadStatement("The statement is from the future. Compare the clocks of the two domains.")
    if not signed_by(signing.SUBSCRIPTION, statement, at_ms, keys):
        raise BadStatement("The statement is not signed by a key that its domain had at that time.")


def abroad(owner: str, keeper: str) -> str:
    """Return the owner's identity as every domain understands it; `owner` is as the keeper knows it
    (Principal.identity).
    """
    return owner if "#" in owner else f"{keeper}#{owner}"


def here(owner: str, domain: str) -> str:
    """Return the identity by which a domain knows the same owner: its own people by their subject alone."""
    prefix = f"{domain}#"
    return owner[len(prefix) :] if owner.startswith(prefix) else owner


def _read(statement: Signed, kind: type[S], bytes_max: int, name: str) -> S:
    if len(statement.payload) > bytes_max:
        raise BadStatement(f"A subscription's {name} has at most {bytes_max} bytes.")
    try:
        read = json_reader(kind)(statement.payload)
        canonical = canonical_json(msgspec.to_builtins(read)) == statement.payload
    except (ValueError, RecursionError) as error:
        raise BadStatement(f"A subscription's {name} cannot be read: {str(error)[:200]}") from None
    if not canonical or (read.v, read.kind) != (VERSION, name):
        raise BadStatement(f"A subscription's {name} must be canonical JSON of version {VERSION}.")
    return read
