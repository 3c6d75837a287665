"""Candidates for a replica: by where readers are and by capacity, the best of them confirmed by a measured delay. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from eventing.operations.placement.rules.loads import capacity_units
from eventing.operations.placement.rules.views import PlacedDomain, PlacedRp, delay_known, delay_to_readers

CONFIRMED_MAX = 8  # bound: candidates whose delay is measured for one step; the others wait for the next
FULL = 0.8
"""Stated pressure from which a domain is no candidate."""
ROOM_SHARE_MIN = 0.1
"""Least free share of its capacity that a candidate has."""
BACK_OFF_S = 600.0
"""Seconds for which a domain that refused or failed is not asked again; doubled each time."""
BACK_OFF_S_MAX = 86_400.0  # bound: seconds for which a refusing domain is not asked again, however often it refused
BACK_OFFS_MAX = 512  # bound: domains whose refusals are remembered; those that end first are forgotten


class BackOff(msgspec.Struct, frozen=True, array_like=True):
    """A domain that refused or failed: when it may be asked again, and how often it did in a row."""

    until: float
    failures: int


def backed_off(before: BackOff | None, now: float) -> BackOff:
    """Return the back-off after a further refusal or failure."""
    failures = 1 if before is None else before.failures + 1
    return BackOff(now + _pause_s(failures), failures)


def not_later(off: BackOff, now: float) -> BackOff:
    """Return a back-off that ends no later than one that begins now: the clock may have been set back since it began."""
    return BackOff(min(off.until, now + _pause_s(off.failures)), off.failures)


def _pause_s(failures: int) -> float:
    return min(BACK_OFF_S_MAX, BACK_OFF_S * 2.0 ** min(failures - 1, 16))


def candidates(
    rp: PlacedRp, domains: tuple[PlacedDomain, ...], back_offs: Mapping[str, BackOff], now: float
) -> list[PlacedDomain]:
    """Return domains that may get a replica, the best first: advised by the report, near the readers, with most room."""
    held = {one.domain for one in rp.replicas}
    found = [
        one
        for one in domains
        if one.willing
        and one.name not in held
        and one.name not in rp.excluded
        and (one.pressure is None or one.pressure < FULL)
        and one.room >= ROOM_SHARE_MIN * capacity_units(one.capacity)
        and (one.name not in back_offs or back_offs[one.name].until <= now)
    ]
    advised = {name: at for at, name in enumerate(rp.advised)}
    return sorted(
        found,
        key=lambda one: (
            advised.get(one.name, len(advised)),
            round(delay_to_readers(one, rp.readers), -1),
            -one.room,
            _order(rp.rp, one.name),
        ),
    )


def unconfirmed(ranked: list[PlacedDomain]) -> list[str]:
    """Return those of the best candidates whose delay is not measured yet."""
    return [one.name for one in ranked[:CONFIRMED_MAX] if delay_known(one.delay_ms) is None]


def confirmed(ranked: list[PlacedDomain]) -> list[PlacedDomain]:
    """Return those of the best candidates whose delay is measured: they answer."""
    return [one for one in ranked[:CONFIRMED_MAX] if delay_known(one.delay_ms) is not None]


def _order(rp: str, domain: str) -> bytes:
    """An order of equal candidates that differs between RPs, so that not all homes invite the same domain."""
    return sha256(f"{rp} {domain}".encode()).digest()
