"""Writes of deliveries: failure, success, manual retry, backlog. An acquaintance's row holds its delivery, too."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django.db import transaction
from django.utils import timezone

from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.timestamps import timestamp
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.peering.models import Acquaintance, DeliveryColumns, Peer, PeerDelivery
from eventing.peering.rules.deliveries import DETAIL_CHARS_MAX, STOPS, Failure, PeerStanding, pause_s
from eventing.peering.rules.peers import PeeringState
from eventing.peering.selectors.peers import peers_active
from eventing.peering.selectors.standing import standings
from eventing.peering.shapes import DeliveryData
from eventing.store.peer_state import deliveries_reported, deliveries_reported_set

_WELL = {
    "failures": 0,
    "failure": "",
    "detail": "",
    "first_failure_at": None,
    "next_try_at": None,
    "stopped_at": None,
}


@transaction.atomic
def delivery_failed(
    *,
    peer: str,
    failure: Failure,
    detail: str,
    jitter: float,
    retry_after_s: float | None = None,
    now: datetime | None = None,
) -> DeliveryColumns | None:
    """Record a failure and the time of the next attempt, or that delivery stops. Returns None if the peer was removed.

    Args:
        detail: one sentence for the administrator.
        jitter: random, 0 to 1.
        retry_after_s: the pause that the peer asked for.
    """
    now = now or timezone.now()
    row: DeliveryColumns | None = Acquaintance.objects.select_for_update().filter(name=peer).first()
    if row is None:
        if not Peer.objects.filter(name=peer).exists():
            return None
        row = PeerDelivery.objects.select_for_update().filter(peer_id=peer).first() or PeerDelivery(peer_id=peer)
    row.failures += 1
    row.failure = failure
    row.detail = detail[:DETAIL_CHARS_MAX]
    row.first_failure_at = row.first_failure_at or now
    if failure in STOPS:
        row.next_try_at, row.stopped_at = None, row.stopped_at or now
    else:
        row.next_try_at = now + timedelta(seconds=pause_s(row.failures, retry_after_s, jitter))
        row.stopped_at = None
    row.changed_at = now
    row.save()
    return row


def delivery_succeeded(*, peer: str, now: datetime | None = None) -> bool:
    """Clear the failure after a request that the peer acknowledged. Returns whether there was one. Idempotent."""
    now = now or timezone.now()
    if Acquaintance.objects.filter(name=peer, failures__gte=1).update(**_WELL, changed_at=now):
        return True
    return PeerDelivery.objects.filter(peer_id=peer, failures__gte=1).update(**_WELL, changed_at=now) > 0


def delivery_resumed(*, peer: str, now: datetime | None = None) -> bool:
    """Retry the peer at once, at an administrator's request or after a change. Returns whether delivery had stopped."""
    return delivery_succeeded(peer=peer, now=now)


def backlog_noted(
    *,
    peer: str,
    backlog: int,
    oldest_at: datetime | None,
    now: datetime | None = None,
    held: Mapping[str, DeliveryColumns] | None = None,
) -> bool:
    """Record the backlog of a peer; written only when it changes. Returns whether it differs from what is in `held`.

    Args:
        backlog: number of events that wait for the peer.
        oldest_at: when the oldest of them was stored here; None if not known.
        held: rows as they were just read (selectors/deliveries.py: deliveries_held); None: the row is read.
    """
    now = now or timezone.now()
    oldest_at = (oldest_at or now) if backlog else None  # the oldest event may have been trimmed
    if held is not None:
        there = held.get(peer)
        if (backlog, oldest_at) == ((0, None) if there is None else (there.backlog, there.oldest_at)):
            return False
    _backlog_write(peer, backlog, oldest_at, now)
    return True


