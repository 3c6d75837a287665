"""A client that sends and never reads: what the gateway writes for it is bounded, whatever it is that is answered."""

from __future__ import annotations

import json
import select
import time
from collections.abc import Callable, Iterator

import pytest

from demo.harness.servers import wait_for
from tests.gateway.raw import ANSWER_WITHIN_S, BINARY, FIN, PING, PONG, TEXT, Raw, client_frame
from tests.gateway.server import LiveGateway, Prepared

MIB = 1024 * 1024
WARM_BYTES = 8 * MIB
SENT_BYTES = 60 * MIB
GROWTH_BYTES_MAX = 30 * MIB  # 60 MiB of pings were 93
UNMOVED_S = 0.5  # after which a server that takes nothing more has stopped reading; if it only was slow, less is sent


@pytest.fixture(scope="module")
def unlimited(tmp_path_factory: pytest.TempPathFactory, prepared: Prepared) -> Iterator[LiveGateway]:
    """A gateway that refuses no rate, and waits for the rest of a request; its memory is warm after the first test."""
    with LiveGateway(
        tmp_path_factory.mktemp("unread") / "var", prepared, requests_per_s=0, request_timeout_s=60
    ) as running:
        yield running
        assert "Traceback" not in running.log


def push(raw: Raw, chunk: bytes, total_bytes: int) -> int:
    """Send `chunk` over and over without reading, until the server takes no more or `total_bytes` are sent."""
    raw.socket.setblocking(False)
    sent, moved, at = 0, time.monotonic(), 0
    while sent < total_bytes and time.monotonic() - moved < UNMOVED_S:
        if not select.select([], [raw.socket], [], 0.1)[1]:
            continue
        try:
            count = raw.socket.send(chunk[at:])
        except BlockingIOError:
            continue
        except (BrokenPipeError, ConnectionResetError):
            break
        at = (at + count) % len(chunk)
        sent += count
        moved = time.monotonic()
    raw.socket.settimeout(ANSWER_WITHIN_S)
    return sent


def growth(live_gateway: LiveGateway, chunk: bytes, *, before: bytes = b"", handshake: bool = True) -> int:
    """By how many bytes the gateway grows while one client sends SENT_BYTES of `chunk`, unless it is read no further, and
    reads nothing. What the first of them cost any process, lazily made parts and buffers, does not count."""
    process = live_gateway.gateway_process()
    sizes = []
    for total_bytes in (WARM_BYTES, SENT_BYTES):
        with Raw(live_gateway, receive_buffer=4096) as raw:
            if handshake:
                raw.open()
            raw.send(before)
            push(raw, chunk, total_bytes)
            sizes.append(process.memory_info().rss)
    return sizes[1] - sizes[0]


PINGS = client_frame(b"x" * 125, FIN | PING) * 2000


@pytest.mark.parametrize("kind", ["pings", "pings after a fragmented message", "pings within a fragmented message"])
def test_pings_of_a_client_that_never_reads_cost_no_memory(unlimited: LiveGateway, kind: str) -> None:
    first = {
        "pings": b"",
        "pings after a fragmented message": client_frame(b'{"op":', TEXT) + client_frame(b'"ping"}', FIN),
        "pings within a fragmented message": client_frame(b'{"op":', TEXT),
    }[kind]
    assert growth(unlimited, PINGS, before=first) < GROWTH_BYTES_MAX


def test_a_client_that_reads_again_is_answered_its_last_ping(unlimited: LiveGateway) -> None:
    with Raw(unlimited, receive_buffer=4096) as raw:
        raw.open()
        pushed = push(raw, PINGS, 16 * MIB)
        raw.socket.settimeout(30)
        rest = len(PINGS) - pushed % len(PINGS)
        raw.send((PINGS[-rest:] if rest < len(PINGS) else b"") + client_frame(b"the last", FIN | PING))
        pongs = 0
        while (frame := raw.frame()) != (PONG, b"the last"):
            assert frame == (PONG, b"x" * 125)
            pongs += 1
        assert pongs * 127 < 16 * MIB


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "ping", "id": "x" * 100},
        {"op": "unsubscribe", "rp": "x" * 26, "id": "x" * 100},
        {"op": "publish", "rp": "x" * 26, "id": "x" * 100, "event": {}},
        {"op": "renew", "id": 1},
    ],
    ids=lambda operation: str(operation["op"]),
)
def test_operations_of_a_client_that_never_reads_cost_no_memory(
    unlimited: LiveGateway, operation: dict[str, object]
) -> None:
    chunk = client_frame(json.dumps(operation).encode()) * 1000
    assert growth(unlimited, chunk) < GROWTH_BYTES_MAX


@pytest.mark.parametrize(
    "request_head",
    [
        b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"GET /api/v1/rps/%00/events HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["livez", "upgrade to something else", "refusals"],
)
def test_pipelined_requests_of_a_client_that_never_reads_cost_no_memory(
    unlimited: LiveGateway, request_head: bytes
) -> None:
    assert growth(unlimited, request_head * 5000, handshake=False) < GROWTH_BYTES_MAX


@pytest.mark.long
def test_one_read_full_of_requests_costs_little_memory(new_live_gateway: Callable[..., LiveGateway]) -> None:
    """The first is a long poll: the others wait behind it."""
    live_gateway = new_live_gateway()
    rp = live_gateway.create_rp()
    process = live_gateway.gateway_process()
    connections = [Raw(live_gateway) for _ in range(20)]
    before = process.memory_info().rss
    for raw in connections:
        wait = raw.head("GET", f"/api/v1/rps/{rp}/events?after=now&wait_s=8")
        push(raw, wait + b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 30_000, 256 * 1024)
    grown = process.memory_info().rss - before
    for raw in connections:
        assert raw.answer().status == 200  # the gateway waits for the poll before it stops
        raw.socket.close()
    assert grown < 3 * MIB * len(connections)


def test_endless_trailers_are_given_up(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway()
    rp = live_gateway.create_rp()
    for trailers in (b"X: " + b"y" * 65_536, b"X: y\r\n" * 10_000):
        process = live_gateway.gateway_process()
        with Raw(live_gateway) as raw:
            raw.send(raw.head("POST", f"/api/v1/rps/{rp}/events", "Transfer-Encoding: chunked") + b"0\r\n")
            before = process.memory_info().rss
            assert push(raw, trailers, 60 * MIB) < 60 * MIB
            assert process.memory_info().rss - before < GROWTH_BYTES_MAX


def test_a_close_that_its_client_does_not_take_ends_the_connection(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    """The close stands behind what the client has not read, and would wait for ever."""
    live_gateway = new_live_gateway(session_buffer_bytes=16 * 1024)
    rp = live_gateway.create_rp()
    process = live_gateway.gateway_process()
    with Raw(live_gateway, receive_buffer=4096) as raw:
        raw.open().ask({"op": "subscribe", "rp": rp})
        there = len(process.net_connections("tcp"))
        for number in range(20):
            live_gateway.publish(rp, 50, data="x" * 8000, prefix=f"{number}-")
        raw.send(client_frame(b"x", FIN | BINARY) + client_frame(b"x", 0x7 | FIN))
        wait_for(lambda: len(process.net_connections("tcp")) < there, 30, about="the connection is cut")
