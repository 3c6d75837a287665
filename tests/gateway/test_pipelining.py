"""Several requests on one connection: answered in their order whatever comes behind them, and each in its own time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from eventing.gateway.server.protocol import HEAD_BYTES_MAX
from tests.gateway.raw import BUSY_S, Raw
from tests.gateway.server import LiveGateway, event

STRUCTURED = "Content-Type: application/cloudevents+json"
ROUNDS = 20


def publish(raw: Raw, rp: str, event_id: str, size: int = 0) -> bytes:
    body = json.dumps(event(event_id, "x" * size)).encode()
    return raw.head("POST", f"/api/v1/rps/{rp}/events", f"Content-Length: {len(body)}", STRUCTURED) + body


@pytest.mark.parametrize(
    ("behind", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01", 400),
        (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 2 * HEAD_BYTES_MAX, 413),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ],
    ids=["nonsense", "TLS", "version", "no Host", "long head", "bad chunk"],
)
def test_a_refusal_comes_behind_the_answers_to_what_was_sent_before(
    live_gateway: LiveGateway, rp: str, behind: bytes, status: int
) -> None:
    with Raw(live_gateway) as raw:
        raw.send(b"".join(publish(raw, rp, f"e{number}") for number in range(3)) + behind)
        assert [raw.answer().status for _ in range(4)] == [201, 201, 201, status]
        assert raw.closed()


def test_a_handshake_is_answered_behind_the_publish_before_it(live_gateway: LiveGateway, rp: str) -> None:
    for number in range(ROUNDS):
        with Raw(live_gateway) as raw:
            raw.send(publish(raw, rp, f"e{number}") + raw.upgrade())
            assert raw.answer().status == 201
            assert raw.take_head().startswith(b"HTTP/1.1 101 ")
            assert raw.ask({"op": "ping", "id": number}) == {"op": "ok", "id": number}


def test_a_handshake_behind_a_long_poll_waits_for_it(live_gateway: LiveGateway, rp: str) -> None:
    with Raw(live_gateway) as raw:
        raw.send(raw.head("GET", f"/api/v1/rps/{rp}/events?after=now&wait_s=1") + raw.upgrade())
        assert raw.answer().status == 200
        assert raw.take_head().startswith(b"HTTP/1.1 101 ")


def test_bodies_do_not_count_towards_the_bound_of_a_head(live_gateway: LiveGateway, rp: str) -> None:
    """However the reads are cut: each ends within a head."""
    with Raw(live_gateway) as raw:
        for number in range(ROUNDS):
            first, second = (publish(raw, rp, f"{number}-{part}", HEAD_BYTES_MAX) for part in "ab")
            raw.send(first + second[:20])
            assert raw.answer().status == 201
            raw.send(second[20:])
            assert raw.answer().status == 201


def test_a_head_is_measured_also_where_it_comes_in_one_read(live_gateway: LiveGateway) -> None:
    for size, expected in ((HEAD_BYTES_MAX - 2000, 200), (HEAD_BYTES_MAX + 2000, 413), (2 * HEAD_BYTES_MAX, 413)):
        with Raw(live_gateway) as raw:
            raw.send(raw.head("GET", "/livez", *[f"X-{at}: {'y' * 990}" for at in range(size // 1000)]))
            assert raw.answer().status == expected


def test_hundreds_of_requests_in_one_write_are_all_answered_in_order(live_gateway: LiveGateway, rp: str) -> None:
    count = 600
    with Raw(live_gateway) as raw:
        raw.send(b"".join(publish(raw, rp, f"e{number}", 300) for number in range(count)))
        assert [json.loads(raw.answer().body)["offset"] for _ in range(count)] == list(range(1, count + 1))
        raw.send(raw.head("GET", "/livez"))
        assert raw.answer().status == 200


def test_what_stands_behind_an_upgrade_to_something_else_is_answered(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        other = raw.head("GET", "/livez", "Connection: Upgrade", "Upgrade: h2c")
        raw.send((other + raw.head("GET", "/livez")) * 10)
        assert [raw.answer().status for _ in range(20)] == [200] * 20


def test_a_head_that_drips_behind_a_long_poll_is_given_up(live_gateway: LiveGateway, rp: str) -> None:
    with Raw(live_gateway) as raw:
        raw.send(raw.head("GET", f"/api/v1/rps/{rp}/events?after=now&wait_s=4") + b"GET / HTTP/1.1\r\nX: ")
        began = time.monotonic()
        assert raw.drip((b"y" for _ in range(100)), 0.1)
        assert raw.answer().status == 200
        assert (answer := raw.answer()).status == 408, answer
        assert raw.closed()
        assert time.monotonic() - began < 4 + live_gateway.config.request_timeout_s + BUSY_S


def test_a_head_that_waits_for_us_is_not_given_up(live_gateway: LiveGateway, rp: str) -> None:
    """Its beginning stands behind requests that take longer than a head may: the gateway has not read the rest."""
    with Raw(live_gateway) as raw:
        poll = raw.head("GET", f"/api/v1/rps/{rp}/events?after=now&wait_s=1")
        raw.send(poll * 5 + b"GET /livez HTTP/1.1\r\n")
        statuses = [raw.answer().status for _ in range(5)]
        raw.send(b"Host: x\r\n\r\n")
        assert [*statuses, raw.answer().status] == [200] * 6


def test_empty_lines_do_not_hold_a_connection(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        raw.send(raw.head("GET", "/livez"))
        assert raw.answer().status == 200
        raw.send(b"\r\n")
        assert raw.closed()


def test_a_body_that_nobody_waits_for_does_not_hold_a_connection(live_gateway: LiveGateway, rp: str) -> None:
    with Raw(live_gateway) as raw:
        raw.send(raw.head("POST", f"/api/v1/rps/{rp}/events", "Content-Length: 1000", token="no") + b"{")
        assert raw.answer().status == 401
        assert raw.drip((b" " for _ in range(100)), 0.1)


def test_a_client_that_leaves_while_its_requests_are_answered_is_noticed(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    """No line of the log for it (`new_live_gateway` looks), and nothing goes on for it."""
    live_gateway = new_live_gateway()
    for _ in range(20):
        with Raw(live_gateway) as raw:
            raw.send(raw.head("GET", "/livez") * 200)
            raw.answer()
    assert live_gateway.admin.get("/livez").status_code == 200