def _backlog_write(peer: str, backlog: int, oldest_at: datetime | None, now: datetime) -> None:
    acquaintance = Acquaintance.objects.filter(name=peer).only("backlog", "oldest_at").first()
    if acquaintance is not None:
        if (acquaintance.backlog, acquaintance.oldest_at) != (backlog, oldest_at):
            Acquaintance.objects.filter(name=peer).update(backlog=backlog, oldest_at=oldest_at)
        return
    row = PeerDelivery.objects.filter(peer_id=peer).first()
    if row is None and (not backlog or not Peer.objects.filter(name=peer).exists()):
        return
    if row is None:
        PeerDelivery.objects.get_or_create(
            peer_id=peer, defaults={"backlog": backlog, "oldest_at": oldest_at, "changed_at": now}
        )
    elif (row.backlog, row.oldest_at) != (backlog, oldest_at):
        PeerDelivery.objects.filter(peer_id=peer).update(backlog=backlog, oldest_at=oldest_at, changed_at=now)


# Reporting


def deliveries_shown(
    now: datetime | None = None, held: Mapping[str, DeliveryColumns] | None = None
) -> dict[str, dict[str, Any]]:
    """Return the state of delivery by peer, as events and snapshots show it, without peers that have never failed.

    Raises redis.RedisError.

    Args:
        held: rows as they were just read, to go by them and by the cached peers; None: both are read.
    """
    now = now or timezone.now()
    if held is None:
        rows = {row.peer_id: row for row in PeerDelivery.objects.all()}
        names = list(Peer.objects.filter(state=PeeringState.ACTIVE).values_list("name", flat=True))
    else:
        rows = {name: row for name, row in held.items() if isinstance(row, PeerDelivery)}
        names = [peer.name for peer in peers_active()]
    known = standings(names)
    shown = {}
    for name in sorted(rows.keys() | known.keys()):
        row, standing = rows.get(name), known.get(name, PeerStanding())
        if row is not None or standing.standstill(0, now.timestamp()):
            shown[name] = delivery_data(row or PeerDelivery(peer_id=name), standing, now)
    return shown


def delivery_data(row: PeerDelivery, standing: PeerStanding, now: datetime) -> dict[str, Any]:
    """Return what fails, else why nothing arrives although nothing fails (Standstill), as events show it."""
    shown = DeliveryData.of(row, failure=row.failure or None)
    standstill = None if row.failures else standing.standstill(row.backlog, now.timestamp())
    if standstill is not None:
        since, until = standing.span(standstill)
        shown.failure, shown.detail = standstill.value, standing.detail(standstill)
        shown.first_failure_at = None if since is None else timestamp(_whole(since))
        shown.next_try_at = None if until is None else timestamp(_whole(until))
    found: dict[str, Any] = msgspec.to_builtins(shown)
    return found


def _whole(seconds: float) -> datetime:
    """Return Unix seconds as a time in whole seconds, so that repeated computations are equal."""
    return datetime.fromtimestamp(round(seconds), UTC)


def deliveries_report(*, now: datetime | None = None, held: Mapping[str, DeliveryColumns] | None = None) -> int:
    """Report deliveries that changed since the last report on `domain.admin`. Returns how many.

    The sweep calls this each second, so a peer is reported at most once a second, however often its delivery changed.
    The last report is kept in Redis: if it is lost, every delivery is reported once more. Raises redis.RedisError.

    Args:
        held: rows as they were just read: nothing is read again unless something changed by them.
    """
    now = now or timezone.now()
    known = deliveries_reported()
    if held is not None and _digests(deliveries_shown(now, held)) == known:
        return 0
    shown = deliveries_shown(now)
    digests = _digests(shown)
    changed = sorted(peer for peer, digest in digests.items() if known.get(peer) != digest)
    if changed:
        with change(now) as outbox:
            for peer in changed:
                outbox.event(events.PEER_DELIVERY, DOMAIN_ADMIN, {"peer": peer, **shown[peer]})
    deliveries_reported_set({peer: digests[peer] for peer in changed}, known.keys() - shown.keys())
    return len(changed)


def _digests(shown: Mapping[str, Mapping[str, Any]]) -> dict[str, bytes]:
    return {
        peer: hashlib.sha256(json.dumps(data, sort_keys=True).encode()).digest()[:16] for peer, data in shown.items()
    }
