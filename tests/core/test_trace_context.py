"""The trace of a request becomes that of the event that is made of it, and nobody else's."""

from __future__ import annotations

import json
from typing import Any

import pytest

from eventing.core.events.cloudevents_http import TRACESTATE_CHARS_MAX, parse_body, read_head

TRACE = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
JSON = (b"content-type", b"application/json")


def event(*headers: tuple[bytes, bytes], body: bytes = b"{}") -> dict[str, Any]:
    """The one event of a request with these headers."""
    events, batch = parse_body(
        read_head(headers),
        body,
        bytes_max=10_000,
        events_max=10,
        make_id=lambda: "made",
        now=lambda: "2026-01-01T00:00:00Z",
        default_source=lambda: "/made",
    )
    assert not batch
    read: dict[str, Any] = json.loads(events[0].body)
    return read


def test_a_wrapped_event_has_the_trace_of_its_request() -> None:
    states = ((b"tracestate", b"a=1"), (b"tracestate", b"b=2"))
    read = event(JSON, (b"traceparent", TRACE), *states)
    assert (read["traceparent"], read["tracestate"]) == (TRACE.decode(), "a=1,b=2")


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ((b"traceparent", b""),),
        ((b"traceparent", b"nonsense"),),
        ((b"traceparent", TRACE.upper()),),
        ((b"traceparent", b"ff" + TRACE[2:]),),
        ((b"traceparent", b"00-" + b"0" * 32 + TRACE[35:]),),
        ((b"traceparent", TRACE[:36] + b"0" * 16 + TRACE[52:]),),
        ((b"traceparent", TRACE + b"\xff"),),
        ((b"traceparent", TRACE), (b"traceparent", TRACE)),
        ((b"tracestate", b"a=1"),),
    ],
    ids=["none", "empty", "nonsense", "upper", "version", "no-trace", "no-parent", "bytes", "twice", "state-alone"],
)
def test_a_malformed_trace_is_none_and_refuses_nothing(headers: tuple[tuple[bytes, bytes], ...]) -> None:
    assert not {"traceparent", "tracestate"} & set(event(JSON, *headers))


@pytest.mark.parametrize("state", [b"a" * (TRACESTATE_CHARS_MAX + 1), b"a=\xe4", b""], ids=["long", "bytes", "empty"])
def test_a_state_that_nobody_must_carry_is_left_out(state: bytes) -> None:
    read = event(JSON, (b"traceparent", TRACE), (b"tracestate", state))
    assert read["traceparent"] == TRACE.decode()
    assert "tracestate" not in read


def test_an_event_that_its_publisher_made_is_left_as_it_is() -> None:
    structured = b'{"specversion":"1.0","id":"1","source":"/s","type":"t"}'
    headers = ((b"content-type", b"application/cloudevents+json"), (b"traceparent", TRACE))
    assert event(*headers, body=structured) == json.loads(structured)
    binary = [(b"ce-" + name, value) for name, value in BINARY]
    assert "traceparent" not in event(*binary, (b"traceparent", TRACE))


@pytest.mark.parametrize("value", ["00-foreign", "anything at all"])
def test_a_value_of_the_extension_that_is_not_ours_to_judge_is_kept(value: str) -> None:
    assert (
        event(*[(b"ce-" + name, of) for name, of in BINARY], (b"ce-traceparent", value.encode()))["traceparent"]
        == value
    )


BINARY = ((b"specversion", b"1.0"), (b"id", b"1"), (b"source", b"/s"), (b"type", b"t"))
