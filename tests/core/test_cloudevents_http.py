"""The HTTP binding: binary, structured, batch and wrapped requests become events, and no byte of their data is lost."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cloudevents.core.bindings.http import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.errors import ApplicationError, InvalidEvent, TooLarge, UnsupportedMediaType
from eventing.core.events.cloudevents import DEPTH_MAX, Event, parse_structured
from eventing.core.events.cloudevents_http import parse_body, read_head

NOW = "2026-01-31T12:00:00Z"
BINARY = {"ce-specversion": "1.0", "ce-id": "A1", "ce-source": "/s", "ce-type": "t"}
STRUCTURED = b'{"specversion":"1.0","id":"A1","source":"/s","type":"t"}'


def parse(
    headers: dict[str, str] | list[tuple[bytes, bytes]], body: bytes = b"", **bounds: int
) -> tuple[list[Event], bool]:
    if isinstance(headers, dict):
        headers = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    return parse_body(
        read_head(headers),
        body,
        bytes_max=bounds.get("bytes_max", 256 * 1024),
        events_max=bounds.get("events_max", 10),
        make_id=lambda: "made-id",
        now=lambda: NOW,
        default_source=lambda: "/localhost/ann",
    )


def one(headers: dict[str, str], body: bytes = b"") -> dict[str, Any]:
    """The only event of a request, as JSON; it must be an event that the strict parser takes."""
    (event,), batch = parse(headers, body)
    assert not batch
    assert parse_structured(event.body, bytes_max=1024 * 1024) == event
    members: dict[str, Any] = json.loads(event.body)
    return members


def data_bytes(members: dict[str, Any], body: bytes) -> bytes:
    """The data as bytes, however it is carried; JSON data is compared by the caller."""
    if "data_base64" in members:
        return base64.b64decode(members["data_base64"])
    data = members.get("data", "")
    return data.encode() if isinstance(data, str) else body


# Binary mode


def test_binary_event_becomes_json_in_a_fixed_order() -> None:
    headers = {
        "zext": "z",
        "content-type": "application/json",
        "ce-zext": "last",
        "ce-aext": "first",
        "ce-time": NOW,
        "ce-subject": "s",
        "ce-type": "t",
        "ce-source": "/s",
        "ce-id": "A1",
        "ce-specversion": "1.0",
        "ce-dataschema": "a:b",
        "host": "example.com",
    }
    (event,), batch = parse(headers, b' {"a" : [1, 2.50]}\n')
    assert not batch
    assert event.body == (
        b'{"specversion":"1.0","id":"A1","source":"/s","type":"t","datacontenttype":"application/json",'
        b'"dataschema":"a:b","subject":"s","time":"2026-01-31T12:00:00Z","aext":"first","zext":"last",'
        b'"data":{"a" : [1, 2.50]}}'
    )


HEADER_VALUES = {
    "plain": "plain",
    "Euro%20%E2%82%AC%20%F0%9F%98%80": "Euro € 😀",
    "%e2%82%ac": "€",
    "unnecessary%41": "unnecessaryA",
    "once%2541": "once%41",
    "with space": "with space",
    'a "quoted" word': 'a "quoted" word',
    '"quoted string"': "quoted string",
    '"a \\"b\\" \\\\ c"': 'a "b" \\ c',
    '"quoted%20and%22encoded"': 'quoted and"encoded',
    '"%"': None,
    '""': "",
    "": "",
    "%00": None,
    "%0A": None,
    "%7F": None,
    "%EF%BF%BF": None,
    "%C0%A0": None,
    "%FF": None,
    "%ED%A0%80": None,
    "%E2%82": None,
    "100%": None,
    "%4": None,
    "%zz": None,
    '"open': None,
    '"': None,
    '"a" "b"': None,
    '"a\\"': None,
    "caf\xe9": None,
    "tab\there": None,
}


@pytest.mark.parametrize(("raw", "value"), HEADER_VALUES.items(), ids=map(repr, HEADER_VALUES))
def test_header_value_is_unquoted_then_percent_decoded_once(raw: str, value: str | None) -> None:
    headers = {**BINARY, "ce-ext": raw}
    if value is None:
        with pytest.raises(InvalidEvent, match=r"^ext "):
            parse(headers)
    else:
        assert one(headers)["ext"] == value


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"])))
def test_any_string_survives_the_encoding_of_the_binding(value: str) -> None:
    encoded = "".join(
        char if "!" <= char <= "~" and char not in '"%' else "".join(f"%{byte:02X}" for byte in char.encode())
        for char in value
    )
    assert one({**BINARY, "ce-ext": encoded})["ext"] == value


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"ce-specversion": None}, "specversion is missing"),
        ({"ce-id": None}, "id is missing"),
        ({"ce-source": None}, "source is missing"),
        ({"ce-type": None}, "type is missing"),
        ({"ce-specversion": "0.3"}, "specversion must be"),
        ({"ce-id": ""}, "id must be"),
        ({"ce-subject": ""}, "subject must be"),
        ({"ce-time": "yesterday"}, "time must be"),
        ({"ce-source": "a b"}, "source must be"),
        ({"ce-datacontenttype": "text/plain"}, "ce-datacontenttype must not be sent"),
        ({"ce-data": "x"}, "data is a reserved name"),
        ({"ce-data_base64": "QQ=="}, "cannot name an attribute"),
        ({"ce-my-ext": "x"}, "cannot name an attribute"),
        ({"ce-": "x"}, "cannot name an attribute"),
        ({"content-type": "json"}, "content-type must be a media type"),
        ({"content-type": "text/plain; charset=\xe9"}, "content-type must be a media type"),
    ],
)
def test_invalid_binary_event_is_refused_with_the_attribute_and_the_rule(
    changes: dict[str, str | None], sentence: str
) -> None:
    headers = {name: value for name, value in {**BINARY, **changes}.items() if value is not None}
    with pytest.raises(InvalidEvent, match=sentence):
        parse(headers)


@pytest.mark.parametrize("name", ["ce-id", "ce-ext", "content-type"])
def test_header_given_twice_is_refused(name: str) -> None:
    headers = [(key.encode(), value.encode()) for key, value in BINARY.items()]
    value = b"text/plain"
    headers = [(key, kept) for key, kept in headers if key != name.encode()] + [(name.encode(), value)] * 2
    with pytest.raises(InvalidEvent, match="given twice"):
        parse(headers)


# Data

BROKEN = [
    # data that is no JSON; what is said of it, at which line and column
    (b"{'a':1}", "expected", 1, 2),
    (b'{"a":1,}', "trailing comma", 1, 8),
    (b'{\n  "a": 1,\n  "b": tru\n}', "character", 3, 8),
    (b'{"a":', "ends too early", 1, 6),
    (b"[1, 2", "ends too early", 1, 6),
    (b'{"a":1}\n{"a":2}', "trailing characters", 2, 1),
    (b"  ", "ends too early", 1, 3),
    (b"\r\n\n", "ends too early", 3, 1),
    (b"NaN", "invalid character", 1, 1),
    (b"[1, -Infinity]", "invalid character", 1, 6),
    (b"01", "invalid number", 1, 2),
    ('{"ä": ü}'.encode(), "invalid character", 1, 7),
    (b'"\xff"', "not UTF-8", 1, 2),
    (b'{"a":\n "\xc3"}', "not UTF-8", 2, 3),
    (b"\xef\xbb\xbf1", "byte order mark", 1, 1),
    (rb'{"a":"\ud800",}', "trailing comma", 1, 15),
    (b"hello", "invalid character", 1, 1),
    (b"[" * 70 + b"x", "invalid character", 1, 71),
]
JSON_TYPES = ["application/json", "text/json", "Application/vnd.example+JSON", "application/json; charset=UTF-8"]


@pytest.mark.parametrize(("body", "says", "line", "column"), BROKEN)
@pytest.mark.parametrize("content_type", JSON_TYPES)
@pytest.mark.parametrize("mode", ["binary", "wrapped", "structured", "batch"])
def test_data_that_is_declared_to_be_json_and_is_none_is_refused_with_its_place(
    mode: str, content_type: str, body: bytes, says: str, line: int, column: int
) -> None:
    if mode in ("structured", "batch"):
        event = {
            **json.loads(STRUCTURED),
            "datacontenttype": content_type,
            "data_base64": base64.b64encode(body).decode(),
        }
        event.pop("data", None)
        headers = {"content-type": f"application/cloudevents{'-batch' if mode == 'batch' else ''}+json"}
        body = json.dumps([event] if mode == "batch" else event).encode()
    else:
        headers = {**(BINARY if mode == "binary" else {}), "content-type": content_type}
    with pytest.raises(InvalidEvent, match=f"not JSON: .*{says}.* at line {line}, column {column}") as raised:
        parse(headers, body)
    assert (raised.value.extra["line"], raised.value.extra["column"]) == (line, column)


@pytest.mark.parametrize("data", [b"\xff", b"{'a':1}", rb'"\ud800"', b"[" * 9000])
def test_an_event_that_another_domain_signed_is_taken_as_it_is(data: bytes) -> None:
    event = {
        **json.loads(STRUCTURED),
        "datacontenttype": "application/json",
        "data_base64": base64.b64encode(data).decode(),
    }
    event.pop("data", None)
    raw = json.dumps(event).encode()
    assert parse_structured(raw, bytes_max=100_000, sealed=True).body == raw


@pytest.mark.parametrize(
    ("datacontenttype", "data"),
    [
        ("application/json", b'{"a":1}'),
        ("application/json", rb'"\ud800"'),
        ("application/json", b"[" * 9000),
        ("application/json", b""),
        ("application/json; charset=utf-16", b"\xff"),
        ("application/json; charset=us-ascii", b'"\xff"'),
        ("application/octet-stream", b"{'a':1}"),
        ("application/jsonl", b"1\n2"),
        ("application/json-seq", b"\x1e1\n"),
        (None, b"{'a':1}"),
    ],
)
def test_base64_that_is_json_or_not_declared_to_be_is_taken(datacontenttype: str | None, data: bytes) -> None:
    event = {
        **json.loads(STRUCTURED),
        "datacontenttype": datacontenttype,
        "data_base64": base64.b64encode(data).decode(),
    }
    event.pop("data", None)
    raw = json.dumps(event).encode()
    assert parse_structured(raw, bytes_max=100_000).body == raw


@pytest.mark.parametrize("batch", [False, True])
def test_a_structured_event_that_is_not_json_is_refused_with_its_place(batch: bool) -> None:
    headers = {"content-type": f"application/cloudevents{'-batch' if batch else ''}+json"}
    text = b'{"id":"\xc3\xa4", "x": ?}'
    with pytest.raises(InvalidEvent, match="invalid character at line 2, column 17") as raised:
        parse(headers, b"[\n" + text + b"]" if batch else b"\r\n" + text)
    assert (raised.value.extra["line"], raised.value.extra["column"]) == (2, 17)
    with pytest.raises(InvalidEvent, match="line 2, column 8"):
        parse(headers, b"[\n" + text.replace(b"\xa4", b"") + b"]" if batch else b"\r\n" + text.replace(b"\xa4", b""))


def is_json(body: bytes) -> bool:
    """By another parser."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        json.loads(body.decode(), parse_constant=refuse)
    except ValueError:
        return False
    return True


