"""WebSocket as no good client speaks it: an error for what is no operation, a close code for what is no WebSocket, and no
traceback in the gateway's log (the `live_gateway` fixture looks)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.gateway.raw import BINARY, CLOSE, CONTINUATION, FIN, PING, PONG, TEXT, Raw, client_frame
from tests.gateway.server import LiveGateway, event

PING_OP = b'{"op":"ping","id":1}'


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"7",
        b'"ping"',
        b"{}",
        b'{"op":7}',
        b'{"op":null}',
        b'{"op":"ping","id":1.5}',
        b'{"op":"ping","id":{}}',
        b'{"op":"ping","id":true}',
        b'{"op":"subscribe","rp":7}',
        b'{"op":"subscribe","rp":["a"]}',
        b'{"op":"renew","rp":"x","lease_s":"long"}',
        b'{"op":"renew","rp":"x","lease_s":1e400}',
        b'{"op":"publish","rp":"x","events":[}',
        b'{"op":"ack","cursor":7}',
        b'{"op":"ping"}}',
        b"NaN",
        b"[" * 100_000,
        b'{"op":' + b'{"a":' * 50_000,
        b'{"op":"ping","junk":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"\xef\xbb\xbf" + PING_OP,
    ],
    ids=lambda text: text[:30].decode("latin-1") + f"+{len(text)}",
)
def test_a_message_that_is_no_operation_is_answered_and_the_connection_goes_on(
    live_gateway: LiveGateway, text: bytes
) -> None:
    with Raw(live_gateway) as raw:
        raw.open().send(client_frame(text))
        answer = raw.message()
        assert answer["op"] == "error"
        assert answer["type"] == "urn:herald:problem:invalid-request"
        assert len(answer["detail"]) < 500
        assert raw.ask({"op": "ping", "id": 2}) == {"op": "ok", "id": 2}


def test_a_number_of_any_size_is_given_back_or_refused(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        raw.open()
        for number in (0, -1, 2**53, 2**63 - 1):
            assert raw.ask({"op": "ping", "id": number}) == {"op": "ok", "id": number}
        for number in (2**64, 10**400):
            assert raw.ask({"op": "ping", "id": number})["op"] in ("ok", "error")
        assert raw.ask({"op": "ping", "id": 2}) == {"op": "ok", "id": 2}


def test_a_client_that_talks_nonsense_is_closed_as_terminal(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        raw.open()
        for _ in range(30):
            raw.send(client_frame(b"nonsense"))
        messages: list[dict[str, Any]] = []
        while not messages or messages[-1]["op"] == "error":
            messages.append(raw.message())
        assert messages[-1] == {"op": "closing", "reason": messages[-1]["reason"], "retry": False}
        assert len(messages) <= 31
        assert raw.close_code() == 4104


def test_broken_json_is_refused_with_its_line_and_column(live_gateway: LiveGateway, rp: str) -> None:
    """Of the message itself, and of data in base64 whose content type says JSON."""
    with Raw(live_gateway) as raw:
        raw.open().send(client_frame(b'{"op":"publish",\n"rp":"x","event":{"id": ?}}'))
        answer = raw.message()
        assert (answer["type"], answer["line"], answer["column"]) == ("urn:herald:problem:invalid-request", 2, 25)
        declared = {**event("a"), "datacontenttype": "application/json", "data_base64": "e30sCns="}  # {},\n{
        declared.pop("data", None)
        for members in ({"event": declared}, {"events": [declared]}):
            answer = raw.ask({"op": "publish", "id": 1, "rp": rp, **members})
            assert (answer["type"], answer["line"], answer["column"]) == ("urn:herald:problem:invalid-event", 1, 3)
        declared["datacontenttype"] = "application/octet-stream"
        assert raw.ask({"op": "publish", "id": 2, "rp": rp, "event": declared})["op"] == "ok"


def test_an_event_nested_deeply_in_a_publish_is_refused(live_gateway: LiveGateway, rp: str) -> None:
    with Raw(live_gateway) as raw:
        raw.open()
        for depth in (65, 100_000):
            deep = b"[" * depth + b"]" * depth
            body = json.dumps(event("a")).encode()[:-1] + b',"data":' + deep + b"}"
            raw.send(client_frame(b'{"op":"publish","id":1,"rp":"%s","event":%s}' % (rp.encode(), body)))
            answer = raw.message()
            assert answer["op"] == "error"
            assert answer["type"] in ("urn:herald:problem:invalid-event", "urn:herald:problem:invalid-request")
        assert raw.ask({"op": "subscribe", "id": 2, "rp": rp})["offset"] == 0


@pytest.mark.parametrize(
    "text", [b"\xff", b'{"op":"ping","id":"\xc3("}', b'{"op":"ping","id":"\xed\xa0\x80"}', b'{"op":"x\xf0\x9f"}']
)
@pytest.mark.parametrize("fragments", [1, 2])
def test_text_that_is_not_utf8_is_closed_with_1007(live_gateway: LiveGateway, text: bytes, fragments: int) -> None:
    with Raw(live_gateway) as raw:
        raw.open()
        if fragments == 1:
            raw.send(client_frame(text))
        else:
            raw.send(client_frame(text[:1], TEXT) + client_frame(text[1:], FIN | CONTINUATION))
        assert raw.close_code() == 1007


@pytest.mark.parametrize("payload", [b"", b"x", bytes(100_000)])
def test_a_binary_frame_is_closed_with_1003(live_gateway: LiveGateway, payload: bytes) -> None:
    with Raw(live_gateway) as raw:
        raw.open().send(client_frame(payload, FIN | BINARY))
        assert raw.close_code() == 1003


def test_a_message_larger_than_a_publish_may_be_is_closed_with_1009(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        raw.open().send(client_frame(b"x", size=100_000_000))
        assert raw.close_code() == 1009
    with Raw(live_gateway) as raw:
        raw.open().send(client_frame(b" " * 3_000_000, TEXT))
        raw.send(client_frame(b" " * 3_000_000, FIN | CONTINUATION))
        assert raw.close_code() == 1009


def test_a_message_as_large_as_a_publish_may_be_is_taken(live_gateway: LiveGateway, rp: str) -> None:
    large = [event(f"e{number}", "x" * 250_000) for number in range(16)]
    with Raw(live_gateway) as raw:
        answer = raw.open().ask({"op": "publish", "id": 1, "rp": rp, "events": large})
        assert (answer["op"], answer["offset"]) == ("ok", 16)


@pytest.mark.parametrize("pieces", [2, 3, 50, 1000])
def test_a_fragmented_message_is_one_message(live_gateway: LiveGateway, rp: str, pieces: int) -> None:
    text = json.dumps(
        {"op": "publish", "id": 1, "rp": rp, "event": event("a", "\u00e9" * 4000)}, ensure_ascii=False
    ).encode()
    size = len(text) // pieces + 1
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    with Raw(live_gateway) as raw:
        raw.open()
        for index, part in enumerate(parts):
            last = FIN if index == len(parts) - 1 else 0
            raw.send(client_frame(part, last | (CONTINUATION if index else TEXT)))
            if index == 0:
                raw.send(client_frame(b"between", FIN | PING))
        assert raw.frame() == (PONG, b"between")
        assert raw.message()["offset"] == 1
        assert raw.ask({"op": "ping", "id": 2}) == {"op": "ok", "id": 2}


def test_frames_in_any_segmentation_are_the_same_frames(live_gateway: LiveGateway, rp: str) -> None:
    operations = [{"op": "publish", "id": number, "rp": rp, "event": event(f"e{number}")} for number in range(40)]
    data = b"".join(client_frame(json.dumps(operation).encode()) for operation in operations)
    with Raw(live_gateway) as raw:
        raw.open()
        raw.send(data[:500])
        for at in range(500, 600):
            raw.send(data[at : at + 1])
        raw.send(data[600:])
        assert [raw.message()["offset"] for _ in operations] == list(range(1, 41))


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        (client_frame(PING_OP, masked=False), (1002,)),
        (client_frame(PING_OP, FIN | 0x40 | TEXT), (1002,)),
        (client_frame(PING_OP, FIN | 0x3), (1002,)),
        (client_frame(PING_OP, FIN | CONTINUATION), (1002,)),
        (client_frame(b"a", TEXT) + client_frame(PING_OP), (1002,)),
        (client_frame(b"x" * 126, FIN | PING), (1002,)),
        (client_frame(b"x", PING), (1002,)),
        (client_frame(b"\x03", FIN | 0x8), (1002,)),
        (client_frame(b"\x03\xe8\xff", FIN | 0x8), (1002, 1007)),
        (client_frame(b"\x00\x01", FIN | 0x8), (1002,)),
        (b"\x81\xff" + b"\xff" * 12, (1002, 1009)),
        (b"GET / HTTP/1.1\r\n\r\n", (1002,)),
    ],
    ids=[
        *("unmasked", "reserved bit", "reserved opcode", "continuation of nothing", "text within a message"),
        *(
            "long ping",
            "fragmented ping",
            "short close",
            "close not UTF-8",
            "close code 1",
            "length over 63 bits",
            "HTTP",
        ),
    ],
)
def test_what_breaks_the_protocol_is_closed_with_its_code(
    live_gateway: LiveGateway, data: bytes, codes: tuple[int, ...]
) -> None:
    with Raw(live_gateway) as raw:
        raw.open().send(data)
        assert raw.close_code() in codes
        assert raw.closed()


def test_a_close_is_answered_with_its_code(live_gateway: LiveGateway) -> None:
    with Raw(live_gateway) as raw:
        raw.open().send(client_frame(b"\x03\xe8bye", FIN | 0x8))
        assert raw.close_code() == 1000
        assert raw.closed()


def test_a_connection_cut_in_the_middle_of_a_frame_makes_nothing(live_gateway: LiveGateway, rp: str) -> None:
    publish = client_frame(json.dumps({"op": "publish", "id": 1, "rp": rp, "event": event("a", "x" * 1000)}).encode())
    for cut in (1, 5, 500, len(publish) - 1):
        with Raw(live_gateway) as raw:
            raw.open().send(publish[:cut])
    assert live_gateway.admin.get(f"/api/v1/rps/{rp}/events", params={"wait_s": 0.5}).json()["events"] == []


def test_connections_that_have_died_or_pretend_to_are_let_go(new_live_gateway: Callable[..., LiveGateway]) -> None:
    live_gateway = new_live_gateway(heartbeat_s=1)
    with (
        Raw(live_gateway) as dripping,
        Raw(live_gateway) as silent,
        Raw(live_gateway) as alive,
        Raw(live_gateway) as unclosing,
    ):
        unclosing.open().send(client_frame(b"", FIN | BINARY))
        assert unclosing.close_code() == 1003  # and is not answered
        silent.open()
        alive.open()
        dripping.open().send(client_frame(b"", size=100_000)[:10])
        pings = 0
        while (frame := dripping.frame())[0] == PING:
            dripping.send(b"x")  # it drips on, but no pong can come in the middle of a frame
            alive.send(client_frame(alive.frame()[1], FIN | PONG))
            pings += 1
        assert pings == 2
        assert (frame[0], int.from_bytes(frame[1][:2], "big")) == (CLOSE, 4001)
        assert silent.close_code() == 4001
        for _ in range(3):
            alive.send(client_frame(alive.frame()[1], FIN | PONG))
        assert alive.ask({"op": "ping", "id": 1}) == {"op": "ok", "id": 1}
        unclosing.socket.settimeout(15)
        assert unclosing.closed()


# Handshakes


@pytest.mark.parametrize(
    ("path", "headers", "statuses"),
    [
        ("/ws", ["Sec-WebSocket-Protocol: chat"], (400,)),
        ("/ws?access_token=%ff", [], (400, 401, 101)),
        ("/ws?a=1&a=2", [], (400,)),
        ("/elsewhere", [], (403, 404)),
        ("/ws/", [], (403, 404)),
        ("/ws", ["Sec-WebSocket-Version: 12"], (400, 426)),
        ("/ws", [f"X-{number}: x" for number in range(300)], (400, 413)),
        ("/ws", ["X: " + "x" * 9000], (400, 413)),
        ("/ws", ["X: caf\u00e9\x80"], (101, 400)),
    ],
)
def test_a_handshake_that_cannot_be_taken_is_refused(
    live_gateway: LiveGateway, path: str, headers: list[str], statuses: tuple[int, ...]
) -> None:
    with Raw(live_gateway) as raw:
        raw.send(raw.upgrade(path, *headers))
        answer = raw.answer()
        assert answer.status in statuses, answer


def test_an_upgrade_to_something_else_is_an_ordinary_request(live_gateway: LiveGateway, rp: str) -> None:
    with Raw(live_gateway) as raw:
        raw.send(raw.head("GET", f"/api/v1/rps/{rp}/events", "Connection: Upgrade", "Upgrade: h2c"))
        assert raw.answer().status in (200, 400)
