"""HTTP as no good client speaks it: every answer is a problem document or a closed connection, nothing is half-made, and
the gateway logs no traceback (the `live_gateway` fixture looks)."""

from __future__ import annotations

import json
import time

import pytest

from tests.gateway.raw import BUSY_S, Raw
from tests.gateway.server import LiveGateway, event

STRUCTURED = "Content-Type: application/cloudevents+json"
BATCH = "Content-Type: application/cloudevents-batch+json"
GOOD = json.dumps(event("good")).encode()


def post(raw: Raw, rp: str, body: bytes, *headers: str, length: int | None = None) -> bytes:
    length = len(body) if length is None else length
    return raw.head("POST", f"/api/v1/rps/{rp}/events", f"Content-Length: {length}", *headers) + body


def stored(live_gateway: LiveGateway, rp: str) -> int:
    return len(live_gateway.admin.get(f"/api/v1/rps/{rp}/events").json()["events"])


# Bodies


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"7",
        b"[]",
        b'"x"',
        GOOD[:-1],
        GOOD + b"}",
        GOOD + GOOD,
        b"\xff" + GOOD,
        GOOD.replace(b"good", b"\xc3\x28"),
        GOOD.replace(b"good", b"\xed\xa0\x80"),
        GOOD.replace(b"good", b"a\\u0000b"),
        GOOD.replace(b"good", b"\\ud800"),
        GOOD.replace(b'"1.0"', b"1.0"),
        GOOD.replace(b'"test"', b"{}"),
        GOOD.replace(b'"test"', b"[1]"),
        GOOD.replace(b'"test"', b"NaN"),
        GOOD[:-1] + b',"id":"again"}',
        GOOD[:-1] + b',"data":1,"data_base64":"AA=="}',
        GOOD[:-1] + b',"data_base64":"?"}',
        GOOD[:-1] + b',"data":' + b"[" * 65 + b"]" * 65 + b"}",
        GOOD[:-1] + b',"data":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        GOOD[:-1] + b',"data":' + b'{"a":' * 40_000 + b"1" + b"}" * 40_000 + b"}",
        b"[" * 200_000,
    ],
    ids=lambda body: body[:24].decode("latin-1") + f"+{len(body)}",
)
def test_a_body_that_is_no_event_is_refused_and_nothing_is_stored(
    live_gateway: LiveGateway, rp: str, body: bytes
) -> None:
    for kind in (STRUCTURED, BATCH):
        with Raw(live_gateway) as raw:
            raw.send(post(raw, rp, body, kind))
            answer = raw.answer()
            assert answer.status == 400
            assert answer.code == "invalid-event"
            raw.send(post(raw, rp, GOOD, STRUCTURED))  # the connection goes on
            assert raw.answer().status in (200, 201)
    assert stored(live_gateway, rp) == 1


def test_more_than_a_publish_may_have_is_refused_by_its_announcement(live_gateway: LiveGateway, rp: str) -> None:
    with Raw(live_gateway) as raw:
        raw.send(post(raw, rp, b"", STRUCTURED, length=10**12))
        answer = raw.answer()  # of a gateway that waits for the body: 408
        assert (answer.status, answer.code) == (413, "too-large")
        assert raw.closed()


