"""How an event looks on each binding. A frame is built once per event and binding, and the same bytes go to every session.

Head: what all frames of one RP's epoch begin with; kept by the channel so that a frame is one concatenation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from eventing.core.errors import HeraldError
from eventing.core.positions import Gap

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


class Encoding(Protocol):
    """One binding's form of events and gaps."""

    def event(self, head: Head, offset: int, body: bytes) -> bytes:
        """The frame of one event."""

    def gap(self, rp: str, gap: Gap) -> bytes:
        """The frame that tells of lost events; empty where the binding has no form for it."""


class HeraldEncoding:
    """herald.v1 over WebSocket."""

    def event(self, head: Head, offset: int, body: bytes) -> bytes:
        """{"op": "event", "rp", "epoch", "offset", "cursor", "event"}; `body` stands in it byte for byte."""
        place = b"%d" % offset
        return text_frame(b"".join((head.herald, place, b',"cursor":"', head.cursor, place, b'","event":', body, b"}")))

    def gap(self, rp: str, gap: Gap) -> bytes:
        """{"op": "gap", "rp", "epoch", "from", "to"}, both ends included."""
        return message({"op": "gap", "rp": rp, "epoch": gap.epoch, "from": gap.start, "to": gap.end})


class CloudEventsEncoding:
    """cloudevents.json over WebSocket: one structured CloudEvent per frame and nothing else."""

    def event(self, head: Head, offset: int, body: bytes) -> bytes:
        """The event as it is."""
        return text_frame(body)

    def gap(self, rp: str, gap: Gap) -> bytes:
        """A CloudEvent of type io.herald.gap, so that the loss is not silent in this binding either."""
        return text_frame(_encode(gap_event(rp, gap)))


class StreamEncoding:
    """Server-Sent Events; the id is the cursor (HTML Living Standard, section 9.2)."""

    def event(self, head: Head, offset: int, body: bytes) -> bytes:
        """`id: CURSOR`, `data: EVENT`. Line ends between the event's JSON tokens become lines of data."""
        if b"\n" in body or b"\r" in body:
            body = b"\ndata: ".join(body.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"))
        return b"".join((b"id: ", head.cursor, b"%d" % offset, b"\ndata: ", body, b"\n\n"))

    def gap(self, rp: str, gap: Gap) -> bytes:
        """`event: gap`; the cursor that comes with it stands before the next event."""
        data = _encode({"rp": rp, "epoch": gap.epoch, "from": gap.start, "to": gap.end})
        return b"event: gap\nid: %s:%d\ndata: %s\n\n" % (gap.epoch.encode(), gap.end, data)


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
        "data": {"rp": rp, "epoch": gap.epoch, "from": gap.start, "to": gap.end},
    }
