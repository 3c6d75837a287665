"""Frames as bytes: what is built for every binding can be read back, and what clients send is taken apart exactly."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from eventing.core.errors import Conflict
from eventing.core.events.cursors import OFFSET_MAX
from eventing.core.events.positions import OffsetGap
from eventing.gateway.delivery import frames
from eventing.gateway.delivery.frames import CLOUDEVENTS, HERALD, STREAM, FrameHead, payloads, text_frame
from eventing.gateway.delivery.sinks import websocket_messages
from eventing.gateway.server.client_frames import PING, PLAIN, PONG, TEXT, is_begun, plain_frames

SIZES = st.one_of(st.integers(0, 300), st.sampled_from([125, 126, 127, 65_535, 65_536, 65_537, 70_000]))
TEXTS = st.one_of(st.text().map(str.encode), SIZES.map(lambda size: b"x" * size))
EPOCHS = st.text("abcdefghijklmnopqrstuvwxyz234567", min_size=1, max_size=26)
OFFSETS = st.integers(1, OFFSET_MAX)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=10,
)
MESSAGE_MAX = 80_000


def read_by_the_library(data: bytes) -> list[bytes]:
    """The payloads of unmasked frames as the websockets library reads them."""
    found: list[Frame] = []
    at = 0

    def read_exact(count: int):  # type: ignore[no-untyped-def]
        nonlocal at
        at += count
        return data[at - count : at]
        yield

    while at < len(data):
        parsing = Frame.parse(read_exact, mask=False)
        try:
            next(parsing)
        except StopIteration as done:
            found.append(done.value)
    assert all(frame.opcode is Opcode.TEXT and frame.fin for frame in found)
    return [bytes(frame.data) for frame in found]


@given(st.lists(TEXTS, max_size=5))
def test_text_frames_are_read_by_the_library_and_by_us_as_they_were_written(texts: list[bytes]) -> None:
    data = b"".join(map(text_frame, texts))
    assert payloads(data) == texts
    assert read_by_the_library(data) == texts
    assert [message["text"].encode() for message in websocket_messages(data)] == texts


@given(EPOCHS, OFFSETS, JSON)
def test_an_event_frame_says_where_it_stands_and_holds_the_event_as_it_is(
    epoch: str, offset: int, data: object
) -> None:
    rp = "a" * 26
    head = FrameHead.of(rp, epoch)
    body = json.dumps({"id": "1", "data": data}).encode()
    (payload,) = payloads(HERALD.event(head, offset, body))
    assert json.loads(payload) == {
        "op": "event",
        "rp": rp,
        "epoch": epoch,
        "offset": offset,
        "cursor": f"{epoch}:{offset}",
        "event": json.loads(body),
    }
    assert payload.endswith(b',"event":' + body + b"}")
    assert payloads(CLOUDEVENTS.event(head, offset, body)) == [body]


@given(EPOCHS, OFFSETS, JSON, st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_stream_message_is_one_message_whatever_its_line_ends(
    epoch: str, offset: int, data: object, line_end: str
) -> None:
    body = json.dumps({"data": data}, indent=1).replace("\n", line_end).encode()
    message = STREAM.event(FrameHead.of("a" * 26, epoch), offset, body).decode()
    assert message.endswith("\n\n")
    assert "\n\n" not in message[:-2]
    assert "\r" not in message
    lines = message[:-2].split("\n")
    assert lines[0] == f"id: {epoch}:{offset}"
    assert all(line.startswith("data: ") for line in lines[1:])
    assert json.loads("\n".join(line.removeprefix("data: ") for line in lines[1:])) == json.loads(body)


@given(EPOCHS, OFFSETS, st.integers(0, 1000))
def test_a_gap_has_a_form_in_every_binding(epoch: str, start: int, length: int) -> None:
    gap = OffsetGap(epoch, start, start + length - 1)
    members = {"rp": "r", "epoch": epoch, "from": gap.start, "to": gap.end}
    (herald,) = payloads(HERALD.gap("r", gap))
    assert json.loads(herald) == {"op": "gap", **members}
    (cloudevent,) = payloads(CLOUDEVENTS.gap("r", gap))
    assert json.loads(cloudevent)["data"] == members
    stream = STREAM.gap("r", gap).decode()
    assert stream.startswith(f"event: gap\nid: {epoch}:{gap.end}\ndata: ")
    assert json.loads(stream.split("data: ")[1]) == members


def test_an_error_message_has_the_members_of_its_problem() -> None:
    (payload,) = payloads(frames.error_message(Conflict("Why.", retry_after_s=3, rp="r"), "op-1"))
    assert json.loads(payload) == {
        "op": "error",
        "id": "op-1",
        "type": "urn:herald:problem:conflict",
        "title": Conflict.title,
        "detail": "Why.",
        "retry_after_s": 3,
        "rp": "r",
    }


# What clients send


def client_frame(first_byte: int, payload: bytes, mask: bytes | None) -> bytes:
    """A frame as a client writes it; without a mask it breaks the protocol."""
    size = len(payload)
    bit = 0x80 if mask is not None else 0
    if size < 126:
        head = bytes((first_byte, bit | size))
    elif size < 65_536:
        head = bytes((first_byte, bit | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((first_byte, bit | 127)) + size.to_bytes(8, "big")
    if mask is None:
        return head + payload
    return head + mask + bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))


MASKS = st.binary(min_size=4, max_size=4)
PLAIN_FRAMES = st.one_of(
    st.tuples(st.just(TEXT), st.binary(max_size=300), MASKS),
    st.tuples(st.just(TEXT), st.sampled_from([126, 65_535, 65_536]).map(bytes), MASKS),
    st.tuples(st.sampled_from([PING, PONG]), st.binary(max_size=125), MASKS),
)
OTHER_FRAMES = st.one_of(
    st.tuples(st.sampled_from([0x01, 0x00, 0x80, 0x82, 0x88, 0xC1, 0x91, 0x83, 0x09]), st.binary(max_size=200), MASKS),
    st.tuples(st.just(TEXT), st.binary(max_size=200), st.none()),
    st.tuples(st.just(TEXT), st.just(bytes(MESSAGE_MAX + 1)), MASKS),
    st.tuples(st.sampled_from([PING, PONG]), st.binary(min_size=126, max_size=200), MASKS),
)


@given(st.lists(PLAIN_FRAMES, max_size=5), st.none() | OTHER_FRAMES, st.binary(max_size=20), st.data())
def test_plain_frames_are_taken_whole_in_order_and_everything_else_is_left(
    plain: list[tuple[int, bytes, bytes]],
    other: tuple[int, bytes, bytes | None] | None,
    rubbish: bytes,
    data: st.DataObject,
) -> None:
    sent = b"".join(client_frame(*frame) for frame in plain)
    if other is not None:
        sent += client_frame(*other) + rubbish
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=6)))
    taken: list[tuple[int, bytes]] = []
    rest = b""
    given_up = False
    for begin, end in zip([0, *cuts], [*cuts, len(sent)], strict=True):
        rest += sent[begin:end]
        if not given_up:
            found, used = plain_frames(rest, MESSAGE_MAX)
            taken += found
            rest = rest[used:]
            given_up = not is_begun(rest, MESSAGE_MAX)
    assert taken == [(first_byte, payload) for first_byte, payload, _ in plain]
    if other is None:
        assert (rest, given_up) == (b"", False)
    else:
        assert rest == client_frame(*other) + rubbish, "the library is given every byte that was not taken"
        assert given_up


@given(st.binary(max_size=400))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    found, used = plain_frames(data, MESSAGE_MAX)
    assert 0 <= used <= len(data)
    assert all(first_byte in PLAIN and len(payload) <= MESSAGE_MAX for first_byte, payload in found)
    assert isinstance(is_begun(data[used:], MESSAGE_MAX), bool)
