"""Application of a home's descriptor and admission to the replica's row; the caller verified both, locked the row, and
saves it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from eventing.conf import config
from eventing.core.events.ack_level import Ack
from eventing.core.events.history import HistoryBounds, tightest
from eventing.core.ids import members_changed
from eventing.log import control
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import DescriptorStatement
from eventing.rps.services.quotas import domain_bytes_free
from eventing.store.errors import RedisError

RENEW_FRACTION = 0.5  # of the lease: the other half is for homes that cannot be reached for a while
RETRY_FRACTION = 0.1  # of the lease, between two tries to renew
RETRY_S_MIN, RETRY_S_MAX = 2, 300
WARN_FRACTION = 0.2  # as core/leases.py
logger = logging.getLogger(__name__)


def bounds_here(history: Mapping[str, int | None], asked: Mapping[str, int | None]) -> HistoryBounds:
    """Return the history that a replica keeps here: the home's, within this domain's bounds for one RP and the
    requested bounds.
    """
    home = HistoryBounds(history["max_events"] or 1, history["max_bytes"] or 1, history["max_age_s"])
    limit = HistoryBounds(config().history_events_max, config().history_bytes_max)
    wish = HistoryBounds(
        asked.get("max_events") or home.max_events, asked.get("max_bytes") or home.max_bytes, asked.get("max_age_s")
    )
    return tightest(tightest(home, limit), wish)


def descriptor_apply(row: RendezvousPoint, descriptor: DescriptorStatement) -> list[str]:
    """Apply the home's descriptor; return the names of changed members (as rps/services/rendezvous_points.py
    CHANGEABLE).
    """
    before = _stated(row)
    row.version, row.genesis = descriptor.version, dict(descriptor.genesis)
    row.title, row.policy, row.ack = descriptor.title, list(descriptor.policy), _ack_here(descriptor.ack)
    if descriptor.name != row.name:
        # The home's later statement: another of its RPs that had the name here has lost it.
        RendezvousPoint.objects.filter(name=descriptor.name, home=descriptor.home).exclude(id=row.id).update(name=None)
        taken = descriptor.name is not None and RendezvousPoint.objects.filter(name=descriptor.name).exists()
        row.name = None if taken else descriptor.name
    bounds = bounds_here(descriptor.history, row.history_asked)
    if row.created_at is not None and row.descriptor is not None and bounds.max_bytes > row.max_bytes:
        bounds = _within_room(row, bounds)
    row.bounds_set(bounds)
    return members_changed(before, _stated(row))


def _stated(row: RendezvousPoint) -> dict[str, Any]:
    """Return the content of a descriptor of the RP, as JSON."""
    return {
        "name": row.name,
        "title": row.title,
        "history": asdict(row.bounds),
        "policy": row.policy,
        "ack": row.ack,
    }


def lease_apply(row: RendezvousPoint, expires_at: datetime, now: datetime) -> None:
    """Apply the end of the admission as the replica's lease, and set the time of its renewal."""
    left_s = max((expires_at - now).total_seconds(), 1.0)
    row.granted_s = max(round(left_s), 1)  # the granted lease, less the transmission time
    row.expires_at = expires_at
    row.warn_at, row.warned_at = expires_at - timedelta(seconds=left_s * WARN_FRACTION), None
    row.renew_at = now + timedelta(seconds=left_s * RENEW_FRACTION)


def renewal_failed(row: RendezvousPoint, now: datetime) -> None:
    """Set the time of the next attempt to renew the lease."""
    again_s = min(max(row.granted_s * RETRY_FRACTION, RETRY_S_MIN), RETRY_S_MAX)
    row.renew_at = now + timedelta(seconds=again_s)


def _within_room(row: RendezvousPoint, bounds: HistoryBounds) -> HistoryBounds:
    free = domain_bytes_free() + row.max_bytes
    if bounds.max_bytes <= free:
        return bounds
    logger.warning(
        "The home of %s keeps more history than there is room for here; the replica stays at %d bytes.",
        row.id,
        row.max_bytes,
    )
    return HistoryBounds(bounds.max_events, row.max_bytes, bounds.max_age_s)


def _ack_here(text: str) -> str:
    """Return the home's acknowledgement level, or `stored` if the Redis here has not enough replicas for it."""
    ack = Ack.parse(text)
    needed = max(1, config().redis_replicas) if ack.all else ack.replicas
    if not needed:
        return text
    try:
        return text if control.replicas_connected() >= needed else "stored"
    except RedisError:
        return "stored"
