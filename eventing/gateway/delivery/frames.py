"""Encodings of events for each binding. A frame is built once per event and binding, and the same bytes go to every
session.

Head: the common beginning of all frames of one RP's epoch, cached by the channel so that a frame is one concatenation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from eventing.core.errors import ApplicationError
from eventing.core.events.positions import OffsetGap
from eventing.core.events.progress import Passed

PING = b"\x89\x00"
_encode = msgspec.json.Encoder().encode


def text_frame(payload: bytes) -> bytes:
    """Make an unmasked, unfragmented WebSocket text frame (RFC 6455 section 5.2)."""
    size = len(payload)
    if size < 126:
        return b"\x81" + bytes((size,)) + payload
    if size < 65536:
        return b"\x81\x7e" + size.to_bytes(2, "big") + payload
    return b"\x81\x7f" + size.to_bytes(8, "big") + payload


def payloads(frames: bytes) -> list[bytes]:
    """Return the payloads of frames made by `text_frame`, for servers that do the framing themselves."""
    found = []
    at = 0
    while at < len(frames):
        size = frames[at + 1]
        at += 2
        if size == 126:
            size = int.from_bytes(frames[at : at + 2], "big")
            at += 2
        elif size == 127:
            size = int.from_bytes(frames[at : at + 8], "big")
            at += 8
        found.append(frames[at : at + size])
        at += size
    return found


def message(members: dict[str, Any]) -> bytes:
    """Make a herald.v1 message that is not an event, as a WebSocket frame."""
    return text_frame(_encode(members))


def error_message(error: ApplicationError, op_id: int | str | None, **more: Any) -> bytes:
    """Make the herald.v1 error message for `error`."""
    members = {"op": "error", "id": op_id, "type": error.type, "title": error.title, "detail": error.detail}
    if error.retry_after_s is not None:
        members["retry_after_s"] = error.retry_after_s
    return message({**members, **error.extra, **more})


@dataclass(frozen=True, slots=True)
class FrameHead:
    """RP and epoch of a run of frames, and the beginnings of these frames."""

    rp: str
    epoch: str
    herald: bytes
    cursor: bytes

    @classmethod
    def of(cls, rp: str, epoch: str) -> FrameHead:
        """Make the head for one epoch of one RP; both are plain ASCII without characters that JSON escapes."""
        herald = f'{{"op":"event","rp":"{rp}","epoch":"{epoch}","offset":'.encode()
        return cls(rp, epoch, herald, f"{epoch}:".encode())


def cursor_of(epoch: str, offset: int, vector: bytes) -> str:
    """Format a cursor; `vector` is a vector's text, as in core/events/progress.py."""
    return f"{epoch}:{offset}{vector.decode()}"


def gap_members(rp: str, gap: OffsetGap) -> dict[str, Any]:
    """Make the members {"rp", "epoch", "from", "to"}, both ends included; with `feeds` and `cursor` where the RP has replicas,
    and `rewound` {"epoch", "from", "to"} where the reader has been given events that were withdrawn."""
    members: dict[str, Any] = {"rp": rp, "epoch": gap.epoch, "from": gap.start, "to": gap.end}
    if gap.feeds is not None:
        members["feeds"] = gap.feeds
    if gap.cursor:
        members["cursor"] = gap.cursor
    if gap.rewound is not None:
        members["rewound"] = {"epoch": gap.rewound.epoch, "from": gap.rewound.start, "to": gap.rewound.end}
    return members


class Encoding(Protocol):
    """One binding's form of events and gaps. `vector` is a vector's text, with which the cursors of an RP with replicas end."""

    def event(self, head: FrameHead, offset: int, body: bytes) -> bytes:
        """Make the frame of one event."""

    def event_at(self, head: FrameHead, offset: int, vector: bytes, body: bytes) -> bytes:
        """Make the frame of one event of an RP with replicas."""

    def gap(self, rp: str, gap: OffsetGap) -> bytes:
        """Make the frame that reports lost events; empty if the binding has no form for it."""

    def covered(self, head: FrameHead, first: int, last: int, vector: bytes) -> bytes:
        """Make the frame for events not delivered because the reader has them from another replica; may be empty."""

    def continued(self, head: FrameHead, offset: int, vector: bytes, previous: tuple[str, int]) -> bytes:
        """Make the frame for an epoch that continues where the one before, `previous`, had this last offset; may be empty.

        `offset` is that of the last event which the reader has.
        """


def frames_of(
    encoding: Encoding, head: FrameHead, first: int, bodies: Sequence[bytes], passed: Sequence[Passed]
) -> list[bytes]:
    """Make the frames of the events from offset `first` on, and of gaps and covered events between them."""
    frames: list[bytes] = []
    covered_from = 0
    for offset, (body, event) in enumerate(zip(bodies, passed, strict=True), first):
        if event.covered:
            covered_from = covered_from or offset
            continue
        if covered_from:
            frames.append(encoding.covered(head, covered_from, offset - 1, passed[offset - 1 - first].vector))
            covered_from = 0
        if event.gap is not None:
            frames.append(encoding.gap(head.rp, event.gap))
        frames.append(encoding.event_at(head, offset, event.vector, body))
    if covered_from:
        frames.append(encoding.covered(head, covered_from, first + len(passed) - 1, passed[-1].vector))
    return frames