TOO_DEEP = b"[" * DEPTH_MAX + b"]" * DEPTH_MAX
DATA = [
    # content type, body, members that carry it
    ("application/json", b'{"a":1}', {"data": {"a": 1}}),
    ("application/json", b'"text"', {"data": "text"}),
    ("application/json", b"null", {"data": None}),
    ("application/json; charset=utf-8", '"ä"'.encode(), {"data": "ä"}),
    ("APPLICATION/JSON", b"1", {"data": 1}),
    ("text/json", b"[1]", {"data": [1]}),
    ("image/json", b"[1]", {"data": [1]}),
    ("application/vnd.example+json", b"[1]", {"data": [1]}),
    ("application/json", b'"\\ud800 "', {"data_base64": base64.b64encode(b'"\\ud800 "').decode()}),
    ("application/json; charset=utf-16", b"1", {"data_base64": "MQ=="}),
    ("application/json", TOO_DEEP, {"data_base64": base64.b64encode(TOO_DEEP).decode()}),
    ("application/json", b"[" * 9000, {"data_base64": base64.b64encode(b"[" * 9000).decode()}),
    ("application/json", TOO_DEEP[1:-1], {"data": json.loads(TOO_DEEP[1:-1])}),
    ("text/plain", b"hello", {"data": "hello"}),
    ("text/plain", 'ä\r\n"\\\0'.encode(), {"data": 'ä\r\n"\\\0'}),
    ("text/plain; charset=UTF-8", "ä".encode(), {"data": "ä"}),
    ('text/plain; charset="utf-8"', "ä".encode(), {"data": "ä"}),
    ("text/plain; charset=us-ascii", b"a", {"data": "a"}),
    ("text/plain; charset=us-ascii", "ä".encode(), {"data_base64": "w6Q="}),
    ("text/plain; charset=iso-8859-1", b"\xe4", {"data_base64": "5A=="}),
    ("text/plain; charset=iso-8859-1", b"a", {"data_base64": "YQ=="}),
    ("text/plain; charset=utf-8; charset=utf-16", b"a", {"data_base64": "YQ=="}),
    ("text/plain", b"\xff", {"data_base64": "/w=="}),
    ("text/xml", b'<much wow="xml"/>', {"data": '<much wow="xml"/>'}),
    ("application/octet-stream", b'{"a":1}', {"data_base64": "eyJhIjoxfQ=="}),
    ("application/x-www-form-urlencoded", b"a=b", {"data": "a=b"}),  # what curl -d says when it is told nothing
    ("application/json", b"", {}),
    ("application/octet-stream", b"", {}),
    (None, b'{"a":1}', {"data": {"a": 1}}),
    (None, b"hello", {"data_base64": "aGVsbG8="}),
    (None, b"", {}),
]