def test_more_than_a_publish_may_have_is_refused_when_it_comes_unannounced(live_gateway: LiveGateway, rp: str) -> None:
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    with Raw(live_gateway) as raw:
        raw.send(raw.head("POST", f"/api/v1/rps/{rp}/events", "Transfer-Encoding: chunked", STRUCTURED))
        for _ in range(live_gateway.config.batch_bytes_max // 65_536 + 2):
            raw.send(chunk)
        answer = raw.answer()
        assert (answer.status, answer.code) == (413, "too-large")
    assert stored(live_gateway, rp) == 0


def test_a_body_that_ends_early_is_not_an_event(live_gateway: LiveGateway, rp: str) -> None:
    with Raw(live_gateway) as raw:
        raw.send(post(raw, rp, GOOD, STRUCTURED, length=len(GOOD) + 1))
    with Raw(live_gateway) as raw:
        raw.send(raw.head("POST", f"/api/v1/rps/{rp}/events", "Transfer-Encoding: chunked", STRUCTURED))
        raw.send(b"%x\r\n" % len(GOOD) + GOOD + b"\r\n")
    assert live_gateway.admin.get(f"/api/v1/rps/{rp}/events", params={"wait_s": 0.5}).json()["events"] == []


def test_a_body_that_drips_is_given_up_in_time(live_gateway: LiveGateway, rp: str) -> None:
    with Raw(live_gateway) as raw:
        began = time.monotonic()
        raw.send(post(raw, rp, b"", STRUCTURED, length=10_000))
        assert raw.drip((b"{" for _ in range(100)), 0.1)
        answer = raw.answer()
        assert (answer.status, answer.code) == (408, "timeout")
        assert raw.closed()
        assert (
            live_gateway.config.request_timeout_s - 0.5
            < time.monotonic() - began
            < live_gateway.config.request_timeout_s + BUSY_S
        )
    assert stored(live_gateway, rp) == 0


def test_a_body_for_the_rest_of_the_api_is_bounded_in_size_and_time_as_well(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        raw.send(raw.head("POST", "/api/v1/rps", "Content-Type: application/json", "Content-Length: 99999999"))
        assert (raw.answer()).code == "too-large"
    with Raw(live_gateway) as raw:
        raw.send(raw.head("POST", "/api/v1/rps", "Content-Type: application/json", "Content-Length: 100"))
        assert raw.drip((b" " for _ in range(60)), 0.1)
        assert raw.answer().code == "timeout"


def test_headers_of_a_binary_event_that_break_a_rule_are_refused(live_gateway: LiveGateway, rp: str) -> None:
    good = ["ce-specversion: 1.0", "ce-id: a", "ce-source: /s", "ce-type: t"]
    for bad in (
        ["ce-id: a%"],
        ["ce-id: a%zz"],
        ["ce-id: %ff"],
        ["ce-id: caf\u00e9"],
        ['ce-id: "open'],
        ["ce-id:"],
        ["ce-id: a", "ce-id: b"],
        ["ce-id: a", "ce-datacontenttype: text/plain"],
        ["ce-id: a", "ce-no-good: x"],
        ["ce-id: a", "ce-time: yesterday"],
        ["ce-id: a", "ce-: x"],
        ["ce-id: a", "Content-Type: a", "Content-Type: b"],
    ):
        with Raw(live_gateway) as raw:
            headers = [header for header in good if not header.startswith("ce-id")] + bad
            raw.send(post(raw, rp, b"x", *headers))
            answer = raw.answer()
            assert (answer.status, answer.code) == (400, "invalid-event"), bad
    assert stored(live_gateway, rp) == 0


@pytest.mark.parametrize(
    "header",
    [
        "Content-Type: application/cloudevents+avro",
        "Content-Type: application/cloudevents+json; charset=utf-16",
        "Content-Encoding: gzip",
    ],
)
def test_forms_that_are_not_read_here_are_said_to_be(live_gateway: LiveGateway, rp: str, header: str) -> None:
    with Raw(live_gateway) as raw:
        raw.send(post(raw, rp, GOOD, header))
        answer = raw.answer()
        assert (answer.status, answer.code) == (415, "unsupported-media-type")


@pytest.mark.parametrize("body", [b'{"cursor": "\xff"}', b'{"x\xed\xa0\x80": 1}', b"[" * 3000, b"\xff"])
def test_an_acknowledgement_that_is_no_json_is_refused(live_gateway: LiveGateway, body: bytes) -> None:
    with Raw(live_gateway) as raw:
        raw.send(raw.head("POST", "/api/v1/subscriptions/sub_x/ack", f"Content-Length: {len(body)}") + body)
        answer = raw.answer()
        assert (answer.status, answer.code) == (400, "invalid-request")


# Heads


def test_a_head_that_drips_is_given_up_in_time(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        began = time.monotonic()
        head = raw.head("GET", "/livez")
        assert raw.drip((head[at : at + 1] for at in range(len(head) - 1)), 0.1)
        answer = raw.answer()
        assert (answer.status, answer.code) == (408, "timeout")
        assert raw.closed()
        assert time.monotonic() - began < live_gateway.config.request_timeout_s + BUSY_S


def test_a_second_head_on_the_connection_is_given_up_in_time_too(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        raw.send(raw.head("GET", "/livez"))
        assert raw.answer().status == 200
        assert raw.drip((b"G" for _ in range(60)), 0.1)


def test_a_connection_that_says_nothing_is_closed_in_time(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        began = time.monotonic()
        assert raw.closed()
        assert time.monotonic() - began < live_gateway.config.request_timeout_s + BUSY_S


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000,
        b"GET /" + b"x" * 200_000,
        b"GET / HTTP/1.1\r\n" + b"X-Header: y\r\n" * 20_000,
    ],
    ids=["one header", "path", "many headers"],
)
def test_a_head_is_bounded_in_size(live_gateway: LiveGateway, head: bytes) -> None:
    with Raw(live_gateway) as raw:
        raw.send(head)
        answer = raw.answer()
        assert answer.status in (0, 400, 413)
        if answer.status:
            assert answer.code in ("invalid-request", "too-large")


@pytest.mark.parametrize(
    "head",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_the_connection_closed(live_gateway: LiveGateway, head: bytes) -> None:
    with Raw(live_gateway) as raw:
        raw.send(head)
        answer = raw.answer()
        if answer.status == 0:
            return
        assert answer.status in (400, 404, 408, 413)
        if answer.status != 404:
            assert answer.code in ("invalid-request", "timeout", "too-large")
            assert raw.closed()


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/rps/%00/events",
        "/api/v1/rps/%ff%fe/events",
        "/api/v1/rps/%0a/events",
        "/api/v1/rps/..%2f..%2fetc/events",
        "/api/v1/rps/" + "a" * 5000 + "/events",
        "/api/v1/rps/%E2%80%AE/stream",
        "/api/v1/rps//events",
        "/api/v1/rps///events",
        "/api/v1/rps/" + "%2F" * 300 + "/events",
        "/api/v1/rps/a%2Fb%2F/events/events",
        "/api/v1/subscriptions/%00/events",
        "/api/v1/subscriptions/%ff/ack",
    ],
)
def test_a_path_that_names_nothing_is_refused(live_gateway: LiveGateway, path: str) -> None:
    for method in ("GET", "POST"):
        with Raw(live_gateway) as raw:
            raw.send(raw.head(method, path, "Content-Length: 2") + b"{}")
            answer = raw.answer()
            assert answer.status in (400, 404, 405), answer
            assert answer.code in ("invalid-request", "not-found", "method-not-allowed")


def test_pipelined_requests_are_answered_in_order(live_gateway: LiveGateway, rp: str) -> None:
    with Raw(live_gateway) as raw:
        requests = [post(raw, rp, json.dumps(event(f"e{number}")).encode(), STRUCTURED) for number in range(20)]
        raw.send(b"".join(requests))
        answers = [json.loads(raw.answer().body)["offset"] for _ in requests]
    assert answers == list(range(1, 21))


def test_a_client_that_leaves_in_the_middle_leaves_nothing_behind(live_gateway: LiveGateway, rp: str) -> None:
    for path in (f"/api/v1/rps/{rp}/events?after=now&wait_s=20", f"/api/v1/rps/{rp}/stream"):
        for _ in range(10):
            with Raw(live_gateway) as raw:
                raw.send(raw.head("GET", path))
    for _ in range(10):
        with Raw(live_gateway) as raw:
            raw.send(post(raw, rp, GOOD, STRUCTURED))
    assert live_gateway.admin.get(f"/api/v1/rps/{rp}/events").status_code == 200
