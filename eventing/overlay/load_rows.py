"""The three gossip objects of load: rows of a zone, a sample of all zones, and totals by zone.

Numbers are whole and bounded when decoded, so no row holds NaN, infinity or a negative number. What a domain claims is clamped to what
its capacity class can be (`clamped`), by every reader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from eventing.core.decoding import Undecodable, msgpack_reader
from eventing.overlay.gossip_object import GossipObject, GossipScope
from eventing.overlay.machine import Id
from eventing.overlay.zone_index import REPORTERS, REPORTERS_SLACK, SAMPLE, SAMPLE_SLACK, ZONES_MAX, ZoneIndex

AMOUNT_MAX = 2**50  # bound: any number of a load row; the row is refused
ZONE_CHARS_MAX = 64  # bound: characters of a zone in a row; the row is refused
_Amount = Annotated[int, msgspec.Meta(ge=0, le=AMOUNT_MAX)]
_Zone = Annotated[str, msgspec.Meta(max_length=ZONE_CHARS_MAX)]


class DomainLoad(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The load of a domain.

    Attributes:
        sessions: connected readers.
        events_out_per_s: events delivered.
        bytes_per_s: bytes of events delivered.
        busy_permille: of its processors, 0 to 1000.
        events_in_per_s: events accepted.
        backlog: events that wait to be forwarded to other domains.
        links: links of the overlay.
    """

    sessions: _Amount = 0
    events_out_per_s: _Amount = 0
    bytes_per_s: _Amount = 0
    busy_permille: _Amount = 0
    events_in_per_s: _Amount = 0
    backlog: _Amount = 0
    links: _Amount = 0


FIELDS = DomainLoad.__struct_fields__
CAPACITY = (
    DomainLoad(1_000, 1_000, 10_000_000, 1_000, 100, 1_000_000, 64),
    DomainLoad(10_000, 20_000, 100_000_000, 1_000, 2_000, 10_000_000, 128),
    DomainLoad(100_000, 200_000, 1_000_000_000, 1_000, 20_000, 100_000_000, 256),
    DomainLoad(1_000_000, 2_000_000, 10_000_000_000, 1_000, 200_000, 1_000_000_000, 512),
)
"""The most that a domain of each capacity class can do (guess, after measurements of one machine of class 1)."""


class ZoneTotals(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The totals of a zone, as one of its reporters found them.

    Attributes:
        domains: rows counted.
        oldest_s: age of the oldest of them.
        sums, maxima: over these rows, clamped.
    """

    zone: _Zone
    domains: _Amount
    oldest_s: _Amount
    sums: DomainLoad
    maxima: DomainLoad


_read_load = msgpack_reader(DomainLoad)
_read_totals = msgpack_reader(ZoneTotals)
payload_of = msgspec.msgpack.Encoder().encode


def load_of(payload: bytes) -> DomainLoad | None:
    """Decode a load; None if it is none."""
    try:
        return _read_load(payload)
    except Undecodable:
        return None


def totals_of(payload: bytes) -> ZoneTotals | None:
    """Decode totals; None if they are none."""
    try:
        return _read_totals(payload)
    except Undecodable:
        return None


def clamped(load: DomainLoad, capacity: int) -> DomainLoad:
    """Bound a claim to what the capacity class can be."""
    most = CAPACITY[capacity]
    return DomainLoad(*(min(getattr(load, field), getattr(most, field)) for field in FIELDS))


Index = Callable[[float], ZoneIndex]


class _LoadObject(GossipObject):
    payload_bytes_max = 64
    refresh_s = 300.0
    change_s = 60.0

    def __init__(self, index: Index | None = None) -> None:
        """Make the object.

        Args:
            index: zones at a time; None: every domain may contribute.
        """
        self._index = index

    def valid(self, owner: Id, payload: bytes) -> bool:
        """Return True if a payload is a load."""
        return load_of(payload) is not None


class ZoneLoad(_LoadObject):
    """Load of each domain of the own zone."""

    name = "load"
    scope = GossipScope.ZONE
    bytes_per_s = 150.0


class LoadSample(_LoadObject):
    """Load of the domains of each zone that its order puts first: signed minima, for a look at zones that others sum up."""

    name = "load-sample"
    rows_max = ZONES_MAX * (SAMPLE + SAMPLE_SLACK)
    bytes_per_s = 100.0

    def may_contribute(self, owner: Id, now: float) -> bool:
        """Return True for domains of the sample."""
        return self._index is None or self._index(now).may_be_in_sample(owner)


class LoadTotals(_LoadObject):
    """Totals of each zone, by its reporters."""

    name = "load-totals"
    share = 2
    payload_bytes_max = 224
    rows_max = ZONES_MAX * (REPORTERS + REPORTERS_SLACK)
    bytes_per_s = 100.0

    def may_contribute(self, owner: Id, now: float) -> bool:
        """Return True for reporters."""
        return self._index is None or self._index(now).may_report(owner)

    def valid(self, owner: Id, payload: bytes) -> bool:
        """Return True if a payload is totals."""
        return totals_of(payload) is not None
