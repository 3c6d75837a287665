"""The CloudEvents 1.0.2 HTTP protocol binding: conversion of a request's headers and body to events in the JSON form.

The content type and the headers decide, in this order:

    application/cloudevents+json           one event, structured; its bytes are kept
    application/cloudevents-batch+json     a JSON array of events
    application/cloudevents*               another format, not understood: UnsupportedMediaType
    any ce-* header                        one event, binary: attributes in headers, the body is its data
    anything else                          wrapped: the body is the data of an event with a generated id and time,
                                           and with the trace context of the request's headers (traceparent, tracestate)

Binary and wrapped events are converted to the JSON form once, always the same way: attributes in a fixed order, then
data as JSON if the content type is one of JSON (or missing) and the body is JSON, as a string if it is UTF-8 text, else
as base64. No byte of the data is lost: data that neither form can carry is encoded in base64. Only a body that is
declared to be JSON and breaks its grammar is refused (declared_json.py).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from eventing.core.container import memoized
from eventing.core.decoding import json_reader
from eventing.core.errors import InvalidEvent, TooLarge, UnsupportedMediaType
from eventing.core.events.cloudevents import DEPTH_MAX, Event, nests_deeper, parse_batch, parse_structured
from eventing.core.events.cloudevents_attributes import (
    OPTIONAL,
    REQUIRED,
    SPECVERSION,
    check_attributes,
    check_names,
    is_media_type,
    show,
    unquote,
)
from eventing.core.events.declared_json import JSON_CHARSETS, is_json, media_type_of, require_grammar

STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
WRAPPED_TYPE = "io.herald.message"

_PREFIX = "application/cloudevents"
_OWS = b" \t"
_QUOTED_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_PERCENT_ENCODED = re.compile(rb"%([0-9A-Fa-f]{2})")
_LONE_PERCENT = re.compile(rb"%(?![0-9A-Fa-f]{2})")
# W3C Trace Context, section 3.2; version ff does not exist.
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
# bound: characters of a `tracestate` header; the header is not copied into the wrapped event
# The length that everybody is asked to propagate (section 3.3.1.5).
TRACESTATE_CHARS_MAX = 512
# A source and a content type each, 1 KiB at most in the usual case.
WRAPPINGS_REMEMBERED = 1024  # bound: cached constant parts of wrapped events; the parts are computed again
_ORDER = REQUIRED + OPTIONAL
_decode_raw = json_reader(msgspec.Raw)
_encode = msgspec.json.Encoder().encode

# Default content type of `curl -d`: treated as text, whatever the name suggests.
_CURL_DATA = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class EventHead:
    """Description of the events in an HTTP message's body, according to the message's headers.

    Attributes:
        content_type: the header's value, well-formed; None if there is none.
        media_type: lower-case type/subtype; empty if there is none.
        charset: lower-case; utf-8 if none is given.
        attributes: of an event in binary form; None for the other forms.
        trace: the distributed tracing attributes of a wrapped event; may be empty.
    """

    content_type: str | None
    media_type: str
    charset: str
    attributes: Mapping[str, str] | None
    trace: Mapping[str, str]


def read_head(headers: Collection[tuple[bytes, bytes]]) -> EventHead:
    """Read the headers of a message.

    Args:
        headers: lower-case names and raw values, as ASGI has them.

    Raises InvalidEvent and UnsupportedMediaType as `parse_body`.
    """
    content_type, ce_headers = _read_headers(headers)
    media_type, charset = media_type_of(content_type)
    if media_type.startswith(_PREFIX):
        if media_type not in (STRUCTURED, BATCH):
            raise UnsupportedMediaType(f"{show(media_type)} is not read here; send {STRUCTURED} or {BATCH}.")
        if charset not in JSON_CHARSETS:
            raise UnsupportedMediaType(f"{media_type} is read in UTF-8 only; the charset is {show(charset)}.")
        return EventHead(content_type, media_type, charset, None, {})
    if ce_headers:
        return EventHead(content_type, media_type, charset, _binary_attributes(ce_headers), {})
    return EventHead(content_type, media_type, charset, None, _trace(headers))


def parse_body(
    head: EventHead,
    body: bytes,
    *,
    bytes_max: int,
    events_max: int,
    make_id: Callable[[], str],
    now: Callable[[], str],
    default_source: Callable[[], str],
) -> tuple[list[Event], bool]:
    """Read the events of one HTTP message; the second value is True for a batch.

    Args:
        head: from `read_head`.
        body: the whole body; the caller has bounded it.
        bytes_max: largest event taken, in bytes of its JSON form.
        events_max: most events of a batch.
        make_id: makes the id of a wrapped event, unique within its source.
        now: makes the time of a wrapped event, RFC 3339.
        default_source: makes the source of a wrapped event, a URI-reference.

    Raises:
        InvalidEvent: the message breaks a rule; the detail names the attribute or header (in a batch, the event) and
            the rule.
        TooLarge: more than `bytes_max` or `events_max`.
        UnsupportedMediaType: another event format, or a content coding or character set that is not read here.
    """
    if head.media_type == STRUCTURED:
        return [parse_structured(body, bytes_max=bytes_max)], False
    if head.media_type == BATCH:
        return parse_batch(body, bytes_max=bytes_max, events_max=events_max), True
    if len(body) > bytes_max:
        raise TooLarge(f"An event has at most {bytes_max} bytes; its data alone has {len(body)}.")
    data_member = _data_member(head.media_type, head.charset, body)
    if head.attributes is None and not head.trace:
        event = _wrapped(make_id(), default_source(), head.content_type, now(), data_member)
    else:
        if head.attributes is not None:
            attributes = dict(head.attributes)
        else:
            attributes = {"specversion": SPECVERSION, "id": make_id(), "source": default_source(), "type": WRAPPED_TYPE}
            attributes["time"] = now()
            attributes.update(head.trace)
        if head.content_type is not None:
            attributes["datacontenttype"] = head.content_type
        check_attributes(attributes)
        event = _event(attributes, data_member)
    if len(event.body) > bytes_max:
        raise TooLarge(f"An event has at most {bytes_max} bytes; as JSON this one has {len(event.body)}.")
    return [event], False


def _read_headers(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str | None, list[tuple[bytes, bytes]]]:
    """Collect the content type (None: not given) and the ce-* headers. Raises InvalidEvent or UnsupportedMediaType."""
    content_type: str | None = None
    ce_headers: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name == b"content-type":
            if content_type is not None:
                raise InvalidEvent("The content-type header is given twice.")
            content_type = value.strip(_OWS).decode("latin-1")
            if not is_media_type(content_type):
                raise InvalidEvent(f"content-type must be a media type (RFC 2045); it is {show(content_type)}.")
        elif name.startswith(b"ce-"):
            ce_headers.append((name, value))
        elif name == b"content-encoding" and value.strip(_OWS).lower() not in (b"", b"identity"):
            raise UnsupportedMediaType(
                f"The content coding {show(value.decode('latin-1'))} is not read here; send the body as it is."
            )
    return content_type, ce_headers


def _trace(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the request's trace context as attributes of CloudEvents' distributed tracing extension.

    Malformed headers give no attributes: a new trace begins, as W3C Trace Context requires, and nothing is refused.
    """
    parents = [value for name, value in headers if name == b"traceparent"]
    if len(parents) != 1 or _TRACEPARENT.fullmatch(parent := parents[0].strip(_OWS).decode("latin-1")) is None:
        return {}
    state = b",".join(value.strip(_OWS) for name, value in headers if name == b"tracestate").decode("latin-1")
    told = state and len(state) <= TRACESTATE_CHARS_MAX and state.isascii() and state.isprintable()
    return {"traceparent": parent, "tracestate": state} if told else {"traceparent": parent}


