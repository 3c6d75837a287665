"""WebSocket messages whose end does not come: held for a time, and for so many bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from demo.harness.servers import wait_for
from eventing.access.rules.limits import (
    GATEWAY_UNFINISHED_MESSAGES_MAX,
    STRANGERS_UNFINISHED_MESSAGES_MAX,
    UNFINISHED_MESSAGES_MAX,
    Limits,
)
from eventing.core.config import Config
from tests.gateway.raw import CONTINUATION, FIN, PING, PONG, TEXT, Raw, client_frame
from tests.gateway.server import LiveGateway, event

MIB = 1024 * 1024


UNFINISHED = {
    "first byte": client_frame(b"", size=100)[:1],
    "frame": client_frame(b"x" * 10, size=1000),
    "large frame": client_frame(b"x" * 100_000, size=200_000),
    "empty fragment": client_frame(b"", TEXT),
    "fragment": client_frame(b'{"op":', TEXT),
    "frame of a fragmented message": client_frame(b'{"op":', TEXT) + client_frame(b"x" * 10, CONTINUATION, size=1000),
}


def test_messages_that_do_not_end_are_given_up_in_time(live_gateway: LiveGateway) -> None:
    with ExitStack() as stack:
        raws = {name: stack.enter_context(Raw(live_gateway)) for name in UNFINISHED}
        for name, raw in raws.items():
            raw.open().send(UNFINISHED[name])
        for name, raw in raws.items():
            assert raw.message() == {"op": "closing", "reason": "message-timeout", "retry": True}, name
            assert raw.close_code() == 4003, name


def test_pongs_within_a_message_do_not_prolong_its_time(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        raw.open().send(client_frame(b'{"op":', TEXT))
        assert raw.drip((client_frame(b"", FIN | PONG) for _ in range(100)), 0.1)
        assert raw.close_code() == 4003


def test_a_connection_that_is_always_within_some_message_is_none_of_that(live_gateway: LiveGateway, rp: str) -> None:
    """Each read ends within a message, but never the same one."""
    whole = client_frame(json.dumps({"op": "ping", "id": 1}).encode())
    large = client_frame(json.dumps({"op": "ping", "id": 1, "junk": "x" * 100_000}).encode())
    fragments = client_frame(b'{"op":"ping",', TEXT) + client_frame(b'"id":1}', FIN | CONTINUATION)
    for message in (whole, large, fragments):
        with Raw(live_gateway) as raw:
            raw.open().send(message[:8])
            pieces = (message[8:] + message[:8] for _ in range(int(live_gateway.config.request_timeout_s * 2 / 0.2)))
            for piece in pieces:
                raw.drip([piece], 0.2)
            raw.send(message[8:])
            raw.send(client_frame(b"", FIN | PING))
            while (frame := raw.frame())[0] != PONG:
                assert json.loads(frame[1]) == {"op": "ok", "id": 1}


def test_a_client_that_is_not_read_has_the_time_all_the_same(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway(request_timeout_s=1, session_publishes_max=1)
    rp = live_gateway.create_rp()
    live_gateway.publish(rp)
    publish = client_frame(json.dumps({"op": "publish", "id": 1, "rp": rp, "event": event("e")}).encode())
    with Raw(live_gateway) as raw:
        raw.open()
        assert raw.ask({"op": "ping", "id": 0})["op"] == "ok"
        live_gateway.pause_redis(True)
        raw.send(publish + publish[:8])
        raw.socket.settimeout(2.5)
        with pytest.raises(TimeoutError):
            raw.frame()
        raw.socket.settimeout(10)
        live_gateway.pause_redis(False)
        raw.send(publish[8:])
        assert [raw.message()["op"], raw.message()["op"]] == ["ok", "ok"]


def test_unfinished_messages_of_one_principal_are_bounded_together(
    new_live_gateway: Callable[..., LiveGateway],
) -> None:
    live_gateway = new_live_gateway(request_timeout_s=60)
    process = live_gateway.gateway_process()
    size = 4 * MIB - 1000
    raws = [Raw(live_gateway) for _ in range(30)]
    before = process.memory_info().rss
    for raw in raws:
        raw.open().send(client_frame(b"x" * (size - 10), size=size))
    for raw in raws[-20:]:
        assert raw.message() == {"op": "closing", "reason": "unfinished-bytes", "retry": True}
        assert raw.close_code() == 4004
    assert process.memory_info().rss - before < 5 * UNFINISHED_MESSAGES_MAX * 4 * MIB  # all of them are 120 MiB
    with Raw(live_gateway) as other:  # another principal is not concerned
        large = {"op": "ping", "id": 1, "junk": "x" * MIB}
        assert other.open(live_gateway.token("other")).ask(large) == {"op": "ok", "id": 1}
    for raw in raws:
        raw.socket.close()
    with Raw(live_gateway) as again:  # and what was held is not counted any more
        wait_for(lambda: len(process.net_connections("tcp")) < 10, about="the connections are gone")
        assert again.open().ask(large) == {"op": "ok", "id": 1}


# The rule


def test_what_is_held_is_counted_for_the_principal_for_strangers_and_for_all() -> None:
    limits = Limits(Config(batch_bytes_max=MIB, event_bytes_max=4096), lambda: 0.0)
    one = limits.principal("one")
    assert limits.unfinished(one, UNFINISHED_MESSAGES_MAX * MIB)
    assert not limits.unfinished(one, 1)
    assert limits.unfinished(one, -1)
    strangers = [limits.address(f"192.0.2.{number}") for number in range(STRANGERS_UNFINISHED_MESSAGES_MAX + 1)]
    assert all(limits.unfinished(stranger, MIB) for stranger in strangers[:-1])
    assert not limits.unfinished(strangers[-1], MIB)
    assert limits.unfinished(strangers[-1], -MIB)
    others = GATEWAY_UNFINISHED_MESSAGES_MAX - STRANGERS_UNFINISHED_MESSAGES_MAX - UNFINISHED_MESSAGES_MAX
    assert all(limits.unfinished(limits.principal(f"p{number}"), MIB) for number in range(others))
    assert not limits.unfinished(limits.principal("last"), 1)
