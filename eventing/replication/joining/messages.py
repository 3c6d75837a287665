"""Messages of domains about replicas, at /federation/v1/join, leave and invite: MessagePack, as
peering/wire/messages.py.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.signing import Signed
from eventing.peering.wire.messages import BODY_BYTES_MAX, VERSION, BadMessage, Homes, Name, RpId, Statements, T

RELAYS_MAX = 8  # domains that a join passes, the joining one first; a more distant domain must peer with a nearer one

Path = Annotated[list[Name], Meta(min_length=1, max_length=RELAYS_MAX)]


class JoinRequest(msgspec.Struct, array_like=True):
    """A signed join on its way to the home.

    Attributes:
        join: rps/rules/statements.py: Join.
        documents: the joining domain's document, in case the home does not know it.
        path: the domains that carried it, the joining one first, the sender last.
        terms: whether the sender knows of terms of the home; a home of a later term than the first refuses others.
    """

    version: int
    join: Signed
    documents: Statements
    path: Path
    terms: bool = False


class JoinAnswer(msgspec.Struct, array_like=True):
    """The home's statements about the RP, the joining domain's admission included, with the documents to verify them.

    `homes`: as in RpPart (peering/wire/messages.py).
    """

    version: int
    descriptor: Signed
    admissions: Statements
    documents: Statements
    homes: Homes = b""


class LeaveRequest(msgspec.Struct, array_like=True):
    """A leave (a join for 0 seconds) on its way to the home, or the home's last descriptor on its way to all replicas."""

    version: int
    statement: Signed
    documents: Statements
    path: Path


class InviteRequest(msgspec.Struct, array_like=True):
    """The home's invitation of the receiver to hold a replica.

    Attributes:
        events_per_s: events that the home expects there; 0: not stated, as by an older domain.
    """

    version: int
    descriptor: Signed
    documents: Statements
    events_per_s: Annotated[float, Meta(ge=0, le=1e9)] = 0.0


class ReleaseRequest(msgspec.Struct, array_like=True):
    """The home's request that the receiver ends a replica to which it was invited."""

    version: int
    rp: RpId


encode = msgspec.msgpack.Encoder().encode
DONE = encode([VERSION])
"""The answer that only states success."""


def decoded(data: bytes, kind: type[T]) -> T:
    """Decode a message. Raises BadMessage."""
    if len(data) > BODY_BYTES_MAX:
        raise BadMessage(f"A message has at most {BODY_BYTES_MAX} bytes.")
    try:
        return msgpack_reader(kind)(data)
    except Undecodable as error:
        raise BadMessage(f"The message is not understood: {error}") from None
