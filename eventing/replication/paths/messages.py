"""Messages of domains about the path of one event, at /federation/v1/path: MessagePack, as peering/wire/messages.py."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.peering.wire.messages import PATH_MAX, VERSION, BadMessage, FeedKey, Name, RpId, Sequence

PATH_BYTES_MAX = 32 * 1024  # bound: bytes of a question about a path, or of its answer; 400, the answer does not count
HOLDERS_MAX = 64  # bound: domains of which an answer states what they hold; the others are left out


class PathQuestion(msgspec.Struct, array_like=True):
    """A question for the path of the event `sequence` of a feed."""

    version: int
    rp: RpId
    feed: FeedKey
    sequence: Annotated[int, Meta(ge=1, le=2**53 - 1)]


class PathReply(msgspec.Struct, array_like=True):
    """The answer: one domain's part of an event's path.

    Attributes:
        held: the sequence is within its vector: the event arrived there, also if it has left the history since.
        path: the domains that carried the event to it, the origin first; empty for its own, and where it is unknown.
        stored_ms: when it was stored there, Unix milliseconds by its clock; 0 if unknown.
        holders: for each domain that it exchanges these events with, whether that one holds the event, by its last vector.
    """

    version: int
    held: bool
    path: Annotated[list[Name], Meta(max_length=PATH_MAX)] = []
    stored_ms: Sequence = 0
    holders: Annotated[dict[Name, bool], Meta(max_length=HOLDERS_MAX)] = {}


encode = msgspec.msgpack.Encoder().encode
_question = msgpack_reader(PathQuestion)
_reply = msgpack_reader(PathReply)


def question(rp: str, feed: str, sequence: int) -> bytes:
    """Encode a question."""
    return encode(PathQuestion(VERSION, rp, feed, sequence))


def question_read(data: bytes) -> PathQuestion:
    """Decode a question. Raises BadMessage."""
    _require_size(data)
    try:
        return _question(data)
    except Undecodable as error:
        raise BadMessage(f"The message is not understood: {error}") from None


def reply_read(data: bytes) -> PathReply:
    """Decode an answer. Raises BadMessage."""
    _require_size(data)
    try:
        return _reply(data)
    except Undecodable as error:
        raise BadMessage(f"The answer is not understood: {error}") from None


def _require_size(data: bytes) -> None:
    if len(data) > PATH_BYTES_MAX:
        raise BadMessage(f"A message about a path has at most {PATH_BYTES_MAX} bytes.")
