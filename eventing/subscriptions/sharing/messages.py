"""Messages of holders of shared durable subscriptions at /federation/v1/subscriptions: MessagePack, as
peering/wire/messages.py.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.signing import Signed
from eventing.peering.wire.messages import BODY_BYTES_MAX, VERSION, BadMessage
from eventing.subscriptions.rules.shared_subscriptions import LEASE_MS_MAX

RECORDS_MAX = 64  # in one message; verifying them takes about as long as a run of events
LINES_MAX = 256
SENTENCE_CHARS_MAX = 300

_Id = Annotated[str, Meta(pattern="^sub_[a-z2-7]{26}$")]


class SentLine(msgspec.Struct, array_like=True):
    """A line (subscriptions/rules/shared_subscriptions.py), and the part of the lease that its sender sees left; the
    sender may be forwarding it.
    """

    statement: Signed
    left_ms: Annotated[int, Meta(ge=0, le=LEASE_MS_MAX)]


class RefusedRecord(msgspec.Struct, array_like=True):
    """A refused record: its position in the message, and the reason."""

    position: Annotated[int, Meta(ge=0, lt=RECORDS_MAX)]
    why: Annotated[str, Meta(max_length=SENTENCE_CHARS_MAX)]


class SharingMessage(msgspec.Struct, array_like=True):
    """A message of a holder to another."""

    version: int
    records: Annotated[list[Signed], Meta(max_length=RECORDS_MAX)] = []
    lines: Annotated[list[SentLine], Meta(max_length=LINES_MAX)] = []


class SharingAnswer(msgspec.Struct, array_like=True):
    """The answer: refused records, subscriptions whose record is lacking, and lines newer than those sent."""

    version: int
    refused: Annotated[list[RefusedRecord], Meta(max_length=RECORDS_MAX)] = []
    unknown: Annotated[list[_Id], Meta(max_length=LINES_MAX)] = []
    lines: Annotated[list[SentLine], Meta(max_length=LINES_MAX)] = []


encode = msgspec.msgpack.Encoder().encode
T = TypeVar("T", SharingMessage, SharingAnswer)


def decoded(data: bytes, kind: type[T]) -> T:
    """Decode a message or an answer. Raises BadMessage."""
    if len(data) > BODY_BYTES_MAX:
        raise BadMessage(f"A message has at most {BODY_BYTES_MAX} bytes.")
    try:
        read = msgpack_reader(kind)(data)
    except Undecodable as error:
        raise BadMessage(f"The message is not understood: {error}") from None
    if read.version < VERSION:
        raise BadMessage(f"Versions below {VERSION} are not understood.")
    return read
