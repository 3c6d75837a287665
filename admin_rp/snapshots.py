"""Snapshots: the states of the domain and of an RP as they are now, valid at a place of their administrative log.

The place is read first: what changes meanwhile is told after it, and does no harm when it is in the state already
(admin_rp/state.py). Rows come from SQL, logs, lags and load from Redis. Every list is bounded as the catalogue's effects
bound it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone

from admin_rp.catalogue import EMPTY
from admin_rp.parts import parts
from eventing.conf import config
from eventing.core.ids import DOMAIN_ADMIN, admin_id
from eventing.core.timestamps import timestamp
from eventing.log import control
from eventing.operations.samples import progress
from eventing.operations.samples.peer_traffic import traffic_kept
from eventing.operations.samples.presence import gateways_alive
from eventing.operations.samples.sampling import counts
from eventing.outbox import administrative_events as events
from eventing.outbox.administrative_events import admin_history
from eventing.outbox.kind import DOMAIN, RP
from eventing.outbox.shapes import NO_PROGRESS
from eventing.peering.events.shapes import NO_DELIVERY, NO_TRAFFIC
from eventing.peering.events.trust import MISBEHAVIOUR_MAX
from eventing.peering.models import Misbehaviour
from eventing.peering.selectors.event_data import misbehaviour_data, peer_data
from eventing.peering.selectors.peers import peers_all
from eventing.peering.selectors.quarantines import quarantines_list
from eventing.peering.services.deliveries import deliveries_shown
from eventing.replication.selectors.replicas import admissions_of
from eventing.rps.events import RECENT_RPS
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.event_data import rp_data
from eventing.store import keys
from eventing.subscriptions.events import NO_LAG
from eventing.subscriptions.models import Subscription
from eventing.subscriptions.selectors.event_data import subscription_data

SUBSCRIPTIONS_MAX = 10_000
"""Of an RP's state (HERALD_SUBSCRIPTIONS_PER_RP_MAX is no more by default)."""

Snapshot = dict[str, Any]
"""`cursor` and `state`."""


def domain_snapshot(*, now: datetime | None = None) -> Snapshot:
    """The domain. Raises redis.RedisError."""
    now = now or timezone.now()
    cursor = cursor_of(DOMAIN_ADMIN)
    state = {
        **EMPTY[DOMAIN],
        "domain": {"name": config().domain, "version": settings.SPECTACULAR_SETTINGS["VERSION"]},
        "counts": counts(),
        "redis": _redis(),
        "gateways": _gateways(now),
        "peers": _peers(),
        "quarantines": _quarantines(),
        "misbehaviour": _misbehaviour(),
        "recent_rps": _recent_rps(),
        **{name: part(None) for name, part in parts(DOMAIN).items()},
    }
    return {"cursor": cursor, "state": state}


def rp_snapshot(rp: str, *, now: datetime | None = None) -> Snapshot:
    """The RP with id `rp`; empty if there is none. Raises redis.RedisError."""
    now = now or timezone.now()
    cursor = cursor_of(admin_id(rp))
    row = RendezvousPoint.objects.filter(id=rp).first()
    if row is None:
        return {"cursor": cursor, "state": dict(EMPTY[RP])}
    at = timestamp(now)
    log = control.log_state(rp)
    state = {
        **EMPTY[RP],
        "rp": rp_data(row),
        "subscriptions": _subscriptions(rp, at),
        "load": _load(rp, now),
        "history": None if log is None else {**events.log_data(log), "at": at},
        "replicas": _replicas(row, at, now),
        **{name: part(rp) for name, part in parts(RP).items()},
    }
    return {"cursor": cursor, "state": state}


def cursor_of(rp: str) -> str:
    """The end of an administrative log, which is made if it is missing."""
    log = control.log_state(rp) or control.ensure_log(rp, admin_history(rp))
    return f"{log.epoch}:{log.next - 1}"


# The domain's parts


def _redis() -> dict[str, int]:
    found: Any = control.client().info()
    return {"used_bytes": int(found["used_memory"]), "ops_s": int(found["instantaneous_ops_per_sec"])}


def _gateways(now: datetime) -> dict[str, Any]:
    alive = gateways_alive(now)
    rows: Any = control.client().mget([keys.gateway_load_key(one) for one in alive]) if alive else []
    return {gateway: json.loads(row) for gateway, row in zip(alive, rows, strict=True) if row is not None}


def _peers() -> dict[str, Any]:
    shown, traffic = deliveries_shown(), traffic_kept()
    return {
        peer.name: {
            **peer_data(peer),
            "delivery": shown.get(peer.name, dict(NO_DELIVERY)),
            "traffic": traffic.get(peer.name, dict(NO_TRAFFIC)),
        }
        for peer in peers_all()
    }


def _quarantines() -> dict[str, Any]:
    return {
        row.origin: {"origin": row.origin, "why": row.why, "since": timestamp(row.since)} for row in quarantines_list()
    }


def _misbehaviour() -> dict[str, Any]:
    rows = Misbehaviour.objects.order_by("-last_at", "-id")[:MISBEHAVIOUR_MAX]
    return {f"{row.kind} {row.carrier} {row.origin}": misbehaviour_data(row) for row in rows}


def _recent_rps() -> dict[str, Any]:
    rows = RendezvousPoint.objects.order_by("-created_at", "-id")[:RECENT_RPS]
    return {row.id: _without_lease(rp_data(row)) for row in rows}


def _without_lease(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "lease"}


# An RP's parts


def _subscriptions(rp: str, at: str) -> dict[str, Any]:
    rows = Subscription.objects.filter(at=rp).order_by("id")[:SUBSCRIPTIONS_MAX]
    found = progress.lags([rp]).get(rp, {})
    return {
        row.id: {
            **subscription_data(row),
            "lag": {**found[row.id], "at": at} if row.id in found else dict(NO_LAG),
        }
        for row in rows
    }


def _load(rp: str, now: datetime) -> dict[str, Any]:
    kept: Any = control.client().hgetall(keys.rp_load_key(rp))
    alive = set(gateways_alive(now))
    return {gateway.decode(): json.loads(row) for gateway, row in kept.items() if gateway.decode() in alive}


def _replicas(row: RendezvousPoint, at: str, now: datetime) -> dict[str, Any]:
    home = row.home or config().domain
    found = progress.replicas([row.id]).get(row.id, {})
    rows: dict[str, Any] = {home: {"domain": home, "home": home, "expires_at": None}}
    for admission in admissions_of(row.id):
        if not admission.revoked and admission.expires_at > now:
            expires_at = timestamp(admission.expires_at)
            rows[admission.domain] = {"domain": admission.domain, "home": home, "expires_at": expires_at}
    return {
        domain: {**one, "progress": {**found[domain], "at": at} if domain in found else dict(NO_PROGRESS)}
        for domain, one in rows.items()
    }
