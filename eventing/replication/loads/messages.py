"""Messages of domains about their readers, at /federation/v1/load: MessagePack, as peering/wire/messages.py."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.overlay.load_rows import AMOUNT_MAX
from eventing.peering.wire.messages import VERSION, BadMessage, RpId

LOAD_BYTES_MAX = 256  # bound: bytes of a question for a load, or of its answer; 400, the answer does not count


class LoadInquiry(msgspec.Struct, array_like=True):
    """A question for the present readers of a domain that serves the RP."""

    version: int
    rp: RpId


class LoadStatement(msgspec.Struct, array_like=True):
    """The answer: all connected readers of the domain."""

    version: int
    sessions: Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]


_encode = msgspec.msgpack.Encoder().encode
_inquiry = msgpack_reader(LoadInquiry)
_statement = msgpack_reader(LoadStatement)


def inquiry(rp: str) -> bytes:
    """Encode a question."""
    return _encode(LoadInquiry(VERSION, rp))


def inquiry_read(data: bytes) -> str:
    """Decode a question; return the RP. Raises BadMessage."""
    try:
        return _inquiry(_bounded(data)).rp
    except Undecodable as error:
        raise BadMessage(f"The message is not understood: {error}") from None


def statement(sessions: int) -> bytes:
    """Encode an answer."""
    return _encode(LoadStatement(VERSION, sessions))


def statement_read(data: bytes) -> int:
    """Decode an answer; return the readers. Raises BadMessage."""
    try:
        return _statement(_bounded(data)).sessions
    except Undecodable as error:
        raise BadMessage(f"The answer is not understood: {error}") from None


def _bounded(data: bytes) -> bytes:
    if len(data) > LOAD_BYTES_MAX:
        raise BadMessage(f"A message about a load has at most {LOAD_BYTES_MAX} bytes.")
    return data
