"""This domain's own load as its gateways sampled it last: pressure, and the part of each RP."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from django.utils import timezone

from eventing.conf import config
from eventing.core.decoding import Undecodable, json_reader
from eventing.operations.placement.rules.loads import load_units, own_pressure
from eventing.operations.selectors.own_load import load_of, own_load
from eventing.overlay.load_rows import DomainLoad
from eventing.store.load import gateway_loads
from eventing.store.presence import gateways_alive


class OwnHotRp(msgspec.Struct):
    """An RP in a gateway's sample (operations/samples/flow_samples.py: hot)."""

    rp: str
    events_in: int = 0
    deliveries: int = 0
    readings: int = 0


class HotSample(msgspec.Struct):
    """The members of a gateway's sample that show the sources of its load."""

    interval_s: float
    lag_ms: float = 0.0
    hot: list[OwnHotRp] = []


class OwnState(NamedTuple):
    """The load of this domain.

    Attributes:
        pressure: as a share of its capacity.
        units: load of all readers, in units of capacity.
        rps: of each RP with much of it, in units.
        events_in_per_s: events accepted, of the same RPs.
    """

    load: DomainLoad
    pressure: float
    units: float
    rps: dict[str, float]
    events_in_per_s: dict[str, float]


_read = json_reader(HotSample)


def own_state() -> OwnState:
    """Return the load of this domain. Raises redis.RedisError, DatabaseError."""
    rows = gateway_loads(gateways_alive(timezone.now())).values()
    load, lag_ms = load_of(rows), 0.0
    deliveries: dict[str, float] = {}
    accepted: dict[str, float] = {}
    readings: dict[str, int] = {}
    for row in rows:
        try:
            sample = _read(row)
        except Undecodable:
            continue
        lag_ms = max(lag_ms, sample.lag_ms)
        for one in sample.hot if sample.interval_s > 0 else ():
            deliveries[one.rp] = deliveries.get(one.rp, 0.0) + one.deliveries / sample.interval_s
            accepted[one.rp] = accepted.get(one.rp, 0.0) + one.events_in / sample.interval_s
            readings[one.rp] = readings.get(one.rp, 0) + one.readings
    pressure = own_pressure(load, config().capacity, lag_ms=lag_ms)
    rps = {
        rp: load_units(DomainLoad(sessions=readings[rp], events_out_per_s=round(deliveries[rp])))
        for rp in sorted(deliveries)
    }
    return OwnState(load, pressure, max(load_units(load), sum(rps.values())), rps, accepted)


def pressure_now() -> float | None:
    """Return the pressure of this domain by its load; None if no gateway samples. A delay of an event loop does not count: it may be
    that of a moment, and a person may wait for the answer.
    """
    return own_pressure(own_load(), config().capacity) if gateways_alive(timezone.now()) else None
