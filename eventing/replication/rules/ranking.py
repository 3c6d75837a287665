"""Ranking of the domains that serve an RP, for one reader: by room under a bounded load, with the nearest among them.

A domain's fair share of all readers is by its capacity. No domain is named that has more than LOAD_FACTOR times its fair share
(consistent hashing with bounded loads, Mirrokni, Thorup and Zadimoghaddam 2018). The order is drawn by the reader's key, with the
domains' room as weights (weighted rendezvous hashing): readers spread over the domains as these have room, and the same reader is given
the same order by every gateway. Delay is known here only from this domain, so the client measures and decides (docs/federation/moving.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import log
from typing import NamedTuple

ALTERNATIVES_MAX = 16  # bound: domains named to one reader; the others are left out
NEAREST_MAX = 8  # bound: of these, domains named because they are near this one; the others are drawn
LOAD_FACTOR = 1.25
"""A domain with more than this times its fair share of readers is not recommended, and moves readers away."""
ROOM_FACTOR = 1.1
"""A domain is recommended up to this times its fair share: the distance to LOAD_FACTOR is the hysteresis, or else a domain would
attract the readers that it moves away."""
WEIGHT_MAX = 1000
"""Weight of the domain with the most room."""
_HASH_RANGE = 2**64


class ReplicaServer(NamedTuple):
    """A domain that serves an RP, as this domain knows it.

    Attributes:
        capacity: readers that a domain of its class may have.
        sessions: connected readers; None if unknown, which counts as its fair share.
        delay_ms: round-trip time from this domain; None if unknown.
        suspected: it does not answer its monitors.
        fresh: `sessions` is a few seconds old; else as stated in the overlay, up to minutes old.
    """

    domain: str
    url: str
    capacity: int
    sessions: int | None = None
    delay_ms: float | None = None
    suspected: bool = False
    fresh: bool = False


class Alternative(NamedTuple):
    """A domain where a reader may continue, and its room, from 1 to WEIGHT_MAX for the domain with the most."""

    url: str
    weight: int


def fair_shares(servers: Sequence[ReplicaServer], growth: float = 0.0) -> list[float]:
    """Return the fair share of each domain, in readers: the known readers of all by capacity.

    Args:
        growth: readers that are expected soon, in addition.
    """
    known = [one for one in servers if one.sessions is not None]
    capacity = sum(one.capacity for one in known)
    readers = growth + sum(one.sessions or 0 for one in known)
    return [readers * one.capacity / capacity if capacity else 0.0 for one in servers]


def rooms(servers: Sequence[ReplicaServer], growth: float = 0.0) -> list[float]:
    """Return how many more readers each domain may have, 0 for one that is full or suspected; by capacity where nothing is known."""
    found = []
    for one, fair in zip(servers, fair_shares(servers, growth), strict=True):
        most = min(ROOM_FACTOR * max(fair, 1.0), float(one.capacity))
        room = most - (fair if one.sessions is None else one.sessions)
        found.append(0.0 if one.suspected else max(0.0, room))
    return found


def excess(servers: Sequence[ReplicaServer], own: str, growth: float = 0.0) -> float:
    """Return how many readers the domain `own` has beyond its fair share; 0 up to LOAD_FACTOR times that."""
    for one, fair in zip(servers, fair_shares(servers, growth), strict=True):
        if one.domain == own and one.sessions is not None and one.sessions > LOAD_FACTOR * fair:
            return one.sessions - fair
    return 0.0


def ranked(servers: Sequence[ReplicaServer], own: str, reader: str) -> list[Alternative]:
    """Return the domains where a reader of the domain `own` may continue, in the order drawn for it, at most ALTERNATIVES_MAX.

    Args:
        servers: all domains that serve the RP, `own` included.
        reader: the reader's key; equal keys give equal orders.
    """
    open_ones = [
        (one, room)
        for one, room in zip(servers, rooms(servers), strict=True)
        if room > 0.0 and one.domain != own and one.url
    ]
    drawn = sorted(open_ones, key=lambda each: _place(reader, each[0].domain, each[1]))
    near = [one for one, _ in sorted(open_ones, key=lambda each: _nearness(each[0])) if one.delay_ms is not None]
    chosen = dict.fromkeys(one.domain for one in near[:NEAREST_MAX])
    for one, _ in drawn:
        if len(chosen) < ALTERNATIVES_MAX:
            chosen[one.domain] = None
    most = max((room for _, room in drawn), default=1.0)
    return [
        Alternative(one.url, max(1, round(WEIGHT_MAX * room / most))) for one, room in drawn if one.domain in chosen
    ]


def drawn_by_room(weights: Sequence[tuple[str, int]], reader: str, most: int) -> list[str]:
    """Return up to `most` of the names in the order drawn for a reader, each name with its weight, above 0."""
    drawn = sorted((_place(reader, name, weight), name) for name, weight in weights if weight > 0)
    return [name for _, name in drawn[:most]]


def hash_share(*parts: str) -> float:
    """Return a number in [0, 1) that these texts determine."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return int.from_bytes(digest[:8], "big") / _HASH_RANGE


def _place(reader: str, domain: str, weight: float) -> tuple[float, str]:
    return -log(1.0 - hash_share("rank", reader, domain)) / weight, domain


def _nearness(server: ReplicaServer) -> tuple[float, str]:
    return (float("inf") if server.delay_ms is None else server.delay_ms), server.domain