@pytest.mark.parametrize(("content_type", "body", "carried"), DATA)
@pytest.mark.parametrize("mode", ["binary", "wrapped"])
def test_body_is_carried_as_json_text_or_base64(
    mode: str, content_type: str | None, body: bytes, carried: dict[str, Any]
) -> None:
    headers = dict(BINARY) if mode == "binary" else {"host": "example.com"}
    if content_type is not None:
        headers["content-type"] = content_type
    members = one(headers, body)
    assert {name: members[name] for name in ("data", "data_base64") if name in members} == carried
    assert members.get("datacontenttype") == content_type


@given(st.sampled_from(["text/plain", "text/plain;charset=us-ascii", "image/png", "text/csv"]), st.binary())
def test_no_byte_of_a_body_is_lost(content_type: str, body: bytes) -> None:
    members = one({**BINARY, "content-type": content_type}, body)
    assert data_bytes(members, body) == body


@given(st.binary() | st.text('{}[]",:1a\\ \n').map(str.encode))
def test_no_byte_of_a_json_body_is_lost(body: bytes) -> None:
    try:
        (event,), _ = parse({**BINARY, "content-type": "application/json"}, body)
    except InvalidEvent:
        assert body.strip(b" \t\r\n") == b"" or not is_json(body)
        return
    members = json.loads(event.body)
    if "data_base64" in members:
        assert base64.b64decode(members["data_base64"]) == body
    elif body:
        assert event.body.endswith(b'"data":' + body.strip(b" \t\r\n") + b"}")


