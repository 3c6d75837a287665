"""Snapshots: the present states of the domain, of an RP and of the overlay, valid at a cursor of their administrative log.

The cursor is read first: events of later changes follow it, and do no harm if the state already reflects them
(admin_rp/state.py). Rows are read from SQL; logs, lags and load from Redis. Every list is bounded as the catalogue's
effects bound it.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import msgspec
from django.conf import settings
from django.utils import timezone
from msgspec.structs import asdict

from admin_rp.catalogue import EMPTY
from admin_rp.parts import parts
from admin_rp.shapes import AcquaintanceRow, PeerRow, QuarantineRow
from eventing.conf import config
from eventing.core.ids import DOMAIN_ADMIN, OVERLAY_ADMIN, admin_id
from eventing.core.timestamps import timestamp
from eventing.log import control
from eventing.membership.selectors.map_rows import map_state
from eventing.operations.samples import progress
from eventing.operations.samples.sampling import counts
from eventing.outbox import administrative_events as events
from eventing.outbox.administrative_events import admin_history
from eventing.outbox.kind import DOMAIN, RP
from eventing.outbox.shapes import NO_PROGRESS
from eventing.peering.events.shapes import NO_DELIVERY, NO_TRAFFIC
from eventing.peering.events.trust import MISBEHAVIOUR_MAX
from eventing.peering.selectors.event_data import misbehaviour_data, peer_members
from eventing.peering.selectors.misbehaviour import misbehaviour_latest
from eventing.peering.selectors.partners import acquaintances_all
from eventing.peering.selectors.peers import peers_all
from eventing.peering.selectors.quarantines import quarantines_list
from eventing.peering.services.deliveries import deliveries_shown
from eventing.peering.traffic_samples import traffic_kept
from eventing.replication.selectors.replicas import admissions_of
from eventing.rps.events import RECENT_RPS
from eventing.rps.models import RendezvousPoint
from eventing.rps.selectors.event_data import recent_rp_data, rp_data
from eventing.rps.selectors.rendezvous_points import rp_kept, rps_newest
from eventing.store import load
from eventing.store.presence import gateways_alive
from eventing.subscriptions.events import NO_ENDPOINT, NO_LAG
from eventing.subscriptions.push.selectors import endpoint_states_at
from eventing.subscriptions.selectors.event_data import subscription_data
from eventing.subscriptions.selectors.subscriptions import subscriptions_of_rp

SUBSCRIPTIONS_MAX = 10_000
"""Subscriptions in an RP's state (the default of HERALD_SUBSCRIPTIONS_PER_RP_MAX is not more)."""

Snapshot = dict[str, Any]
"""Members `cursor` and `state`."""


def domain_snapshot(*, now: datetime | None = None) -> Snapshot:
    """Return the domain's snapshot. Raises redis.RedisError."""
    now = now or timezone.now()
    cursor = cursor_of(DOMAIN_ADMIN)
    state = {
        **EMPTY[DOMAIN],
        "domain": {"name": config().domain, "version": settings.SPECTACULAR_SETTINGS["VERSION"]},
        "counts": counts(),
        "redis": load.server_load(),
        "gateways": _gateways(now),
        "peers": _peers(),
        "acquaintances": _acquaintances(),
        "quarantines": _quarantines(),
        "misbehaviour": _misbehaviour(),
        "recent_rps": _recent_rps(),
        **{name: part(None) for name, part in parts(DOMAIN).items()},
    }
    return {"cursor": cursor, "state": msgspec.to_builtins(state)}


def rp_snapshot(rp: str, *, now: datetime | None = None) -> Snapshot:
    """Return the snapshot of the RP with id `rp`; empty if there is none. Raises redis.RedisError."""
    now = now or timezone.now()
    cursor = cursor_of(admin_id(rp))
    row = rp_kept(rp)
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
    return {"cursor": cursor, "state": msgspec.to_builtins(state)}


def overlay_snapshot() -> Snapshot:
    """Return the map of the overlay; empty if this domain takes part in none. Raises redis.RedisError."""
    cursor = cursor_of(OVERLAY_ADMIN)
    return {"cursor": cursor, "state": msgspec.to_builtins(map_state())}


def cursor_of(rp: str) -> str:
    """Return the end of an administrative log, which is created if it is missing."""
    log = control.log_state(rp) or control.ensure_log(rp, admin_history(rp))
    return f"{log.epoch}:{log.next - 1}"


# The domain's parts


def _gateways(now: datetime) -> dict[str, Any]:
    return {gateway: json.loads(row) for gateway, row in load.gateway_loads(gateways_alive(now)).items()}


def _peers() -> dict[str, Any]:
    shown, traffic = deliveries_shown(), traffic_kept()
    return {
        peer.name: PeerRow.of(
            peer,
            **peer_members(peer),
            delivery=shown.get(peer.name, NO_DELIVERY),
            traffic=traffic.get(peer.name, NO_TRAFFIC),
        )
        for peer in peers_all()
    }


def _acquaintances() -> dict[str, Any]:
    return {
        row.name: AcquaintanceRow.of(row, acquaintance=row.name, since=timestamp(row.created_at))
        for row in acquaintances_all()
    }


def _quarantines() -> dict[str, Any]:
    return {row.origin: QuarantineRow.of(row) for row in quarantines_list()}


def _misbehaviour() -> dict[str, Any]:
    rows = misbehaviour_latest(MISBEHAVIOUR_MAX)
    return {f"{row.kind} {row.carrier} {row.origin}": misbehaviour_data(row) for row in rows}


def _recent_rps() -> dict[str, Any]:
    return {row.id: recent_rp_data(row) for row in rps_newest(RECENT_RPS)}


# An RP's parts


def _subscriptions(rp: str, at: str) -> dict[str, Any]:
    rows = subscriptions_of_rp(rp, SUBSCRIPTIONS_MAX)
    found = progress.lags([rp]).get(rp, {})
    endpoints = {
        row: {"state": state, "since": timestamp(since)} for row, (state, since) in endpoint_states_at(rp).items()
    }
    return {
        row.id: {
            **asdict(subscription_data(row)),
            "endpoint": endpoints.get(row.id, NO_ENDPOINT),
            "lag": {**found[row.id], "at": at} if row.id in found else dict(NO_LAG),
        }
        for row in rows
    }


def _load(rp: str, now: datetime) -> dict[str, Any]:
    alive = set(gateways_alive(now))
    return {gateway: json.loads(row) for gateway, row in load.rp_loads(rp).items() if gateway in alive}


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
