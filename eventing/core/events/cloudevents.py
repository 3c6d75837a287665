"""Strict validation of CloudEvents 1.0.2 in the JSON form, in which Herald stores and sends them. HTTP binding:
cloudevents_http.py.

An event is validated once, on receipt, and its bytes are never changed: `Event.body` is the event's JSON object exactly
as sent (without the whitespace around the object). Event data is not interpreted, only verified to be valid JSON of
bounded depth. Nothing is repaired or ignored: an event that breaks a rule is refused with one sentence.

There are two validators. The fast one accepts the usual event by one typed decode and a few checks. Events that the
fast validator cannot prove valid (escapes and nulls in attributes, and every invalid event) are validated member by
member.
"""

from __future__ import annotations

import binascii
import json
import re
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, Literal

import msgspec

from eventing.core.decoding import NestedTooDeeply, Undecodable, json_position, json_reader, placed
from eventing.core.errors import InvalidEvent, TooLarge
from eventing.core.events.cloudevents_attributes import (
    INTEGER_MAX,
    INTEGER_MIN,
    OPTIONAL,
    REQUIRED,
    check_attributes,
    check_names,
    is_absolute_uri,
    is_media_type,
    is_name,
    is_string,
    is_timestamp,
    is_uri_reference,
    show,
)
from eventing.core.events.declared_json import check_declared

# bound: nesting levels of an event's data; the event is refused: `invalid-event`; binary data is stored as base64 instead
# The event object itself included; some JSON readers give up beyond this.
DEPTH_MAX = 64
# bound: bytes of a batch; a larger batch is checked to contain only objects before it is parsed
# Otherwise `[0,0,0,…` would cost memory.
PROBE_BYTES = 256 * 1024
REPEATED_NAMED_BYTES = 16 * 1024  # in larger events a repeated member is refused unnamed: to name it is a slow parse
WHITESPACE = b" \t\n\r"

_NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]
_ABSENT = msgspec.Raw()
_DATA = ("data", "data_base64")
_KNOWN = frozenset((*REQUIRED, *OPTIONAL, *_DATA))
_CONSTANTS = (b"true", b"false", b"null")


class Event(msgspec.Struct, frozen=True, gc=False):
    """A valid event.

    Attributes:
        source: with `id`, what makes the event unique.
        id: the producer's identifier.
        type: the kind of event.
        body: the whole event, structured JSON in UTF-8.
    """

    source: str
    id: str
    type: str
    body: bytes


class _Envelope(msgspec.Struct, gc=False):
    """Members known to the fast validator. A null or a wrong type fails the decode; the exact validator then decides."""

    specversion: Literal["1.0"]
    id: _NonEmpty
    source: _NonEmpty
    type: _NonEmpty
    time: str | None = None
    datacontenttype: str | None = None
    subject: str | None = None
    dataschema: str | None = None
    data: msgspec.Raw = _ABSENT
    data_base64: str | None = None


class _Probe(msgspec.Struct, gc=False):
    """Minimal shape of an element of a batch."""

    specversion: str


_decode_envelope = json_reader(_Envelope)
_decode_members = json_reader(dict[str, msgspec.Raw])
_decode_batch = json_reader(list[msgspec.Raw])
_decode_probes = json_reader(list[_Probe])
_decode_string = json_reader(str)

_STRING = re.compile(rb'"[^"]*+"')
_TO_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NOT_STRUCTURE = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_INTEGER = re.compile(rb"-?(?:0|[1-9][0-9]{0,9})")


def parse_structured(raw: bytes | msgspec.Raw, *, bytes_max: int, checked: bool = False, sealed: bool = False) -> Event:
    """Validate one event in the JSON format.

    Args:
        raw: the event's JSON text.
        bytes_max: largest event taken, in bytes.
        checked: whether `raw` is already known to be valid UTF-8 (msgspec.Raw does not guarantee it).
        sealed: whether another domain has accepted and signed the event: then base64 that is declared to be JSON is not
            examined.

    Raises:
        InvalidEvent: the event breaks a rule; the detail names the attribute and the rule.
        TooLarge: the event has more than `bytes_max` bytes.
    """
    whole = bytes(raw)
    body = whole.strip(WHITESPACE)
    if len(body) > bytes_max:
        raise TooLarge(f"An event has at most {bytes_max} bytes; this one has {len(body)}.")
    if not checked:
        check_utf8(whole)
    try:
        envelope = _decode_envelope(body)
    except Undecodable:
        return _parse_exactly(body, sealed, whole)
    surplus = _surplus_marks(envelope, body)
    if surplus == 0 or (surplus > 0 and _are_extensions(body, surplus)):
        return Event(envelope.source, envelope.id, envelope.type, body)
    return _parse_exactly(body, sealed, whole)


