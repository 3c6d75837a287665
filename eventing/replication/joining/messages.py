"""What domains send each other about replicas, at /federation/v1/join, leave and invite: MessagePack, as wire.py."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.signing import Signed
from eventing.peering.wire.messages import BODY_BYTES_MAX, VERSION, BadMessage, Name, Statements, T

RELAYS_MAX = (
    8  # domains that a join goes through, the joining one first; who is farther away peers with somebody nearer
)

Path = Annotated[list[Name], Meta(min_length=1, max_length=RELAYS_MAX)]


class JoinRequest(msgspec.Struct, array_like=True):
    """A signed join on its way to the home.

    Attributes:
        join: rps/rules/statements.py: Join.
        documents: the joining domain's document, in case the home does not know it.
        path: the domains it went through, the joining one first, the sender last.
    """

    version: int
    join: Signed
    documents: Statements
    path: Path


class JoinAnswer(msgspec.Struct, array_like=True):
    """What the home says of the RP, the joining domain's admission included, with the documents to check it by."""

    version: int
    descriptor: Signed
    admissions: Statements
    documents: Statements


class LeaveRequest(msgspec.Struct, array_like=True):
    """A leave (a join for 0 seconds) on its way to the home, or the home's last descriptor on its way to all replicas."""

    version: int
    statement: Signed
    documents: Statements
    path: Path


class InviteRequest(msgspec.Struct, array_like=True):
    """The home asks the receiver to hold a replica."""

    version: int
    descriptor: Signed
    documents: Statements


encode = msgspec.msgpack.Encoder().encode
DONE = encode([VERSION])
"""The answer that says nothing but that it was done."""


def decoded(data: bytes, kind: type[T]) -> T:
    """Read a message. Raises BadMessage."""
    if len(data) > BODY_BYTES_MAX:
        raise BadMessage(f"A message has at most {BODY_BYTES_MAX} bytes.")
    try:
        return msgpack_reader(kind)(data)
    except Undecodable as error:
        raise BadMessage(f"The message is not understood: {error}") from None
