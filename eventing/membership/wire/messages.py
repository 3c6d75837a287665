"""Requests and answers at /federation/v1/overlay and /federation/v1/sponsor: MessagePack of these structs, arrays in the order of the
fields. A newer version may append fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.core.ed25519 import public_key_text
from eventing.membership.rules.records import CHAIN_MAX, SponsorshipGrant
from eventing.membership.wire.codec import BadOverlayMessage, check_record
from eventing.overlay.directory_records import DomainRecord

VERSION = 1
KEY_CHARS = len(public_key_text(bytes(32)))
_encode = msgspec.msgpack.Encoder().encode
_NONE = msgspec.Raw(b"\x90")

Chain = Annotated[list[DomainRecord], Meta(max_length=CHAIN_MAX)]


class OverlayRequest(msgspec.Struct, array_like=True):
    """Messages of a domain's overlay.

    Attributes:
        messages: an array of messages (codec.py), each for the process that runs the overlay.
        chain: the sender's record, its sponsor's, and so on: where the receiver may not have it yet.
    """

    version: int
    messages: msgspec.Raw = _NONE
    chain: Chain = []


class OverlayResponse(msgspec.Struct, array_like=True):
    """The messages that waited for the sender of the request."""

    version: int
    messages: msgspec.Raw = _NONE


class SponsorRequest(msgspec.Struct, array_like=True):
    """A peer's request for sponsorship; `key` is the member `x` of its identity key."""

    version: int
    key: Annotated[str, Meta(min_length=KEY_CHARS, max_length=KEY_CHARS)]


class SponsorAnswer(msgspec.Struct, array_like=True):
    """A sponsorship, with the records of the sponsor, of its sponsor, and so on up to a founder."""

    version: int
    grant: SponsorshipGrant
    chain: Chain


_request = msgpack_reader(OverlayRequest)
_answer = msgpack_reader(OverlayResponse)
_sponsor_request = msgpack_reader(SponsorRequest)
_sponsor_answer = msgpack_reader(SponsorAnswer)


def request_encode(messages: Sequence[bytes], chain: Sequence[DomainRecord] = ()) -> bytes:
    """Encode a request of encoded messages."""
    return _encode(OverlayRequest(VERSION, joined(messages), list(chain)))


def request_read(body: bytes) -> OverlayRequest:
    """Decode a request but for its messages. Raises BadOverlayMessage."""
    found: OverlayRequest = _checked(_read(_request, body))
    return found


def answer_encode(messages: Sequence[bytes]) -> bytes:
    """Encode an answer of encoded messages."""
    return _encode(OverlayResponse(VERSION, joined(messages)))


def answer_read(body: bytes) -> OverlayResponse:
    """Decode an answer but for its messages. Raises BadOverlayMessage."""
    found: OverlayResponse = _read(_answer, body)
    return found


def sponsor_request_read(body: bytes) -> SponsorRequest:
    """Decode a request for sponsorship. Raises BadOverlayMessage."""
    found: SponsorRequest = _read(_sponsor_request, body)
    return found


def sponsor_answer_read(body: bytes) -> SponsorAnswer:
    """Decode the answer to a request for sponsorship. Raises BadOverlayMessage."""
    found: SponsorAnswer = _checked(_read(_sponsor_answer, body))
    return found


def encode(message: SponsorRequest | SponsorAnswer) -> bytes:
    """Encode a request for sponsorship or its answer."""
    return _encode(message)


def joined(messages: Sequence[bytes]) -> msgspec.Raw:
    """Make the array of encoded messages."""
    return msgspec.Raw(_encode([msgspec.Raw(one) for one in messages]))


def _read(reader: Any, body: bytes) -> Any:
    try:
        return reader(body)
    except Undecodable as error:
        raise BadOverlayMessage(str(error)) from None


def _checked(found: Any) -> Any:
    for record in found.chain:
        check_record(record)
    return found
