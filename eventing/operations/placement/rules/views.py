"""Inputs of the planner: domains, RPs and readers as this domain knows them at one moment. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

import msgspec

DELAY_MS_MAX = 10_000.0  # bound: measured delay, milliseconds; a longer or negative one counts as not measured
SAME_ZONE_MS, OTHER_ZONE_MS = 30.0, 120.0
"""Delay assumed between a reader and a domain of the same zone, and of another zone, where none was measured (guess)."""


class PlacedDomain(msgspec.Struct, frozen=True, kw_only=True):
    """A domain that may hold replicas.

    Attributes:
        name: of the domain.
        zone: as its record states; empty: none.
        capacity: its capacity class, as stated.
        pressure: as it states, from 0 to 1; None: it states none.
        room: units of capacity that are free, within its capacity class.
        groups: shared risks: operator, sponsor, address prefix, zone, each with its kind ("zone:north").
        willing: whether it may be invited: its policy is not known to refuse, it is reachable, and not suspected.
        delay_ms: round-trip time from here, as measured lately; None: not measured.
    """

    name: str
    zone: str = ""
    capacity: int = 0
    pressure: float | None = None
    room: float = 0.0
    groups: tuple[str, ...] = ()
    willing: bool = True
    delay_ms: float | None = None


class ReaderGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Readers of an RP that are near each other.

    Attributes:
        zone: of these readers.
        share: of all readers, from 0 to 1.
        delays_ms: by domain, as measured.
    """

    zone: str = ""
    share: float = 0.0
    delays_ms: Mapping[str, float] = {}


class HeldReplica(msgspec.Struct, frozen=True, kw_only=True):
    """A replica of an RP at another domain.

    Attributes:
        domain: that holds it.
        counts: its vector has reached the home's at the invitation, and it answers.
        ours: the planner placed it, so that it may be retired.
        failing: it does not serve what it accepted.
        awaited: it counts, or is expected to soon: one that takes longer than others is no capacity to plan with.
        spread: share of its readers that have moved to it by now, from 0 to 1: they move for a while after it counts.
    """

    domain: str
    counts: bool = True
    ours: bool = False
    failing: bool = False
    awaited: bool = True
    spread: float = 1.0


class PlacedRp(msgspec.Struct, frozen=True, kw_only=True):
    """An own RP.

    Attributes:
        rp: its id.
        units: load of its readers at this domain, in units of capacity.
        replicas: at other domains; those that were invited and have not joined yet included, as not counting.
        readers: where the readers are; empty: not known.
        advised: domains at which the placement report recommends a replica, the greatest saving first.
        histories: independent histories that are wanted, the home's included.
        replicas_max: most replicas at other domains.
        pinned: domains whose replicas are never retired.
        excluded: domains that are never invited.
    """

    rp: str
    units: float = 0.0
    replicas: tuple[HeldReplica, ...] = ()
    readers: tuple[ReaderGroup, ...] = ()
    advised: tuple[str, ...] = ()
    histories: int = 1
    replicas_max: int = 16
    pinned: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


class PlacementObserved(msgspec.Struct, frozen=True, kw_only=True):
    """Input of the planner: the present state.

    Attributes:
        home: this domain.
        pressure: of this domain.
        units: load of all readers at this domain, in units.
        domains: others that may hold replicas, and those that do.
        rps: own RPs that may be planned for.
    """

    home: PlacedDomain
    pressure: float
    units: float
    domains: tuple[PlacedDomain, ...]
    rps: tuple[PlacedRp, ...]


def delay_known(delay_ms: float | None) -> float | None:
    """Return a measured delay; None for one that cannot be: a wrong clock must not attract readers."""
    if delay_ms is None or not isfinite(delay_ms) or not 0 <= delay_ms <= DELAY_MS_MAX:
        return None
    return delay_ms


def delay_to_readers(domain: PlacedDomain, readers: tuple[ReaderGroup, ...]) -> float:
    """Return the mean delay from the readers to a domain, milliseconds, measured or assumed."""
    total = weight = 0.0
    for group in readers:
        measured = delay_known(group.delays_ms.get(domain.name))
        near = group.zone == domain.zone and domain.zone != ""
        total += group.share * (measured if measured is not None else SAME_ZONE_MS if near else OTHER_ZONE_MS)
        weight += group.share
    return total / weight if weight else OTHER_ZONE_MS
