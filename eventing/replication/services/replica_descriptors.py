"""Putting a home's descriptor and admission into the row of our replica; the caller verified both, holds the row, and saves it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from redis.exceptions import RedisError

from eventing.conf import config
from eventing.core.events.ack_level import Ack
from eventing.core.events.history import HistoryBounds, tightest
from eventing.core.ids import members_changed
from eventing.log import control
from eventing.rps.models import RendezvousPoint
from eventing.rps.rules.statements import Descriptor
from eventing.rps.services.quotas import domain_bytes_free

RENEW_FRACTION = 0.5  # of the lease: the other half is for homes that cannot be reached for a while
RETRY_FRACTION = 0.1  # of the lease, between two tries to renew
RETRY_S_MIN, RETRY_S_MAX = 2, 300
WARN_FRACTION = 0.2  # as core/leases.py
logger = logging.getLogger(__name__)


def bounds_here(history: Mapping[str, int | None], asked: Mapping[str, int | None]) -> HistoryBounds:
    """The history that a replica keeps here: the home's, within what one RP may take here and what was asked for."""
    home = HistoryBounds(history["max_events"] or 1, history["max_bytes"] or 1, history["max_age_s"])
    limit = HistoryBounds(config().history_events_max, config().history_bytes_max)
    wish = HistoryBounds(
        asked.get("max_events") or home.max_events, asked.get("max_bytes") or home.max_bytes, asked.get("max_age_s")
    )
    return tightest(tightest(home, limit), wish)


def descriptor_apply(row: RendezvousPoint, descriptor: Descriptor) -> list[str]:
    """Take over what the home says; the names of what differs now (as rps/services/rendezvous_points.py CHANGEABLE).

    More history than this domain has room for is not taken: the replica keeps the bytes that it has reserved.
    """
    before = _stated(row)
    row.version, row.genesis = descriptor.version, dict(descriptor.genesis)
    row.title, row.policy, row.ack = descriptor.title, list(descriptor.policy), _ack_here(descriptor.ack)
    if descriptor.name != row.name:
        # The home's later word: another RP of it that had the name until now, as far as we know, has lost it.
        RendezvousPoint.objects.filter(name=descriptor.name, home=descriptor.home).exclude(id=row.id).update(name=None)
        taken = descriptor.name is not None and RendezvousPoint.objects.filter(name=descriptor.name).exists()
        row.name = None if taken else descriptor.name
    bounds = bounds_here(descriptor.history, row.history_asked)
    if row.created_at is not None and row.descriptor is not None and bounds.max_bytes > row.max_bytes:
        bounds = _within_room(row, bounds)
    row.bounds_set(bounds)
    return members_changed(before, _stated(row))


def _stated(row: RendezvousPoint) -> dict[str, Any]:
    """What a descriptor states of the RP, as JSON."""
    return {
        "name": row.name,
        "title": row.title,
        "history": asdict(row.bounds),
        "policy": row.policy,
        "ack": row.ack,
    }


def lease_apply(row: RendezvousPoint, expires_at: datetime, now: datetime) -> None:
    """Take over the end of our admission as the replica's lease, and when to renew it."""
    left_s = max((expires_at - now).total_seconds(), 1.0)
    row.granted_s = max(round(left_s), 1)  # what the home granted, less the way
    row.expires_at = expires_at
    row.warn_at, row.warned_at = expires_at - timedelta(seconds=left_s * WARN_FRACTION), None
    row.renew_at = now + timedelta(seconds=left_s * RENEW_FRACTION)


def renewal_failed(row: RendezvousPoint, now: datetime) -> None:
    """Note when to try again to renew the lease."""
    again_s = min(max(row.granted_s * RETRY_FRACTION, RETRY_S_MIN), RETRY_S_MAX)
    row.renew_at = now + timedelta(seconds=again_s)


def _within_room(row: RendezvousPoint, bounds: HistoryBounds) -> HistoryBounds:
    free = domain_bytes_free() + row.max_bytes
    if bounds.max_bytes <= free:
        return bounds
    logger.warning(
        "The home of %s keeps more history than there is room for here; it stays at %d bytes.", row.id, row.max_bytes
    )
    return HistoryBounds(bounds.max_events, row.max_bytes, bounds.max_age_s)


def _ack_here(text: str) -> str:
    """The home's acknowledgement level, or `stored` where our Redis has not the replicas for it: this domain promises
    what it can keep."""
    ack = Ack.parse(text)
    if not ack.replicas:
        return text
    try:
        return text if control.replicas_connected() >= ack.replicas else "stored"
    except RedisError:
        return "stored"
