"""The domain's own load as its gateways sampled it last, for the rows that it states to others."""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec
from django.db.models import Sum
from django.utils import timezone

from eventing.core.decoding import Undecodable, json_reader
from eventing.overlay.load_rows import DomainLoad
from eventing.peering.models import Acquaintance, PeerDelivery
from eventing.sql.remembered import remembered
from eventing.store.load import gateway_loads
from eventing.store.presence import gateways_alive


class GatewaySample(msgspec.Struct):
    """The members of a gateway's sample that its load is computed of (operations/samples/sampling.py)."""

    interval_s: float
    sessions: int = 0
    events_in: int = 0
    deliveries: int = 0
    bytes_out: int = 0
    cpu_s: float = 0.0


_read = json_reader(GatewaySample)


def own_load() -> DomainLoad:
    """Return the load of all gateways together, and the backlog of forwarding; see membership/ports.py."""
    return load_of(gateway_loads(gateways_alive(timezone.now())).values())


def load_of(rows: Iterable[bytes]) -> DomainLoad:
    """Return the load as `own_load` does, of these samples of gateways."""
    samples = list(_samples(rows))
    busy = sum(one.cpu_s / one.interval_s for one in samples) / (os.cpu_count() or 1)
    return DomainLoad(
        sessions=sum(one.sessions for one in samples),
        events_out_per_s=round(sum(one.deliveries / one.interval_s for one in samples)),
        bytes_per_s=round(sum(one.bytes_out / one.interval_s for one in samples)),
        busy_permille=min(1000, round(1000 * busy)),
        events_in_per_s=round(sum(one.events_in / one.interval_s for one in samples)),
        backlog=_backlog(),
    )


def _samples(rows: Iterable[bytes]) -> Iterable[GatewaySample]:
    for row in rows:
        try:
            sample = _read(row)
        except Undecodable:
            continue
        if sample.interval_s > 0:
            yield sample


@remembered
def _backlog() -> int:
    rows = (PeerDelivery, Acquaintance)
    return sum(one.objects.aggregate(events=Sum("backlog"))["events"] or 0 for one in rows)
