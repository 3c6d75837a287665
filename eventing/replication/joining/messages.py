"""Messages of domains about replicas, at /federation/v1/join, leave and invite: MessagePack, as
peering/wire/messages.py.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.signing import Signed
from eventing.peering.wire.messages import BODY_BYTES_MAX, VERSION, BadMessage, Name, Statements, T

RELAYS_MAX = 8  # domains that a join passes, the joining one first; a more distant domain must peer with a nearer one

Path = Annotated[list[Name], Meta(min_length=1, max_length=RELAYS_MAX)]


class JoinRequest(msgspec.Struct, array_like=True):
    """A signed join on its way to the home.

    Attributes:
        join: rps/rules/statements.py: Join.
        documents: the joining domain's document, in case the home does not know it.
        path: the domains that carried it, the joining one first, the sender last.
    """

    version: int
    join: Signed
    documents: Statements
    path: Path


class JoinAnswer(msgspec.Struct, array_like=True):
    """The home's statements about the RP, the joining domain's admission included, with the documents to verify them."""

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
    """The home's invitation of the receiver to hold a replica."""

    version: int
    descriptor: Signed
    documents: Statements


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
