"""How an event looks on each binding. A frame is built once per event and binding, and the same bytes go to every session.

Head: what all frames of one RP's epoch begin with; kept by the channel so that a frame is one concatenation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from eventing.core.errors import HeraldError
from eventing.core.events.positions import Gap
from eventing.core.events.progress import Passed

PING = b"\x89\x00"
_encode = msgspec.json.Encoder().encode


def text_frame(payload: bytes) -> bytes:
    """An unmasked, unfragmented WebSocket text frame (RFC 6455 section 5.2)."""
    size = len(payload)
    if size < 126:
        return b"\x81" + bytes((size,)) + payload
    if size < 65536:
        return b"\x81\x7e" + size.to_bytes(2, "big") + payload
    return b"\x81\x7f" + size.to_bytes(8, "big") + payload


def payloads(frames: bytes) -> list[bytes]:
    """The payloads of frames that `text_frame` made, for servers that do the framing themselves."""
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
    """A herald.v1 message that is not an event, as a WebSocket frame."""
    return text_frame(_encode(members))


def error_message(error: HeraldError, op_id: int | str | None, **more: Any) -> bytes:
    """The herald.v1 error message for `error`."""
    members = {"op": "error", "id": op_id, "type": error.type, "title": error.title, "detail": error.detail}
    if error.retry_after_s is not None:
        members["retry_after_s"] = error.retry_after_s
    return message({**members, **error.extra, **more})


@dataclass(frozen=True, slots=True)
class Head:
    """The RP and epoch that a run of frames belongs to, and the beginnings of their frames."""

    rp: str
    epoch: str
    herald: bytes
    cursor: bytes

    @classmethod
    def of(cls, rp: str, epoch: str) -> Head:
        """The head for one epoch of one RP; both are plain ASCII without characters that JSON escapes."""
        herald = f'{{"op":"event","rp":"{rp}","epoch":"{epoch}","offset":'.encode()
        return cls(rp, epoch, herald, f"{epoch}:".encode())


def place_of(epoch: str, offset: int, vector: bytes) -> str:
    """A cursor as text; `vector` is a vector's text, as core/events/progress.py gives it."""
    return f"{epoch}:{offset}{vector.decode()}"


def gap_members(rp: str, gap: Gap) -> dict[str, Any]:
    """{"rp", "epoch", "from", "to"}, both ends included; and `feeds` and `cursor` where the RP has replicas."""
    members: dict[str, Any] = {"rp": rp, "epoch": gap.epoch, "from": gap.start, "to": gap.end}
    if gap.feeds is not None:
        members["feeds"] = gap.feeds
    if gap.cursor:
        members["cursor"] = gap.cursor
    return members


class Encoding(Protocol):
    """One binding's form of events and gaps. `vector` is a vector's text: what the cursors of an RP with replicas end in."""

    def event(self, head: Head, offset: int, body: bytes) -> bytes:
        """The frame of one event."""

    def event_at(self, head: Head, offset: int, vector: bytes, body: bytes) -> bytes:
        """The frame of one event of an RP with replicas."""

    def gap(self, rp: str, gap: Gap) -> bytes:
        """The frame that tells of lost events; empty where the binding has no form for it."""

    def covered(self, head: Head, first: int, last: int, vector: bytes) -> bytes:
        """The frame that says which events are not given because the reader has them from another replica; may be empty."""


