"""Sizes of messages in MessagePack, with names in place of a simulation's numbers.

A simulation sends Python objects; their size is what the live domains' encoding of the same message has. Each class is encoded once, with
none and with one of each of its entries, and the rest is a sum. What is not known
here is encoded each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from eventing.overlay import directory, directory_messages, links, liveness, passive_view
from eventing.overlay.directory_records import DomainRecord, Sponsorship
from eventing.overlay.gossip_messages import GossipMessage
from eventing.overlay.suspicion import MonitorPing, MonitorPong

NAME = "a" * 12 + ".example"
"""A domain's name of 20 bytes."""
VERSION = 1_790_000_000
FINGERPRINT = 1 << 63
RANGE = 4000
_RECORD = DomainRecord(
    NAME,
    VERSION,
    1.79e9,
    1.79e9,
    key="k" * 43,
    url="https://" + NAME + ":8443",
    zone="eu-central",
    operator="o" * 16,
    sponsorship=Sponsorship(NAME, NAME, 20_700, 5),
    signature=bytes(128),
)
_encode = msgspec.msgpack.Encoder().encode
Size = Callable[[Any], int]


def encoded(message: Any) -> int:
    """Bytes of one message."""
    return len(_encode(message))


NAME_BYTES = encoded(NAME)
ENTRY_BYTES = encoded((NAME, VERSION, FINGERPRINT))
RECORD_BYTES = encoded(_RECORD)
RANGE_BYTES = encoded(RANGE)
FINGERPRINT_BYTES = encoded((RANGE, FINGERPRINT))
_LONG = 2  # of the header of a list with 16 entries and more


def _constant(message: Any) -> Size:
    size = encoded(message)
    return lambda _: size


def _listed(empty: Any, field: str, entry_bytes: int) -> Size:
    base = encoded(empty) + _LONG
    return lambda message: base + entry_bytes * len(getattr(message, field))


_ALIVE = encoded(liveness.Alive())
_RANGES = encoded(directory_messages.RangeEntries((), ())) + 2 * _LONG

_SHORT_IDS = NAME_BYTES - 3
"""Bytes of a name beyond those of a simulation's number of up to 65,535."""


def _gossip_size(message: GossipMessage) -> int:
    """As encoded, with a name for each owner."""
    names = 0
    for part in message.parts:
        names += len(part.offers) + len(part.wants) + len(part.rows) + len(part.changes)
    return encoded(message) + _SHORT_IDS * names


SIZES: Final[Mapping[type, Size]] = {
    directory_messages.News: _listed(directory_messages.News(()), "versions", ENTRY_BYTES),
    directory_messages.Records: _listed(directory_messages.Records(()), "records", RECORD_BYTES),
    directory_messages.Want: _listed(directory_messages.Want(()), "domains", NAME_BYTES),
    directory_messages.Compare: _listed(directory_messages.Compare(()), "ranges", FINGERPRINT_BYTES),
    directory_messages.RangeEntries: lambda message: (
        _RANGES + RANGE_BYTES * len(message.ranges) + ENTRY_BYTES * len(message.versions)
    ),
    directory_messages.Equivocation: _constant(directory_messages.Equivocation(_RECORD, _RECORD)),
    links.Neighbor: _constant(links.Neighbor()),
    links.NeighborReply: _listed(links.NeighborReply(True), "others", NAME_BYTES),
    links.Disconnect: _listed(links.Disconnect(links.Reason.EVICTED), "others", NAME_BYTES),
    liveness.Beat: _constant(liveness.Beat()),
    liveness.Probe: _constant(liveness.Probe(NAME)),
    liveness.Alive: lambda message: _ALIVE + NAME_BYTES * ((message.of is not None) + (message.on_behalf is not None)),
    liveness.ProbeFor: _constant(liveness.ProbeFor(NAME)),
    passive_view.JoinWalk: _constant(passive_view.JoinWalk()),
    passive_view.ForwardJoin: _constant(passive_view.ForwardJoin(NAME, 6)),
    passive_view.Shuffle: _listed(passive_view.Shuffle(NAME, (), 6), "members", NAME_BYTES),
    passive_view.ShuffleReply: _listed(passive_view.ShuffleReply(()), "members", NAME_BYTES),
    GossipMessage: _gossip_size,
    MonitorPing: _constant(MonitorPing()),
    MonitorPong: _constant(MonitorPong()),
}
DIRECTORY = directory.MESSAGES


def size_of(message: Any) -> int:
    """Bytes of one message."""
    size = SIZES.get(type(message))
    return size(message) if size is not None else encoded(message)