def _binary_attributes(ce_headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Collect the attributes in ce-* headers, in the order of the JSON form. Raises InvalidEvent."""
    found: dict[str, str] = {}
    for header, value in ce_headers:
        name = header[3:].decode("latin-1")
        if name == "datacontenttype":
            raise InvalidEvent("ce-datacontenttype must not be sent; the content-type header states the type.")
        check_names([name])
        if name in found:
            raise InvalidEvent(f"{name} is given twice; send one ce-{name} header.")
        found[name] = _header_value(name, value)
    return found


def _header_value(name: str, value: bytes) -> str:
    """Decode an attribute's header value: unquote, then percent-decode once (HTTP binding, section 3.1.3.2).

    Spaces and quotation marks need no encoding, for senders of older versions of the binding. Raises InvalidEvent for
    raw bytes beyond ASCII, malformed quoting, a lone %, and text that is not UTF-8 after decoding.
    """
    text = value.strip(_OWS)
    if not text.isascii():
        raise InvalidEvent(f"{name} has bytes beyond ASCII in its header; percent-encode them.")
    if text.startswith(b'"'):
        quoted = text.decode("ascii")
        if _QUOTED_STRING.fullmatch(quoted) is None:
            raise InvalidEvent(
                f"{name} begins with a quotation mark but is not a quoted string; write the mark as %22."
            )
        text = unquote(quoted).encode("ascii")
    if b"%" in text:
        if _LONE_PERCENT.search(text) is not None:
            raise InvalidEvent(f"{name} has a % without two hexadecimal digits in its header; write it as %25.")
        text = _PERCENT_ENCODED.sub(lambda match: bytes((int(match[1], 16),)), text)
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise InvalidEvent(f"{name} is not UTF-8 after percent-decoding its header.") from None


def _data_member(media_type: str, charset: str, body: bytes) -> bytes:
    """Make the JSON member that carries `body`, with the comma before it; empty for an empty body.

    Raises InvalidEvent for a body that is declared to be JSON and is not.
    """
    if not body:
        return b""
    if charset in JSON_CHARSETS and (body.isascii() or charset == "utf-8"):
        if not media_type or is_json(media_type):
            value = _json_value(body)
            if value is not None:
                return b',"data":' + value
            if media_type:
                require_grammar(media_type, body)
        elif media_type.startswith("text/") or media_type == _CURL_DATA:
            try:
                return b',"data":' + msgspec.json.encode(body.decode())
            except UnicodeDecodeError:
                pass
    return b',"data_base64":"' + base64.b64encode(body) + b'"'


def _json_value(body: bytes) -> bytes | None:
    """Return the JSON text in `body` without surrounding whitespace; None if it is not JSON, or nests too deep for an event."""
    try:
        body.decode()
        value = bytes(_decode_raw(body))
    except ValueError:
        return None
    return None if nests_deeper(value, DEPTH_MAX - 1) else value


def _wrapped(event_id: str, source: str, content_type: str | None, time: str, data_member: bytes) -> Event:
    """Make a wrapped event: `_event` with cached JSON, as only id and time differ between events of one source and type."""
    body = b'{"specversion":"1.0","id":%b%b%b%b}' % (
        _encode(event_id),
        _wrapping(source, content_type),
        _encode(time),
        data_member,
    )
    return Event(source, event_id, WRAPPED_TYPE, body)


@memoized(maxsize=WRAPPINGS_REMEMBERED)
def _wrapping(source: str, content_type: str | None) -> bytes:
    """Return the JSON between a wrapped event's id and its time. Raises InvalidEvent."""
    attributes = {"source": source, "type": WRAPPED_TYPE}
    if content_type is not None:
        attributes["datacontenttype"] = content_type
    check_attributes({"specversion": SPECVERSION, "id": "-", **attributes})
    return b',%b,"time":' % _encode(attributes)[1:-1]


def _event(attributes: dict[str, str], data_member: bytes) -> Event:
    """Make the event's JSON form: required attributes, optional ones, extensions by name, data."""
    ordered = {name: attributes[name] for name in _ORDER if name in attributes}
    ordered.update(sorted((name, value) for name, value in attributes.items() if name not in ordered))
    body = msgspec.json.encode(ordered)[:-1] + data_member + b"}"
    return Event(attributes["source"], attributes["id"], attributes["type"], body)
