"""Messages of domains about links of a region, at /federation/v1/region: MessagePack, as peering/wire/messages.py.

A message names an RP of the region instead of the region: both ends find their region by it, also while one of them
knows of an admission that the other has yet to learn of. What is answered states only that the message arrived; the
answer to a request for a link is a message of its own.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.overlay.links import Disconnect, Neighbor, NeighborReply, Reason
from eventing.peering.rules.acquaintances import IDENTIFIED_BYTES_MAX
from eventing.peering.wire.messages import VERSION, BadMessage, Name, RpId

Kind = Literal["ask", "accept", "refuse", "end"]


class LinkMessage(msgspec.Struct, array_like=True):
    """A message about a link.

    Attributes:
        rp: an RP of the region.
        kind: a request for a link, its acceptance or refusal, or the end of the link.
        urgent: of a request: the sender has no other link.
        reason: of an end (overlay/links.py: Reason).
    """

    version: int
    rp: RpId
    kind: Kind
    urgent: bool = False
    reason: Annotated[int, Meta(ge=int(min(Reason)), le=int(max(Reason)))] = int(Reason.LEAVING)


class SentLinkMessage(msgspec.Struct, array_like=True):
    """A message with its verified sender, as it waits in Redis."""

    sender: Name
    message: LinkMessage


encode = msgspec.msgpack.Encoder().encode
_read = msgpack_reader(LinkMessage)
_taken = msgpack_reader(SentLinkMessage)


def link_message_read(data: bytes) -> LinkMessage:
    """Decode a message. Raises BadMessage."""
    if len(data) > IDENTIFIED_BYTES_MAX:
        raise BadMessage(f"A message about a link has at most {IDENTIFIED_BYTES_MAX} bytes.")
    try:
        return _read(data)
    except Undecodable as error:
        raise BadMessage(f"The message is not understood: {error}") from None


def link_message_taken(data: bytes) -> SentLinkMessage:
    """Decode a message that waited."""
    return _taken(data)


def link_message(rp: str, message: Any) -> LinkMessage:
    """Return the wire's form of a message of the link machine."""
    if type(message) is Neighbor:
        return LinkMessage(VERSION, rp, "ask", message.urgent)
    if type(message) is NeighborReply:
        return LinkMessage(VERSION, rp, "accept" if message.accepted else "refuse")
    return LinkMessage(VERSION, rp, "end", reason=int(message.reason))


def machine_message(message: LinkMessage) -> Any:
    """Return the link machine's form of a message."""
    if message.kind == "ask":
        return Neighbor(message.urgent)
    if message.kind == "end":
        return Disconnect(Reason(message.reason))
    return NeighborReply(message.kind == "accept")