class HeraldEncoding:
    """Encoding of herald.v1 over WebSocket."""

    def event(self, head: FrameHead, offset: int, body: bytes) -> bytes:
        """Make {"op": "event", "rp", "epoch", "offset", "cursor", "event"}; `body` is contained byte for byte."""
        place = b"%d" % offset
        return text_frame(b"".join((head.herald, place, b',"cursor":"', head.cursor, place, b'","event":', body, b"}")))

    def event_at(self, head: FrameHead, offset: int, vector: bytes, body: bytes) -> bytes:
        """Make the same, with the vector in the cursor."""
        place = b"%d" % offset
        cursor = b"".join((b',"cursor":"', head.cursor, place, vector))
        return text_frame(b"".join((head.herald, place, cursor, b'","event":', body, b"}")))

    def gap(self, rp: str, gap: OffsetGap) -> bytes:
        """Make {"op": "gap", "rp", "epoch", "from", "to"}, both ends included."""
        return message({"op": "gap", **gap_members(rp, gap)})

    def covered(self, head: FrameHead, first: int, last: int, vector: bytes) -> bytes:
        """Make {"op": "covered", "rp", "epoch", "from", "to", "cursor"}, both ends included."""
        cursor = cursor_of(head.epoch, last, vector)
        return message(
            {"op": "covered", "rp": head.rp, "epoch": head.epoch, "from": first, "to": last, "cursor": cursor}
        )

    def continued(self, head: FrameHead, offset: int, vector: bytes, previous: tuple[str, int]) -> bytes:
        """Make {"op": "continued", "rp", "epoch", "offset", "cursor", "previous": {"epoch", "to"}}."""
        epoch, end = previous
        members = {"op": "continued", "rp": head.rp, "epoch": head.epoch, "offset": offset}
        cursor = cursor_of(head.epoch, offset, vector)
        return message({**members, "cursor": cursor, "previous": {"epoch": epoch, "to": end}})


class CloudEventsEncoding:
    """Encoding of cloudevents.json over WebSocket: one structured CloudEvent per frame and nothing else."""

    def event(self, head: FrameHead, offset: int, body: bytes) -> bytes:
        """Make the frame of the unchanged event."""
        return text_frame(body)

    def event_at(self, head: FrameHead, offset: int, vector: bytes, body: bytes) -> bytes:
        """Make the same."""
        return text_frame(body)

    def gap(self, rp: str, gap: OffsetGap) -> bytes:
        """Make a CloudEvent of type io.herald.gap, so that the loss is not silent in this binding either."""
        return text_frame(_encode(gap_event(rp, gap)))

    def covered(self, head: FrameHead, first: int, last: int, vector: bytes) -> bytes:
        """Return nothing: this binding has neither offsets nor cursors."""
        return b""

    def continued(self, head: FrameHead, offset: int, vector: bytes, previous: tuple[str, int]) -> bytes:
        """Return nothing: this binding has no epochs."""
        return b""


class StreamEncoding:
    """Encoding of Server-Sent Events; the id is the cursor (HTML Living Standard, section 9.2)."""

    def event(self, head: FrameHead, offset: int, body: bytes) -> bytes:
        """Make `id: CURSOR`, `data: EVENT`. Line ends between the event's JSON tokens become lines of data."""
        if b"\n" in body or b"\r" in body:
            body = _data_lines(body)
        return b"".join((b"id: ", head.cursor, b"%d" % offset, b"\ndata: ", body, b"\n\n"))

    def event_at(self, head: FrameHead, offset: int, vector: bytes, body: bytes) -> bytes:
        """Make the same, with the vector in the id."""
        if b"\n" in body or b"\r" in body:
            body = _data_lines(body)
        return b"".join((b"id: ", head.cursor, b"%d" % offset, vector, b"\ndata: ", body, b"\n\n"))

    def gap(self, rp: str, gap: OffsetGap) -> bytes:
        """Make `event: gap`; its cursor stands before the next event."""
        cursor = gap.cursor or f"{gap.epoch}:{gap.end}"
        return b"event: gap\nid: %s\ndata: %s\n\n" % (cursor.encode(), _encode(gap_members(rp, gap)))

    def covered(self, head: FrameHead, first: int, last: int, vector: bytes) -> bytes:
        """Make an id without data: the browser stores it and dispatches no event."""
        return b"id: %s%d%s\n\n" % (head.cursor, last, vector)

    def continued(self, head: FrameHead, offset: int, vector: bytes, previous: tuple[str, int]) -> bytes:
        """Make the same of the last event which the reader has."""
        return b"id: %s%d%s\n\n" % (head.cursor, offset, vector)


def _data_lines(body: bytes) -> bytes:
    """Format line ends as in Server-Sent Events."""
    return b"\ndata: ".join(body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))


HERALD = HeraldEncoding()
CLOUDEVENTS = CloudEventsEncoding()
STREAM = StreamEncoding()


def gap_event(rp: str, gap: OffsetGap) -> dict[str, Any]:
    """Make a gap as a CloudEvent."""
    return {
        "specversion": "1.0",
        "id": f"{gap.epoch}:{gap.start}-{gap.end}",
        "source": f"urn:herald:rp:{rp}",
        "type": "io.herald.gap",
        "data": gap_members(rp, gap),
    }
