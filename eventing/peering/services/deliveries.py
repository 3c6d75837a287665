"""Writes of deliveries: a peer failed, it works again, somebody wants it tried again, this much waits for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from eventing.core.ids import DOMAIN_ADMIN
from eventing.core.timestamps import timestamp
from eventing.log import control
from eventing.outbox import administrative_events as events
from eventing.outbox.services import change
from eventing.peering.models import Peer, PeerDelivery
from eventing.peering.rules.deliveries import DETAIL_CHARS_MAX, STOPS, Failure, Standing, pause_s
from eventing.peering.rules.peers import State
from eventing.peering.selectors.standing import standings
from eventing.store import keys

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
) -> PeerDelivery | None:
    """Note a failure and when to try again, or that it stops. None if the peer is gone.

    Args:
        detail: one sentence for the administrator.
        jitter: 0 to 1, chance.
        retry_after_s: what the peer asked for.
    """
    now = now or timezone.now()
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
    """The peer took a request: nothing is wrong any more. Whether something was. Harmless when repeated."""
    failing = PeerDelivery.objects.filter(peer_id=peer, failures__gte=1)
    return failing.update(**_WELL, changed_at=now or timezone.now()) > 0


def delivery_resumed(*, peer: str, now: datetime | None = None) -> bool:
    """Try the peer again now: an administrator asks for it, or what was wrong has been changed. Whether it had stopped."""
    return delivery_succeeded(peer=peer, now=now)


def backlog_noted(*, peer: str, backlog: int, oldest_at: datetime | None, now: datetime | None = None) -> None:
    """Note how many events wait for the peer, and since when the oldest does; written only when that changes."""
    now = now or timezone.now()
    oldest_at = (oldest_at or now) if backlog else None  # it may have left the history
    row = PeerDelivery.objects.filter(peer_id=peer).first()
    if row is None and (not backlog or not Peer.objects.filter(name=peer).exists()):
        return
    if row is None:
        PeerDelivery.objects.get_or_create(
            peer_id=peer, defaults={"backlog": backlog, "oldest_at": oldest_at, "changed_at": now}
        )
    elif (row.backlog, row.oldest_at) != (backlog, oldest_at):
        PeerDelivery.objects.filter(peer_id=peer).update(backlog=backlog, oldest_at=oldest_at, changed_at=now)


# Telling of it


def deliveries_shown(now: datetime | None = None) -> dict[str, dict[str, Any]]:
    """How delivery goes, by peer, as events and snapshots show it; peers that nothing was ever wrong with are not in it.

    Raises redis.RedisError.
    """
    now = now or timezone.now()
    rows = {row.peer_id: row for row in PeerDelivery.objects.all()}
    names = list(Peer.objects.filter(state=State.ACTIVE).values_list("name", flat=True))
    known = standings(names)
    shown = {}
    for name in sorted(rows.keys() | known.keys()):
        row, standing = rows.get(name), known.get(name, Standing())
        if row is not None or standing.standstill(0, now.timestamp()):
            shown[name] = delivery_data(row or PeerDelivery(peer_id=name), standing, now)
    return shown


def delivery_data(row: PeerDelivery, standing: Standing, now: datetime) -> dict[str, Any]:
    """A delivery as events show it: what fails, else why nothing arrives although nothing fails (Standstill)."""

    def moment(value: datetime | None) -> str | None:
        return None if value is None else timestamp(value)

    data = _failing_data(row, moment)
    standstill = None if row.failures else standing.standstill(row.backlog, now.timestamp())
    if standstill is not None:
        since, until = standing.span(standstill)
        data |= {
            "class": standstill.value,
            "detail": standing.detail(standstill),
            "first_failure_at": None if since is None else moment(_whole(since)),
            "next_try_at": None if until is None else moment(_whole(until)),
        }
    return data


def _whole(seconds: float) -> datetime:
    """Unix seconds as a time; whole seconds, so that it is the same whenever it is computed."""
    return datetime.fromtimestamp(round(seconds), UTC)


def _failing_data(row: PeerDelivery, moment: Callable[[datetime | None], str | None]) -> dict[str, Any]:
    return {
        "backlog": row.backlog,
        "oldest_at": moment(row.oldest_at),
        "failures": row.failures,
        "class": row.failure or None,
        "detail": row.detail,
        "first_failure_at": moment(row.first_failure_at),
        "next_try_at": moment(row.next_try_at),
        "stopped_at": moment(row.stopped_at),
    }


def deliveries_report(*, now: datetime | None = None) -> int:
    """Tell `domain.admin` of the deliveries that are not as they were told last. Returns how many.

    The sweep calls it each second, so a peer is told of at most once a second, however often its delivery changed. What was
    told is kept in Redis: where that is lost, everything is told once more. Raises redis.RedisError.
    """
    now = now or timezone.now()
    client = control.client()
    known: Any = client.hgetall(keys.DELIVERIES_TOLD_KEY)
    shown = deliveries_shown(now)
    digests = {peer: _digest(data) for peer, data in shown.items()}
    changed = sorted(peer for peer, digest in digests.items() if known.get(peer.encode()) != digest)
    with change(now) as outbox:
        for peer in changed:
            outbox.event(events.PEER_DELIVERY, DOMAIN_ADMIN, {"peer": peer, **shown[peer]})
    if changed:
        client.hset(keys.DELIVERIES_TOLD_KEY, mapping={peer: digests[peer] for peer in changed})
    gone = [peer for peer in known if peer.decode() not in shown]
    if gone:
        client.hdel(keys.DELIVERIES_TOLD_KEY, *gone)
    return len(changed)


def _digest(data: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).digest()[:16]