def frames_of(
    encoding: Encoding, head: Head, first: int, bodies: Sequence[bytes], passed: Sequence[Passed]
) -> list[bytes]:
    """The frames of the events from offset `first` on as they passed a reader: events, and what it must know between them."""
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
    """herald.v1 over WebSocket."""

    def event(self, head: Head, offset: int, body: bytes) -> bytes:
        """{"op": "event", "rp", "epoch", "offset", "cursor", "event"}; `body` stands in it byte for byte."""
        place = b"%d" % offset
        return text_frame(b"".join((head.herald, place, b',"cursor":"', head.cursor, place, b'","event":', body, b"}")))

    def event_at(self, head: Head, offset: int, vector: bytes, body: bytes) -> bytes:
        """The same, with the vector in the cursor."""
        place = b"%d" % offset
        cursor = b"".join((b',"cursor":"', head.cursor, place, vector))
        return text_frame(b"".join((head.herald, place, cursor, b'","event":', body, b"}")))

    def gap(self, rp: str, gap: Gap) -> bytes:
        """{"op": "gap", "rp", "epoch", "from", "to"}, both ends included."""
        return message({"op": "gap", **gap_members(rp, gap)})

    def covered(self, head: Head, first: int, last: int, vector: bytes) -> bytes:
        """{"op": "covered", "rp", "epoch", "from", "to", "cursor"}, both ends included."""
        cursor = place_of(head.epoch, last, vector)
        return message(
            {"op": "covered", "rp": head.rp, "epoch": head.epoch, "from": first, "to": last, "cursor": cursor}
        )


class CloudEventsEncoding:
    """cloudevents.json over WebSocket: one structured CloudEvent per frame and nothing else."""

    def event(self, head: Head, offset: int, body: bytes) -> bytes:
        """The event as it is."""
        return text_frame(body)

    def event_at(self, head: Head, offset: int, vector: bytes, body: bytes) -> bytes:
        """The same."""
        return text_frame(body)

    def gap(self, rp: str, gap: Gap) -> bytes:
        """A CloudEvent of type io.herald.gap, so that the loss is not silent in this binding either."""
        return text_frame(_encode(gap_event(rp, gap)))

    def covered(self, head: Head, first: int, last: int, vector: bytes) -> bytes:
        """Nothing: readers of this binding are told neither offsets nor cursors."""
        return b""


class StreamEncoding:
    """Server-Sent Events; the id is the cursor (HTML Living Standard, section 9.2)."""

    def event(self, head: Head, offset: int, body: bytes) -> bytes:
        """`id: CURSOR`, `data: EVENT`. Line ends between the event's JSON tokens become lines of data."""
        if b"\n" in body or b"\r" in body:
            body = _data_lines(body)
        return b"".join((b"id: ", head.cursor, b"%d" % offset, b"\ndata: ", body, b"\n\n"))

    def event_at(self, head: Head, offset: int, vector: bytes, body: bytes) -> bytes:
        """The same, with the vector in the id."""
        if b"\n" in body or b"\r" in body:
            body = _data_lines(body)
        return b"".join((b"id: ", head.cursor, b"%d" % offset, vector, b"\ndata: ", body, b"\n\n"))

    def gap(self, rp: str, gap: Gap) -> bytes:
        """`event: gap`; the cursor that comes with it stands before the next event."""
        cursor = gap.cursor or f"{gap.epoch}:{gap.end}"
        return b"event: gap\nid: %s\ndata: %s\n\n" % (cursor.encode(), _encode(gap_members(rp, gap)))

    def covered(self, head: Head, first: int, last: int, vector: bytes) -> bytes:
        """An id without data: the browser keeps it and tells nobody."""
        return b"id: %s%d%s\n\n" % (head.cursor, last, vector)


def _data_lines(body: bytes) -> bytes:
    """Line ends as Server-Sent Events have them."""
    return b"\ndata: ".join(body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))


HERALD = HeraldEncoding()
CLOUDEVENTS = CloudEventsEncoding()
STREAM = StreamEncoding()


def gap_event(rp: str, gap: Gap) -> dict[str, Any]:
    """A gap as a CloudEvent."""
    return {
        "specversion": "1.0",
        "id": f"{gap.epoch}:{gap.start}-{gap.end}",
        "source": f"urn:herald:rp:{rp}",
        "type": "io.herald.gap",
        "data": gap_members(rp, gap),
    }