def parse_many(
    raws: Sequence[bytes | msgspec.Raw], *, bytes_max: int, events_max: int, checked: bool = False
) -> list[Event]:
    """Validate many events, all or none.

    Args:
        raws: the events' JSON texts, in order; may be empty.
        bytes_max: largest event taken, in bytes.
        events_max: most events taken.
        checked: as for `parse_structured`.

    Raises InvalidEvent or TooLarge as `parse_structured`; the detail and the member `index` (from 0) identify the
    event.
    """
    if len(raws) > events_max:
        raise TooLarge(f"A request holds at most {events_max} events; this one has {len(raws)}.")
    events: list[Event] = []
    try:
        for raw in raws:
            events.append(parse_structured(raw, bytes_max=bytes_max, checked=checked))
    except (InvalidEvent, TooLarge) as error:
        index = len(events)
        raise type(error)(f"event {index}: {error.detail}", index=index, **error.extra) from None
    return events


def parse_batch(body: bytes, *, bytes_max: int, events_max: int) -> list[Event]:
    """Validate a batch in the JSON batch format: an array of events, which may be empty. All or none.

    The caller has bounded the length of the whole body. Raises as `parse_many`.
    """
    check_utf8(body)
    try:
        if len(body) > PROBE_BYTES:
            _decode_probes(body)
        raws = _decode_batch(body)
    except NestedTooDeeply:
        raise InvalidEvent(f"The batch nests deeper than {DEPTH_MAX} levels.") from None
    except Undecodable as error:
        raise _malformed("A batch is a JSON array of events", body, error) from None
    return parse_many(raws, bytes_max=bytes_max, events_max=events_max, checked=True)


def check_utf8(body: bytes) -> None:
    """Refuse bytes that are not UTF-8. Raises InvalidEvent naming line and column."""
    try:
        body.decode()
    except UnicodeDecodeError as error:
        line, column = json_position(body, error.start)
        raise InvalidEvent(
            f"JSON is UTF-8; the byte at {error.start} is not: line {line}, column {column}.", line=line, column=column
        ) from None


def nests_deeper(text: bytes, levels: int) -> bool:
    """Return True if the valid JSON `text` has more than `levels` nested levels of arrays and objects.

    Texts that are too short or have too few brackets are decided at once. Of the others only brackets and quotation
    marks are kept, then only brackets outside of strings, which are added up as steps of +1 and -1.
    """
    if len(text) <= 2 * levels or text[:1] not in b"[{" or text.count(b"[") + text.count(b"{") <= levels:
        return False
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    # An empty string, or the end of one and the beginning of the next: either way the remaining marks alternate.
    steps = text.translate(_TO_STEPS, _NOT_STRUCTURE).replace(b'""', b"")
    if b'"' in steps:
        steps = _STRING.sub(b"", steps)
    return max(accumulate(array("b", steps))) > levels


def is_base64(text: str) -> bool:
    """Return True if `text` is padded base64 of the standard alphabet and nothing else (RFC 4648, section 4)."""
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return False
    return True


def _surplus_marks(envelope: _Envelope, body: bytes) -> int:
    """Count the quotation marks of `body` beyond those of the decoded members; -1 if a rule is broken.

    The decoder skips unknown members and keeps the last of a repeated one. Each name and each string has two marks, and
    any further member, or an escaped mark, adds some: without a surplus the event has only the decoded members, each
    once.
    """
    text = envelope.id + envelope.type
    marks = 16
    if envelope.time is not None:
        if not is_timestamp(envelope.time):
            return -1
        marks += 4
    if envelope.datacontenttype is not None:
        if not is_media_type(envelope.datacontenttype):
            return -1
        marks += 4
    if envelope.subject is not None:
        if not envelope.subject:
            return -1
        text += envelope.subject
        marks += 4
    if envelope.dataschema is not None:
        if not is_absolute_uri(envelope.dataschema):
            return -1
        marks += 4
    end = len(body)
    if envelope.data_base64 is not None:
        declared = envelope.datacontenttype
        if (
            envelope.data
            or not is_base64(envelope.data_base64)
            or (declared is not None and "json" in declared.lower())
        ):
            return -1
        marks += 4
    elif envelope.data:
        data = bytes(envelope.data)
        if nests_deeper(data, DEPTH_MAX - 1):
            return -1
        marks += 2
        # Data is mostly the last member. If the body ends with that text, the marks of the data need not be counted
        # twice.
        if body.endswith(data, 0, end - 1):
            end -= 1 + len(data)
        else:
            marks += data.count(b'"')
    if not is_uri_reference(envelope.source) or not is_string(text):
        return -1
    return body.count(b'"', 0, end) - marks


