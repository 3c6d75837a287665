"""Structured events: what CloudEvents 1.0.2 allows is taken byte for byte, everything else is refused in one sentence."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventing.core.errors import ApplicationError, InvalidEvent, TooLarge
from eventing.core.events import cloudevents
from eventing.core.events.cloudevents import DEPTH_MAX, Event, nests_deeper, parse_batch, parse_many, parse_structured

BYTES_MAX = 256 * 1024
MINIMAL = {"specversion": "1.0", "id": "A1", "source": "/s", "type": "t"}


def parse(raw: bytes) -> Event:
    return parse_structured(raw, bytes_max=BYTES_MAX)


def event(**members: Any) -> bytes:
    """A minimal event with `members` on top; a member that is ... is left out."""
    return json.dumps({name: v for name, v in {**MINIMAL, **members}.items() if v is not ...}).encode()


def with_raw(members: str) -> bytes:
    """A minimal event with JSON text appended to its members."""
    return json.dumps(MINIMAL).encode()[:-1] + b"," + members.encode() + b"}"


VALID = {
    "the required attributes alone": event(),
    "an id of any characters": event(id='ü /?#%"\\ \U0001f600'),
    "an id of one space": event(id=" "),
    "an id in the private use area": event(id="\ue000\U0010fffd"),
    "an absolute source": event(source="https://github.com/cloudevents"),
    "a mailto source": event(source="mailto:cncf-wg-serverless@lists.cncf.io"),
    "a urn source": event(source="urn:uuid:6e8bc430-9c3a-11d9-9669-0800200c9a66"),
    "a relative source": event(source="1-555-123-4567"),
    "a subject": event(subject="mynewfile.jpg"),
    "a null subject": event(subject=None),
    "every optional attribute null": event(subject=None, time=None, datacontenttype=None, dataschema=None),
    "a time": event(time="2018-04-05T17:31:00Z"),
    "a content type with parameter": event(datacontenttype='text/plain; charset="utf-8"', data="x"),
    "a content type without data": event(datacontenttype="application/json"),
    "an absolute data schema": event(dataschema="https://example.com/schema?v=2"),
    "extensions of each type": event(comexampleextension1="value", comexampleothervalue=5, flag=True, off=False),
    "a null extension": event(unsetextension=None),
    "an empty extension": event(ext=""),
    "the integer bounds": event(low=-(2**31), high=2**31 - 1, zero=0),
    "a minus zero": with_raw('"x":-0'),
    "an extension name of 64": event(**{"x" * 64: 1}),
    "an extension name of digits": event(**{"1": "x"}),
    "extensions that look like data": event(database64="x", data1="x"),
    "null data": event(data=None),
    "object data": event(data={"specversion": "2", "id": 1, "data": {"id": [1.5, None, "x"]}}),
    "data with repeated names": with_raw('"data":{"a":1,"a":2}'),
    "data with quotation marks": event(data='"\\"\\\\" [{'),
    "object data that is not JSON by its type": event(data={}, datacontenttype="text/plain"),
    "base64 data": event(data_base64="AAEC/+8="),
    "empty base64 data": event(data_base64=""),
    "null base64 data": event(data_base64=None),
    "null base64 data beside data": event(data_base64=None, data=1),
    "base64 data with escaped slashes": with_raw('"data_base64":"AA\\/\\/"'),
    "an escaped member name": with_raw('"\\u0073ubject":"x"'),
    "an escaped extension name": with_raw('"e\\u0078t":"x"'),
    "an escaped surrogate pair": with_raw('"subject":"\\ud83d\\ude00"'),
    "data first": b'{"data":{"a":"b"},' + event()[1:],
    "data in the middle that repeats the end": b'{"data":"t",' + event()[1:],
    "white space anywhere": b' \r\n\t{ "specversion" : "1.0" ,\n"id":"A1", "source":"/s","type":"t" }\n',
    "numbers beyond any reader in data": with_raw('"data":[1e999,123456789012345678901234567890]'),
    "data at the depth bound": event(data=json.loads("[" * (DEPTH_MAX - 1) + "]" * (DEPTH_MAX - 1))),
    "many brackets in strings": event(data=["[" * 500, '"' + "{" * 500, "\\"]),
    "many shallow objects": event(data=[{"a": [i]} for i in range(200)]),
}

INVALID = {
    # what is broken: (the event, words of the sentence)
    "not JSON": (b"hello", "JSON object"),
    "nothing": (b"", "JSON object"),
    "an array": (b"[]", "JSON object"),
    "a string": (b'"x"', "JSON object"),
    "null": (b"null", "JSON object"),
    "an empty object": (b"{}", "specversion is missing"),
    "cut short": (event()[:-1], "JSON object"),
    "two events": (event() + event(), "JSON object"),
    "a trailing comma": (event()[:-1] + b",}", "JSON object"),
    "a byte order mark": (b"\xef\xbb\xbf" + event(), "JSON object"),
    "UTF-16": (event().decode().encode("utf-16"), "UTF-8"),
    "no id": (event(id=...), "id is missing"),
    "no source": (event(source=...), "source is missing"),
    "no type": (event(type=...), "type is missing"),
    "no specversion": (event(specversion=...), "specversion is missing"),
    "a null id": (event(id=None), "id is missing"),
    "a null type": (event(type=None), "type is missing"),
    "an empty id": (event(id=""), "id must be a non-empty string"),
    "an empty source": (event(source=""), "source must be a non-empty URI-reference"),
    "an empty type": (event(type=""), "type must be a non-empty string"),
    "a number as id": (event(id=5), "id must be a non-empty string; it is not a string"),
    "a boolean as type": (event(type=True), "type must be a non-empty string; it is not a string"),
    "an object as source": (event(source={}), "source is an object or array"),
    "another specversion": (event(specversion="0.3"), 'specversion must be "1.0"; it is "0.3"'),
    "a longer specversion": (event(specversion="1.0.2"), "specversion"),
    "a number as specversion": (with_raw('"specversion":1.0'), "specversion"),
    "a space in the source": (event(source="/a b"), "source"),
    "letters beyond ASCII in the source": (event(source="/münchen"), "source"),
    "a lone percent in the source": (event(source="/100%"), "source"),
    "a colon in a first relative segment": (event(source="1:2"), "source"),
    "an empty subject": (event(subject=""), "subject must be a non-empty string"),
    "a number as subject": (event(subject=1), "subject"),
    "a time without zone": (event(time="2018-04-05T17:31:00"), "time must be a date and time"),
    "a day that is not": (event(time="2023-02-29T00:00:00Z"), "time"),
    "a number as time": (event(time=1522949460), "time"),
    "a content type that is none": (event(datacontenttype="json"), "datacontenttype must be a media type"),
    "an empty content type": (event(datacontenttype=""), "datacontenttype"),
    "a relative data schema": (event(dataschema="/schema"), "dataschema must be an absolute URI"),
    "a data schema with fragment": (event(dataschema="https://example.com/s#f"), "dataschema"),
    "an empty data schema": (event(dataschema=""), "dataschema"),
    "a control character in the id": (event(id="a\nb"), "id has a character"),
    "a NUL in the type": (event(type="a\x00"), "type has a character"),
    "a C1 control in the subject": (event(subject="a\x85"), "subject has a character"),
    "a DEL in an extension": (event(ext="\x7f"), "ext has a character"),
    "a noncharacter": (event(ext="\ufdd0"), "ext has a character"),
    "the last noncharacter": (event(id="\U0010ffff"), "id has a character"),
    "a lone surrogate in an attribute": (with_raw('"ext":"\\ud800 "'), "JSON object"),
    "a lone surrogate in data": (with_raw('"data":"\\udc00 "'), "JSON object"),
    "invalid UTF-8 in an attribute": (event(id="?").replace(b"?", b"\xff"), "byte at 30 is not"),
    "invalid UTF-8 in data": (event(data="?").replace(b"?", b"\xc0\x80"), "UTF-8"),
    "an upper-case name": (event(myExt=1), '"myExt" cannot name an attribute'),
    "a name with underscore": (event(my_ext=1), "cannot name an attribute"),
    "a name beyond ASCII": (event(**{"ä": 1}), "cannot name an attribute"),
    "an empty name": (event(**{"": 1}), "cannot name an attribute"),
    "a name of 65": (event(**{"x" * 65: 1}), "cannot name an attribute"),
    "a required attribute in upper case": (event(ID="x"), "cannot name an attribute"),
    "an object as extension": (event(ext={"a": 1}), "ext is an object or array"),
    "an array as extension": (event(ext=[]), "ext is an object or array"),
    "a fraction as extension": (event(ext=1.5), "ext must be a whole number of 32 bits"),
    "a whole fraction as extension": (with_raw('"ext":1.0'), "ext must be a whole number"),
    "an exponent as extension": (with_raw('"ext":1e3'), "ext must be a whole number"),
    "an integer above 32 bits": (event(ext=2**31), "ext must be a whole number of 32 bits"),
    "an integer below 32 bits": (event(ext=-(2**31) - 1), "ext must be a whole number of 32 bits"),
    "an endless integer": (with_raw('"ext":' + "9" * 10_000), "ext must be a whole number of 32 bits"),
    "a repeated id": (with_raw('"id":"A2"'), "id is given twice"),
    "a repeated specversion": (with_raw('"specversion":"1.0"'), "specversion is given twice"),
    "a repeated extension": (with_raw('"ext":"a","ext":"a"'), "ext is given twice"),
    "a repeated extension of numbers": (with_raw('"ext":1,"ext":2'), "ext is given twice"),
    "a repeated name in disguise": (with_raw('"\\u0069d":"A2"'), "id is given twice"),
    "repeated data": (with_raw('"data":1,"data":2'), "data is given twice"),
    "repeated equal data": (with_raw('"data":{"a":1},"data":{"a":1}'), "data is given twice"),
    "a null and a value": (with_raw('"subject":null,"subject":"a"'), "subject is given twice"),
    "a value and a null": (with_raw('"subject":"a","subject":null'), "subject is given twice"),
    "a repeated name in a large event": (with_raw(f'"data":"{"x" * 20_000}","id":"A2"'), "given twice"),
    "data and base64 data": (event(data=1, data_base64="AA=="), "exclude each other"),
    "null data and base64 data": (event(data=None, data_base64="AA=="), "exclude each other"),
    "base64 data without padding": (event(data_base64="AA"), "data_base64 must be"),
    "base64 data with a line end": (event(data_base64="AA==\n"), "data_base64 must be"),
    "base64 data of the URL alphabet": (event(data_base64="-_8="), "data_base64 must be"),
    "base64 data beyond ASCII": (event(data_base64="é"), "data_base64 must be"),
    "a number as base64 data": (event(data_base64=1), "data_base64 must be"),
    "an object as base64 data": (event(data_base64={}), "data_base64 must be"),
    "data one level too deep": (with_raw('"data":' + "[" * DEPTH_MAX + "]" * DEPTH_MAX), "data nests deeper"),
    "data of objects too deep": (with_raw('"data":' + '{"":' * DEPTH_MAX + "1" + "}" * DEPTH_MAX), "data nests deeper"),
    "data too deep beside brackets in strings": (
        with_raw('"data":["]]]\\"]]]","\\\\",' + "[" * DEPTH_MAX + "]" * DEPTH_MAX + "]"),
        "data nests deeper",
    ),
    "an unclosed bomb": (b"[" * 200_000, "JSON object"),
    "a bomb in data": (with_raw('"data":' + "[" * 100_000 + "]" * 100_000), "data nests deeper"),
    "a bomb in an extension": (with_raw('"ext":' + "[" * 100_000 + "]" * 100_000), "nests deeper"),
}


@pytest.mark.parametrize("raw", VALID.values(), ids=VALID.keys())
def test_valid_event_is_taken_and_its_bytes_are_kept(raw: bytes) -> None:
    parsed = parse(raw)
    assert parsed.body == raw.strip()
    members = json.loads(raw)
    assert (parsed.source, parsed.id, parsed.type) == (members["source"], members["id"], members["type"])


@pytest.mark.parametrize(("raw", "sentence"), INVALID.values(), ids=INVALID.keys())
def test_invalid_event_is_refused_with_the_attribute_and_the_rule(raw: bytes, sentence: str) -> None:
    with pytest.raises(InvalidEvent) as caught:
        parse(raw)
    assert sentence in caught.value.detail
    assert caught.value.detail.endswith(".")
    assert caught.value.detail.isprintable()


@pytest.mark.parametrize(
    "raw",
    [
        event(),
        event(data={"a": "b", "c": [1, 2]}),
        event(time="2018-04-05T17:31:00Z", subject="s", datacontenttype="text/plain", dataschema="a:b", data='"'),
        event(data_base64="AAA="),
        event(traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", rank=5, hot=True),
    ],
)
def test_usual_events_go_the_fast_way(raw: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloudevents, "_parse_exactly", None)
    assert parse(raw).body == raw


def test_event_over_the_bound_is_too_large_and_one_at_the_bound_is_not() -> None:
    raw = event(data="x" * 100)
    assert parse_structured(raw, bytes_max=len(raw)).body == raw
    with pytest.raises(TooLarge, match=rf"at most {len(raw) - 1} bytes; this one has {len(raw)}"):
        parse_structured(raw, bytes_max=len(raw) - 1)


def test_hostile_value_is_repeated_short_and_printable() -> None:
    with pytest.raises(InvalidEvent) as caught:
        parse(event(time="\u202e\x1b[31m" + "x" * 5000))
    assert len(caught.value.detail) < 250
    assert caught.value.detail.isprintable()
    with pytest.raises(InvalidEvent) as caught:
        parse(event(**{"X\n" * 5000: 1}))
    assert len(caught.value.detail) < 250
    assert caught.value.detail.isprintable()


def test_raw_of_an_enclosing_message_is_taken_like_its_bytes() -> None:
    frame = msgspec.json.decode(b'{"event": ' + event(data=[1]) + b' , "x":1}', type=dict[str, msgspec.Raw])
    assert parse_structured(frame["event"], bytes_max=BYTES_MAX).body == event(data=[1])
    assert parse_structured(frame["event"], bytes_max=BYTES_MAX, checked=True).body == event(data=[1])


def test_raw_is_checked_for_utf8_unless_the_caller_did() -> None:
    raw = msgspec.json.decode(event(data="?").replace(b"?", b"\xff"), type=msgspec.Raw)
    with pytest.raises(InvalidEvent, match="UTF-8"):
        parse_structured(raw, bytes_max=BYTES_MAX)


def test_batch_gives_its_events_in_order_with_their_bytes() -> None:
    raws = [event(id=str(number), data={"n": number}) for number in range(5)]
    events = parse_batch(b" [" + b" ,\n".join(raws) + b"] ", bytes_max=BYTES_MAX, events_max=5)
    assert [parsed.body for parsed in events] == raws


def test_batch_may_be_empty() -> None:
    assert parse_batch(b"[]", bytes_max=BYTES_MAX, events_max=5) == []


def test_batch_with_a_bad_event_is_refused_whole_and_says_which() -> None:
    body = b"[" + b",".join([event(), event(), event(id=""), event(type="")]) + b"]"
    with pytest.raises(InvalidEvent, match=r"^event 2: id must be") as caught:
        parse_batch(body, bytes_max=BYTES_MAX, events_max=10)
    assert caught.value.document()["index"] == 2


def test_batch_with_a_large_event_says_which() -> None:
    with pytest.raises(TooLarge, match=r"^event 1: An event has at most 100 bytes"):
        parse_many([event(), event(data="x" * 100)], bytes_max=100, events_max=10)


def test_batch_with_too_many_events_is_too_large() -> None:
    with pytest.raises(TooLarge, match="at most 2 events; this one has 3"):
        parse_many([event()] * 3, bytes_max=BYTES_MAX, events_max=2)


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", event(), b"[" + event(), b"[" + event() + b",]", b"null", b"1", b"[" * 100_000, b"[\xff]", b"[1]"],
)
def test_what_is_no_batch_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidEvent):
        parse_batch(body, bytes_max=BYTES_MAX, events_max=10)


def test_large_batch_of_something_else_is_refused_at_its_first_element() -> None:
    with pytest.raises(InvalidEvent, match=r"\$\[0\]"):
        parse_batch(b"[" + b"0," * 500_000 + b"0]", bytes_max=BYTES_MAX, events_max=10)


def test_large_batch_of_events_is_taken() -> None:
    raws = [event(id=str(number), data="x" * 1000) for number in range(300)]
    body = b"[" + b",".join(raws) + b"]"
    assert len(body) > cloudevents.PROBE_BYTES
    assert len(parse_batch(body, bytes_max=BYTES_MAX, events_max=300)) == 300


# Properties

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
allowed_text = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1)
names = st.from_regex(r"[a-z0-9]{1,20}", fullmatch=True)
attribute_values = allowed_text | st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.none()


@st.composite
def valid_members(draw: st.DrawFn) -> dict[str, Any]:
    reserved = {*MINIMAL, "time", "datacontenttype", "dataschema", "subject", "data"}
    extensions = draw(st.dictionaries(names.filter(lambda name: name not in reserved), attribute_values, max_size=4))
    optional = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "subject": allowed_text,
                "time": st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
                "datacontenttype": st.sampled_from(["application/json", "text/plain; charset=utf-8", 'a/b;c="\\"d"']),
                "dataschema": st.sampled_from(["https://example.com/a", "urn:a:b"]),
            },
        )
    )
    data = draw(
        st.one_of(
            st.just({}),
            json_values.map(lambda value: {"data": value}),
            st.binary().map(lambda value: {"data_base64": base64.b64encode(value).decode()}),
        )
    )
    if "data_base64" in data and optional.get("datacontenttype") == "application/json":
        data = {"data_base64": base64.b64encode(json.dumps(data).encode()).decode()}
    members = {**MINIMAL, "id": draw(allowed_text), "type": draw(allowed_text), **optional, **extensions, **data}
    order = draw(st.permutations(list(members)))
    return {name: members[name] for name in order}


def spell(members: dict[str, Any], ascii_only: bool, compact: bool) -> bytes:
    separators = (",", ":") if compact else (" , ", " :\n")
    return json.dumps(members, ensure_ascii=ascii_only, separators=separators).encode()


@given(valid_members(), st.booleans(), st.booleans())
def test_every_spelling_of_a_valid_event_is_taken_unchanged(
    members: dict[str, Any], escaped: bool, compact: bool
) -> None:
    raw = spell(members, escaped, compact)
    assert parse(raw) == Event(members["source"], members["id"], members["type"], raw)


@given(valid_members(), st.booleans(), st.data())
def test_any_member_given_twice_is_refused(members: dict[str, Any], compact: bool, data: st.DataObject) -> None:
    raw = spell(members, False, compact)
    name = data.draw(st.sampled_from(list(members)))
    again = spell({name: members[name]}, False, compact)
    front = data.draw(st.booleans())
    repeated = again[:-1] + b"," + raw[1:] if front else raw[:-1] + b"," + again[1:]
    with pytest.raises(InvalidEvent, match=rf"^{name} is given twice"):
        parse(repeated)


@given(
    st.dictionaries(st.sampled_from([*MINIMAL, "time", "data", "data_base64", "x", "X"]), json_values), st.booleans()
)
def test_both_ways_through_agree(members: dict[str, Any], complete: bool) -> None:
    raw = json.dumps({**MINIMAL, **members} if complete else members).encode()
    answers: list[Any] = []
    for way in (parse, cloudevents._parse_exactly):
        try:
            answers.append(way(raw))
        except InvalidEvent as error:
            answers.append(error.detail)
    assert answers[0] == answers[1]


def refusal(attempt: Callable[[bytes], object], raw: bytes) -> str:
    """The detail of the refusal, empty if it was taken; anything but our errors comes through."""
    try:
        attempt(raw)
    except ApplicationError as error:
        return error.detail
    return ""


@given(st.binary())
def test_arbitrary_bytes_raise_nothing_but_our_errors(raw: bytes) -> None:
    for attempt in (parse, lambda body: parse_batch(body, bytes_max=100, events_max=3)):
        assert refusal(attempt, raw).isprintable()


@given(json_values)
def test_arbitrary_json_raises_nothing_but_our_errors(value: Any) -> None:
    raw = json.dumps(value).encode()
    for attempt in (parse, lambda body: parse_batch(body, bytes_max=100, events_max=3)):
        assert refusal(attempt, raw).isprintable()


@given(valid_members(), st.data())
def test_damaged_events_raise_nothing_but_our_errors(members: dict[str, Any], data: st.DataObject) -> None:
    raw = bytearray(spell(members, False, True))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    assert refusal(parse, bytes(raw)).isprintable()


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@given(
    st.recursive(
        st.text('[]{}"\\,:a'), lambda inner: st.lists(inner) | st.dictionaries(st.text('[]{}"\\'), inner), max_leaves=40
    ),
    st.integers(0, 6),
)
def test_depth_is_that_of_the_nesting_whatever_strings_say(value: Any, levels: int) -> None:
    assert nests_deeper(json.dumps(value).encode(), levels) is (depth(value) > levels)
