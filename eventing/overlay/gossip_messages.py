"""Message of gossip, shared by many objects, and the packing of what the objects have to send into its bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from eventing.overlay.fingerprints import Range
from eventing.overlay.gossip_object import (
    GossipObject,
    ObjectName,
    Offer,
    RowChange,
    Seconds,
    SignedRow,
    Tag,
    id_bytes,
    row_bytes,
)
from eventing.overlay.machine import Id

MESSAGE_BYTES_MAX = 16_384  # bound: bytes of one message; what does not fit waits for the next message
OBJECTS_MAX = 32  # bound: objects in one message, and at one domain; a longer message is refused
OFFERS_MAX = 512  # bound: offers of one object in one message; a longer message is refused
# bound: rows of one object requested in one message; the others are requested when they are offered again
WANTS_MAX = 128
RANGES_MAX = 48  # bound: sums of one object in one message; other ranges are compared in a later round
_PART_BYTES = 24
"""Of a part without entries, beside the name."""
_RANGE_BYTES = 13
_VERSION_BYTES = 6
_TAG_BYTES = 9

_RangeNumber = Annotated[int, msgspec.Meta(ge=0, lt=2**16)]
WantedRow = tuple[Id, Seconds]
"""(owner, version): a row that the sender lacks, and the version that it has; 0 for the whole row."""


class GossipPart(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The part of a message that concerns one object.

    Attributes:
        object: its name.
        ranges: the sender's sums of ranges; at the beginning of an exchange of range 0, which is everything.
        listed: ranges of which `offers` has every contributor.
        offers, wants, rows, changes: as named.
    """

    object: ObjectName
    ranges: Annotated[tuple[tuple[_RangeNumber, Tag], ...], msgspec.Meta(max_length=RANGES_MAX)] = ()
    listed: Annotated[tuple[_RangeNumber, ...], msgspec.Meta(max_length=RANGES_MAX)] = ()
    offers: Annotated[tuple[Offer, ...], msgspec.Meta(max_length=OFFERS_MAX)] = ()
    wants: Annotated[tuple[WantedRow, ...], msgspec.Meta(max_length=WANTS_MAX)] = ()
    rows: Annotated[tuple[SignedRow, ...], msgspec.Meta(max_length=OFFERS_MAX)] = ()
    changes: Annotated[tuple[RowChange, ...], msgspec.Meta(max_length=OFFERS_MAX)] = ()


class GossipMessage(msgspec.Struct, frozen=True, array_like=True, tag="gossip", gc=False):
    """Parts of several objects; MESSAGE_BYTES_MAX in all."""

    parts: Annotated[tuple[GossipPart, ...], msgspec.Meta(max_length=OBJECTS_MAX)]


class Outgoing:
    """The material of one object for the next message, in the order of urgency.

    Attributes:
        lists: ranges, each with the offers of every contributor; sent whole or not at all.
    """

    def __init__(self, definition: GossipObject) -> None:
        self.definition = definition
        self.ranges: list[tuple[Range, int]] = []
        self.lists: list[tuple[Range, list[Offer]]] = []
        self.rows: list[SignedRow | RowChange] = []
        self.wants: list[WantedRow] = []
        self.offers: list[Offer] = []

    def __bool__(self) -> bool:
        return bool(self.ranges or self.lists or self.rows or self.wants or self.offers)

    def packed(self, bytes_max: int) -> tuple[GossipPart, int]:
        """Make the part of a message that fits into a number of bytes; return it with an upper bound of its bytes."""
        left = _Space(bytes_max - _PART_BYTES - len(self.definition.name))
        ranges = [one for one in self.ranges[:RANGES_MAX] if left.takes(_RANGE_BYTES)]
        found = [one for one in self.rows[:OFFERS_MAX] if left.takes(row_bytes(one))]
        wants = [one for one in self.wants[:WANTS_MAX] if left.takes(id_bytes(one[0]) + _VERSION_BYTES)]
        listed: list[Range] = []
        offers: list[Offer] = []
        for of, entries in self.lists[:RANGES_MAX]:
            if len(offers) + len(entries) <= OFFERS_MAX and left.takes(3 + sum(map(offer_bytes, entries))):
                listed.append(of)
                offers += entries
        offers += [one for one in self.offers[: OFFERS_MAX - len(offers)] if left.takes(offer_bytes(one))]
        part = GossipPart(
            self.definition.name,
            tuple(ranges),
            tuple(listed),
            tuple(offers),
            tuple(wants),
            tuple(one for one in found if isinstance(one, SignedRow)),
            tuple(one for one in found if isinstance(one, RowChange)),
        )
        return part, bytes_max - left.bytes


class _Space:
    """Bytes that are left."""

    def __init__(self, of: int) -> None:
        self.bytes = of

    def takes(self, size: int) -> bool:
        """Take bytes, if there are as many."""
        if size > self.bytes:
            return False
        self.bytes -= size
        return True


def offer_bytes(of: Offer) -> int:
    """Upper bound of an offer's encoded bytes."""
    return id_bytes(of[0]) + _VERSION_BYTES + _TAG_BYTES + 1


def packed(outgoing: Sequence[Outgoing], turn: int) -> GossipMessage:
    """Make one message of what several objects have to send.

    Each object has the part of the bound that its `share` gives it, and what those before it leave over; the first place rotates
    with `turn`. So an object with much to send takes what others do not use, and none waits for another.
    """
    some = [one for one in outgoing if one][:OBJECTS_MAX]
    if not some:
        return GossipMessage(())
    first = turn % len(some)
    total = MESSAGE_BYTES_MAX - 16
    shares = sum(one.definition.share for one in some)
    parts: list[GossipPart] = []
    spare = 0
    for one in some[first:] + some[:first]:
        most = total * one.definition.share // shares + spare
        part, used = one.packed(most)
        spare = most - used
        parts.append(part)
    return GossipMessage(tuple(parts))