def _are_extensions(body: bytes, marks: int) -> bool:
    """Return True if valid extension attributes account for exactly `marks` quotation marks of `body`."""
    try:
        members = _decode_members(body)
    except NestedTooDeeply:  # the typed decode has just accepted this depth, with slightly more stack left
        return False
    for name, raw in members.items():
        if name in _KNOWN:
            continue
        value = bytes(raw)
        good = is_string(_decode_string(value)) if value[:1] == b'"' else value in _CONSTANTS or _is_integer(value)
        if not good or not is_name(name):
            return False
        marks -= 2 + value.count(b'"')
    return marks == 0


def _parse_exactly(body: bytes, sealed: bool = False, whole: bytes = b"") -> Event:
    """Validate an event member by member, with a sentence for every fault.

    Args:
        sealed: as of `parse_structured`.
        whole: the text with the whitespace around it, for line and column of a fault.
    """
    try:
        members = _decode_members(body)
    except NestedTooDeeply:
        raise InvalidEvent(f"data nests deeper than {DEPTH_MAX} levels.") from None
    except Undecodable as error:
        raise _malformed("An event is a JSON object", whole or body, error, (whole or body).find(body)) from None
    if nests_deeper(body, DEPTH_MAX):
        raise InvalidEvent(f"data nests deeper than {DEPTH_MAX} levels.")
    check_names(name for name in members if name not in _DATA)
    values = {name: bytes(value) for name, value in members.items()}
    # Valid names contain no escapes, so each has two marks, and a surplus belongs to a repeated member.
    if body.count(b'"') != sum(2 + value.count(b'"') for value in values.values()):
        raise InvalidEvent(f"{_repeated(body)} is given twice; every member of an event is given once.")
    data, data_base64 = values.pop("data", None), values.pop("data_base64", b"null")
    if data_base64 != b"null":
        if data is not None:
            raise InvalidEvent("data and data_base64 exclude each other; give one of them.")
        if data_base64[:1] != b'"' or not is_base64(_decode_string(data_base64)):
            raise InvalidEvent("data_base64 must be a string of padded base64 (RFC 4648) without spaces.")
    attributes = {name: _attribute(name, value) for name, value in values.items() if value != b"null"}
    check_attributes(attributes)
    declared = attributes.get("datacontenttype")
    if data_base64 != b"null" and declared is not None and not sealed:
        check_declared(str(declared), binascii.a2b_base64(_decode_string(data_base64)))
    return Event(str(attributes["source"]), str(attributes["id"]), str(attributes["type"]), body)


def _malformed(what: str, text: bytes, error: Undecodable, begin: int = 0) -> InvalidEvent:
    """Make the refusal of text that is not `what`, with line and column if it is not even JSON.

    Args:
        begin: index in `text` of the first byte that was decoded.
    """
    if error.at is not None:
        error.at += begin
    wrong, place = placed(error, text)
    return InvalidEvent(f"{what}: {wrong}.", **place)


def _attribute(name: str, value: bytes) -> str | int | bool:
    """Decode an attribute's JSON text: a string, a boolean or a 32-bit integer. Raises InvalidEvent."""
    if value[:1] == b'"':
        return _decode_string(value)
    if value in (b"true", b"false"):
        return value == b"true"
    if value[:1] in (b"{", b"["):
        raise InvalidEvent(f"{name} is an object or array; an attribute is a string, a boolean or an integer.")
    if not _is_integer(value):
        raise InvalidEvent(f"{name} must be a whole number of 32 bits; it is {show(value.decode())}.")
    return int(value)


def _is_integer(value: bytes) -> bool:
    """Return True if a JSON text is an integer of the type Integer: no fraction, no exponent, 32 bits."""
    return _INTEGER.fullmatch(value) is not None and INTEGER_MIN <= int(value) <= INTEGER_MAX


def _repeated(body: bytes) -> str:
    """Name the first repeated member of the JSON object `body`, which is known to have one."""
    if len(body) <= REPEATED_NAMED_BYTES:
        seen: set[str] = set()
        for name, _ in json.loads(body.decode(), object_pairs_hook=list, parse_int=str, parse_float=str):
            if name in seen:
                return str(name)
            seen.add(name)
    return "A member"