# Structured and batch


def test_structured_event_keeps_its_bytes_and_ignores_copies_in_headers() -> None:
    body = b' {"specversion" : "1.0","id":"\\u0041","source":"/s","type":"t","data":[1 ]}\n'
    headers = {**BINARY, "ce-id": "other", "content-type": "application/CloudEvents+JSON; charset=UTF-8"}
    (event,), batch = parse(headers, body)
    assert (event.body, event.id, batch) == (body.strip(), "A", False)


def test_batch_gives_all_its_events_and_says_that_it_was_one() -> None:
    events, batch = parse({"content-type": "application/cloudevents-batch+json"}, b"[" + STRUCTURED + b"]")
    assert ([event.body for event in events], batch) == ([STRUCTURED], True)
    assert parse({"content-type": "application/cloudevents-batch+json"}, b"[]") == ([], True)


def test_bad_event_of_a_batch_is_named_by_its_index() -> None:
    body = b"[" + STRUCTURED + b"," + STRUCTURED.replace(b'"A1"', b'""') + b"]"
    with pytest.raises(InvalidEvent, match=r"^event 1: id must be"):
        parse({"content-type": "application/cloudevents-batch+json"}, body)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/cloudevents",
        "application/cloudevents+xml",
        "application/cloudevents+avro",
        "application/cloudevents+protobuf",
        "application/cloudevents-batch",
        "application/cloudevents-batch+protobuf",
        "application/cloudevents+json; charset=utf-16",
    ],
)
def test_other_event_formats_are_unsupported(content_type: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        parse({"content-type": content_type, **BINARY}, STRUCTURED)


def test_coded_body_is_unsupported() -> None:
    with pytest.raises(UnsupportedMediaType, match="gzip"):
        parse({"content-type": "application/json", "content-encoding": "gzip"}, b"1")
    assert one({"content-type": "application/json", "content-encoding": "identity"}, b"1")["data"] == 1


# Wrapped


def test_anything_else_is_wrapped_with_an_id_and_time_of_our_own() -> None:
    (event,), batch = parse({"content-type": "text/plain"}, b"hello")
    assert not batch
    assert event.body == (
        b'{"specversion":"1.0","id":"made-id","source":"/localhost/ann","type":"io.herald.message",'
        b'"datacontenttype":"text/plain","time":"2026-01-31T12:00:00Z","data":"hello"}'
    )


# Bounds


def test_data_over_the_bound_is_too_large_in_every_mode() -> None:
    for headers in (BINARY, {}, {"content-type": "application/cloudevents+json"}):
        with pytest.raises(TooLarge):
            parse(dict(headers), b"x" * 1001, bytes_max=1000)


def test_bound_holds_for_the_json_form() -> None:
    with pytest.raises(TooLarge, match="as JSON"):
        parse(BINARY, b"\xff" * 900, bytes_max=1000)


def test_batch_of_too_many_is_too_large() -> None:
    with pytest.raises(TooLarge):
        parse(
            {"content-type": "application/cloudevents-batch+json"},
            b"[" + STRUCTURED + b"," + STRUCTURED + b"]",
            events_max=1,
        )


header_names = st.sampled_from(
    [b"content-type", b"ce-id", b"ce-source", b"ce-type", b"ce-specversion", b"ce-time", b"ce-x"]
)
header_values = (
    st.sampled_from([b"1.0", b"application/json", b"application/cloudevents+json", b"text/plain"]) | st.binary()
)


@given(st.lists(st.tuples(header_names | st.binary(), header_values), max_size=8), st.binary() | st.just(STRUCTURED))
def test_arbitrary_requests_raise_nothing_but_our_errors(headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    detail = ""
    events: list[Event] = []
    try:
        events, _ = parse(headers, body)
    except ApplicationError as error:
        detail = error.detail
    assert detail.isprintable()
    for event in events:
        assert parse_structured(event.body, bytes_max=1024 * 1024) == event


# An independent client: the official SDK

sdk_text = st.text(st.characters(exclude_categories=["Cc", "Cs", "Cn"]), min_size=1)
sdk_attributes = st.fixed_dictionaries(
    {"source": st.sampled_from(["/s", "https://example.com/a?b#c", "urn:a:b"]), "type": sdk_text, "id": sdk_text},
    optional={"subject": sdk_text, "dataschema": st.just("https://example.com/s"), "comexampleext": sdk_text},
)
sdk_data = st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.booleans()))


