"""Encoding of the overlay's messages: MessagePack of the tagged structs that the machines declare (`overlay/member.py: MESSAGES`).

Nothing here names a message: its form and its bounds follow from the types of its fields. A field of the type `Id` is a domain's
name; texts, bytes, sequences and numbers have the bounds below. A field of another type fails at the first use of the codec, so a
new message cannot pass unchecked. Payloads that a machine interprets itself are `bytes`.

Messages of a type that this software does not have are skipped: a newer domain may send them.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from eventing.core.container import memoized, per_process
from eventing.core.decoding import Reader, Undecodable, msgpack_reader
from eventing.core.names import DOMAIN_PATTERN
from eventing.membership.rules.records import RECORD_BYTES_MAX, record_bytes
from eventing.overlay.directory_records import DomainRecord
from eventing.overlay.gossip_messages import MESSAGE_BYTES_MAX, GossipMessage
from eventing.overlay.member import MESSAGES

MESSAGES_MAX = 256  # bound: overlay messages of one request or answer; the others are in the next one
ITEMS_MAX = 1024  # bound: items of a sequence in an overlay message; the request is refused: 400
TEXT_CHARS_MAX = 255  # bound: characters of a text in an overlay message; 400
PAYLOAD_BYTES_MAX = 16 * 1024  # bound: bytes of a binary field in an overlay message; 400
GOSSIP_BYTES_MAX = MESSAGE_BYTES_MAX  # bound: bytes of a gossip message; 400
_ARRAY_OF_ONE = b"\x91"
_encode = msgspec.msgpack.Encoder().encode
Check = Callable[[Any], None]


class BadOverlayMessage(ValueError):
    """A message outside the bounds of its type. The text is a phrase without a full stop."""


def encode(messages: Sequence[Any]) -> bytes:
    """Encode messages."""
    return _encode(messages)


def message_bytes(message: Any) -> bytes:
    """Encode one message."""
    return _encode(message)


def decode(data: bytes | msgspec.Raw) -> list[Any]:
    """Decode messages of another domain; those of unknown types are skipped. Raises BadOverlayMessage."""
    try:
        messages = _reader()(data) if len(bytes(data)) <= GOSSIP_BYTES_MAX else _one_by_one(data)
    except Undecodable:
        messages = _one_by_one(data)
    if len(messages) > MESSAGES_MAX:
        raise BadOverlayMessage(f"more than {MESSAGES_MAX} messages")
    for message in messages:
        check_of(type(message))(message)
    return messages


def _one_by_one(data: bytes | msgspec.Raw) -> list[Any]:
    """Decode messages of which some may be of an unknown type, or too large."""
    try:
        parts = _read_parts(data)
        if len(parts) > MESSAGES_MAX:
            raise BadOverlayMessage(f"more than {MESSAGES_MAX} messages")
        known = [(tag, part) for part in parts if (tag := tag_at(part)) in _tags()]
        for tag, part in known:
            if tag == GOSSIP_TAG and len(bytes(part)) > GOSSIP_BYTES_MAX:
                raise BadOverlayMessage(f"a gossip message of more than {GOSSIP_BYTES_MAX} bytes")
        return [message for _, part in known for message in _reader()(_ARRAY_OF_ONE + bytes(part))]
    except Undecodable as error:
        raise BadOverlayMessage(str(error)) from None


def tag_at(message: bytes | msgspec.Raw) -> str:
    """Return the text by which an encoded message begins. Raises Undecodable."""
    return _read_tag(message).tag


def decode_own(data: bytes) -> list[Any]:
    """Decode messages that a process of this domain has checked already. Raises Undecodable."""
    try:
        return _reader()(data)
    except Undecodable:
        known = [bytes(part) for part in _read_parts(data) if tag_at(part) in _tags()]
        return [message for part in known for message in _reader()(_ARRAY_OF_ONE + part)]


def tag_of(kind: Any) -> str:
    """Return the text by which a type of message begins on the wire."""
    return str(kind.__struct_config__.tag)


class MessageHead(msgspec.Struct, array_like=True):
    """The first element of any message; the others are skipped."""

    tag: str


_read_parts: Reader[list[msgspec.Raw]] = msgpack_reader(list[msgspec.Raw])
_read_tag = msgpack_reader(MessageHead)
GOSSIP_TAG = tag_of(GossipMessage)


@per_process
def _tags() -> frozenset[str]:
    return frozenset(map(tag_of, MESSAGES))


def check_record(record: DomainRecord) -> None:
    """Check a record from outside. Raises BadOverlayMessage."""
    check_of(DomainRecord)(record)


@per_process
def _reader() -> Reader[list[Any]]:
    message: Any = Union[tuple(sorted(MESSAGES, key=tag_of))]  # noqa: UP007 - of a runtime tuple
    return msgpack_reader(list[message])


@memoized(maxsize=256)
def check_of(hint: Any) -> Check:
    """Return the check of values of a type, which raises BadOverlayMessage. Raises TypeError for a type without bounds."""
    if hint is Any:
        return _domain
    if hint is type(None) or hint is bool:
        return _anything
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _anything
    simple = _SIMPLE.get(hint)
    if simple is not None:
        return simple
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct(hint)
    origin = get_origin(hint)
    if origin is tuple:
        return _tuple(get_args(hint))
    if origin in (list, set, frozenset, Sequence):
        return _sequence(check_of(get_args(hint)[0]))
    if origin in (dict, Mapping):
        key, value = map(check_of, get_args(hint))
        return _mapping(key, value)
    if origin in (Union, types.UnionType):
        return _union(get_args(hint))
    raise TypeError(f"An overlay message has a field of the type {hint}, for which the codec has no bounds.")


def _anything(value: Any) -> None:
    return


def _domain(value: Any) -> None:
    if type(value) is not str or not DOMAIN_PATTERN.fullmatch(value):
        raise BadOverlayMessage("a domain that is no domain's name")


def _domain_or_none(value: Any) -> None:
    if value is not None:
        _domain(value)


def _integer(value: Any) -> None:
    if not -(2**63) <= value < 2**64:
        raise BadOverlayMessage("a number that is too large")


def _number(value: Any) -> None:
    if not math.isfinite(value):
        raise BadOverlayMessage("a number that is not finite")


def _text(value: Any) -> None:
    if len(value) > TEXT_CHARS_MAX or not (value.isascii() and (value.isprintable() or not value)):
        raise BadOverlayMessage("a text that is too long, or not of printable ASCII characters")


def _bytes(value: Any) -> None:
    if len(value) > PAYLOAD_BYTES_MAX:
        raise BadOverlayMessage("a binary field that is too long")


_SIMPLE: dict[Any, Check] = {int: _integer, float: _number, str: _text, bytes: _bytes}


def _struct(kind: type[msgspec.Struct]) -> Check:
    hints = get_type_hints(kind)
    checks = []
    for field in msgspec.structs.fields(kind):
        hint = hints[field.name]
        optional = hint is Any and field.default is None
        check = _domain_or_none if optional else check_of(hint)
        if check is not _anything:
            checks.append((field.name, check))

    def checked(value: Any) -> None:
        for name, check in checks:
            check(getattr(value, name))
        if kind is DomainRecord and len(record_bytes(value)) > RECORD_BYTES_MAX:
            raise BadOverlayMessage(f"a record of more than {RECORD_BYTES_MAX} bytes")

    return checked


def _tuple(items: tuple[Any, ...]) -> Check:
    if len(items) == 2 and items[1] is Ellipsis:
        return _sequence(check_of(items[0]))
    checks = tuple(check_of(item) for item in items)

    def checked(value: Any) -> None:
        for check, one in zip(checks, value, strict=True):
            check(one)

    return checked


def _sequence(check: Check) -> Check:
    def checked(value: Any) -> None:
        if len(value) > ITEMS_MAX:
            raise BadOverlayMessage(f"a sequence of more than {ITEMS_MAX} items")
        for one in value:
            check(one)

    return checked


def _mapping(key: Check, of: Check) -> Check:
    def checked(value: Any) -> None:
        if len(value) > ITEMS_MAX:
            raise BadOverlayMessage(f"a map of more than {ITEMS_MAX} entries")
        for name, one in value.items():
            key(name)
            of(one)

    return checked


def _union(options: tuple[Any, ...]) -> Check:
    checks = [(option, check_of(option)) for option in options if option is not type(None)]
    if len(checks) == 1:
        (only,) = checks
        return lambda value: None if value is None else only[1](value)

    def checked(value: Any) -> None:
        if value is None:
            return None
        for option, check in checks:
            if isinstance(value, get_origin(option) or option):
                return check(value)
        raise BadOverlayMessage("a value of no known type")

    return checked
