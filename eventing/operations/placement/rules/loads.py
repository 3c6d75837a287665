"""Load and capacity of domains as plain numbers. Pure.

Capacity is counted in units: 1 is what a domain of capacity class 1 can do (overlay/load_rows.py: CAPACITY). Pressure is load
as a share of capacity: 1 is full.
"""

from __future__ import annotations

from math import isfinite

from eventing.overlay.load_rows import CAPACITY, DomainLoad, clamped

CLASS_MAX = len(CAPACITY) - 1
_UNIT = CAPACITY[1]
_COMPARED = ("sessions", "events_out_per_s", "bytes_per_s")
"""Fields that readers cause. Events that a domain accepts and its backlog do not move with a replica."""
PRESSURE_MAX = 10.0  # bound: pressure of a domain; a higher measurement counts as this
LAG_MS_FULL = 1000.0
"""Delay of an event loop at which a domain counts as full (guess: readers notice a second)."""


def capacity_class(stated: int) -> int:
    """Return a capacity class within its range, whatever a domain states."""
    return min(max(stated, 0), CLASS_MAX)


def capacity_units(stated: int) -> float:
    """Return the capacity of a class, in units."""
    most = CAPACITY[capacity_class(stated)]
    return min(float(getattr(most, field) / getattr(_UNIT, field)) for field in _COMPARED)


def load_units(load: DomainLoad) -> float:
    """Return the load that readers cause, in units: the field that needs most counts."""
    return max(float(getattr(load, field) / getattr(_UNIT, field)) for field in _COMPARED)


def claimed_units(load: DomainLoad, stated: int) -> float:
    """Return the load that another domain states, no more than its capacity class can have."""
    return min(load_units(clamped(load, capacity_class(stated))), capacity_units(stated))


def claimed_pressure(load: DomainLoad, stated: int) -> float:
    """Return the pressure that another domain states, from 0 to 1."""
    busy = clamped(load, capacity_class(stated)).busy_permille / 1000
    return min(1.0, max(busy, claimed_units(load, stated) / capacity_units(stated)))


def own_pressure(load: DomainLoad, stated: int, *, memory: float = 0.0, lag_ms: float = 0.0) -> float:
    """Return the pressure of this domain, from its own measurements.

    Args:
        memory: share of the memory for histories that is in use.
        lag_ms: delay of the latest event loop, milliseconds.
    """
    shares = (
        load.busy_permille / 1000,
        load_units(load) / capacity_units(stated),
        load.events_in_per_s / CAPACITY[capacity_class(stated)].events_in_per_s,
        memory,
        lag_ms / LAG_MS_FULL,
    )
    return min(PRESSURE_MAX, max(0.0, *(one for one in shares if isfinite(one))))