def from_sdk(message: Any) -> dict[str, Any]:
    return one({name.lower(): value for name, value in message.headers.items()}, message.body)


@given(sdk_attributes, sdk_data)
def test_json_events_of_the_sdk_arrive_in_both_modes(attributes: dict[str, Any], data: dict[str, Any]) -> None:
    event = CloudEvent({**attributes, "datacontenttype": "application/json"}, data)
    for message in (to_binary_event(event), to_structured_event(event)):
        members = from_sdk(message)
        assert {name: members[name] for name in attributes} == attributes
        assert members["data"] == data
        assert members["specversion"] == "1.0"
        assert members["time"].endswith("Z")


@given(sdk_attributes, st.binary(min_size=1))
def test_binary_events_of_the_sdk_arrive_in_both_modes(attributes: dict[str, Any], data: bytes) -> None:
    event = CloudEvent({**attributes, "datacontenttype": "application/octet-stream"}, data)
    for message in (to_binary_event(event), to_structured_event(event)):
        assert base64.b64decode(from_sdk(message)["data_base64"]) == data


@given(sdk_attributes, st.text())
def test_text_events_of_the_sdk_arrive_in_both_modes(attributes: dict[str, Any], data: str) -> None:
    event = CloudEvent({**attributes, "datacontenttype": "text/plain"}, data)
    for message in (to_binary_event(event), to_structured_event(event)):
        assert from_sdk(message).get("data", "") == data
