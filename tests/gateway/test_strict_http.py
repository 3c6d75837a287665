"""Requests that HTTP/1.1 forbids (RFC 9112) are refused with a problem document, and strangers' mistakes do not fill the log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eventing.gateway.server.request_heads import LOG_PAUSE_S, RefusalLog, fault_of
from tests.gateway.raw import Raw
from tests.gateway.server import LiveGateway

BODY = b"0\r\n\r\n"


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /livez HTTP/1.1\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /livez HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: a:b\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: user@a\r\n\r\n",
        b"GET /livez HTTP/2.0\r\nHost: a\r\n\r\n",
        b"GET /livez HTTP/0.9\r\nHost: a\r\n\r\n",
        b"POST /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + BODY,
        b"POST /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY,
        b"POST /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY,
        b"POST /livez HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY,
        b"POST /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
        b"POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY,
        b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /ws HTTP/1.0\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
)
def test_a_request_that_two_readers_might_read_differently_is_refused(
    live_gateway: LiveGateway, request_bytes: bytes
) -> None:
    with Raw(live_gateway) as raw:
        raw.send(request_bytes)
        answer = raw.answer()
        assert (answer.status, answer.code) == (400, "invalid-request")
        assert raw.closed()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /livez HTTP/1.1\r\nHost:\r\n\r\n",
        b"GET /livez HTTP/1.0\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nHost: xn--caf-dma.example:8000\r\n\r\n",
        b"POST /livez HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n" + BODY,
        b"\r\nGET /livez HTTP/1.1\r\nHost: a\r\n\r\n",
    ],
)
def test_what_the_standard_allows_is_answered(live_gateway: LiveGateway, request_bytes: bytes) -> None:
    with Raw(live_gateway) as raw:
        raw.send(request_bytes)
        assert raw.answer().status == 200


def test_trailers_are_no_fields_of_the_request(live_gateway: LiveGateway, rp: str) -> None:
    with Raw(live_gateway) as raw:
        head = raw.head("POST", f"/api/v1/rps/{rp}/events", "Transfer-Encoding: chunked", token="")
        raw.send(head + b"2\r\n{}\r\n0\r\nAuthorization: Bearer %s\r\n\r\n" % live_gateway.token().encode())
        assert raw.answer().status == 401


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        (["Sec-WebSocket-Version: 13"], 400, "invalid-request"),
        (["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="], 400, "invalid-request"),
        (["Sec-WebSocket-Key: short", "Sec-WebSocket-Version: 13"], 400, "invalid-request"),
        (["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version: 12"], 400, "invalid-request"),
        (["Sec-WebSocket-Key: caf\u00e9", "Sec-WebSocket-Version: 13"], 400, "invalid-request"),
    ],
    ids=["no key", "no version", "short key", "version 12", "key not ASCII"],
)
def test_a_malformed_handshake_is_answered_with_a_problem_document(
    live_gateway: LiveGateway, fields: list[str], status: int, code: str
) -> None:
    with Raw(live_gateway) as raw:
        raw.send(raw.head("GET", "/ws", "Connection: Upgrade", "Upgrade: websocket", *fields))
        answer = raw.answer()
        assert (answer.status, answer.code) == (status, code)
        assert answer.headers["sec-websocket-version"] == "13"
        assert raw.closed()


def test_a_handshake_by_another_method_is_told_which_is_right(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        raw.send(raw.upgrade().replace(b"GET ", b"POST ", 1))
        answer = raw.answer()
        assert (answer.status, answer.code, answer.headers["allow"]) == (405, "method-not-allowed", "GET")


def test_refused_heads_do_not_fill_the_log(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway()
    for request in (b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/2.0\r\nHost: x\r\n\r\n"):
        for _ in range(20):
            with Raw(live_gateway) as raw:
                raw.send(request)
                assert raw.answer().status == 400
    with Raw(live_gateway) as raw:
        for _ in range(20):
            raw.send(raw.head("GET", "/livez", "Connection: Upgrade", "Upgrade: h2c"))
            assert raw.answer().status == 200
    assert len([line for line in live_gateway.log.splitlines() if "eventing.log" not in line]) == 1


# The rules


def test_refusals_are_logged_once_in_a_while_and_counted_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    times_s = iter([0.0, 1.0, 2.0, LOG_PAUSE_S, LOG_PAUSE_S + 1])
    refusals = RefusalLog(lambda: next(times_s))
    for _ in range(5):
        refusals.refused("192.0.2.1", "why")
    assert [record.getMessage().partition("(")[2] for record in caplog.records] == [
        "0 others since the last line)",
        "2 others since the last line)",
    ]


def test_a_target_that_is_not_ascii_is_a_fault() -> None:
    assert fault_of("1.1", b"/\xff", [(b"host", b"x")], websocket=True)
    assert not fault_of("1.1", b"/%ff", [(b"host", b"x")], websocket=True)
