"""Writes of acquaintances: begun, renewed and ended by this domain itself; each begin and end is an event on
`domain.admin`, and no act in the audit: nobody decided it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from eventing.core.ids import DOMAIN_ADMIN
from eventing.outbox import administrative_events as events
from eventing.outbox.services import Outbox, change
from eventing.peering.models import Acquaintance, Peer
from eventing.peering.ports import DirectoryRecord, peer_removed
from eventing.peering.rules.acquaintances import ACQUAINTANCES_MAX, LEASE_S, AcquaintanceEnd
from eventing.peering.rules.peers import PeeringState
from eventing.peering.selectors.partners import acquaintances_forget
from eventing.sql.leases import expires_first, is_due
from eventing.sql.locking import lock_domain

DECIDED = (PeeringState.ACTIVE, PeeringState.SUSPENDED)
CONTACT_S = 60  # least time between two writes of a contact


def acquaintance_begin(*, name: str, record: DirectoryRecord, reason: str, now: datetime | None = None) -> bool:
    """Begin an acquaintance with a domain whose identity the caller verified, or renew its lease.

    Args:
        record: of the directory.
        reason: one sentence, for the event.

    Returns False, without effect: there is no room, or an administrator here decided about the domain as a peer.
    """
    now = now or timezone.now()
    expires_at = now + timedelta(seconds=LEASE_S)
    lease = {"granted_s": LEASE_S, "warn_at": expires_at, "expires_at": expires_at}
    with change(now) as outbox:
        lock_domain()
        if Peer.objects.filter(name=name, state__in=DECIDED).exists():
            return False
        row = Acquaintance.objects.select_for_update().filter(name=name).first()
        if row is not None and row.fingerprint == record.fingerprint:
            moved = {"url": record.url, "changed_at": now} if row.url != record.url else {}
            Acquaintance.objects.filter(name=name).update(**lease, **moved)
        elif row is not None or Acquaintance.objects.count() >= ACQUAINTANCES_MAX:
            return False
        else:
            Acquaintance.objects.create(
                name=name, url=record.url, fingerprint=record.fingerprint, created_at=now, changed_at=now, **lease
            )
            data = {"acquaintance": name, "url": record.url, "fingerprint": record.fingerprint, "reason": reason}
            outbox.event(events.ACQUAINTANCE_BEGUN, DOMAIN_ADMIN, data)
        transaction.on_commit(acquaintances_forget, robust=True)
    return True


def acquaintances_end(*, names: Iterable[str], reason: AcquaintanceEnd, now: datetime | None = None) -> int:
    """End these acquaintances and delete their forwarding state. Returns how many there were."""
    ended = 0
    with change(now or timezone.now()) as outbox:
        for name in names:
            ended += acquaintance_ends(name, reason, outbox)
    return ended


def acquaintance_ends(name: str, reason: AcquaintanceEnd, outbox: Outbox) -> bool:
    """End one acquaintance in the caller's change; a peer that takes its place keeps the forwarding state."""
    if not Acquaintance.objects.filter(name=name).delete()[0]:
        return False
    outbox.event(events.ACQUAINTANCE_ENDED, DOMAIN_ADMIN, {"acquaintance": name, "reason": reason.value})
    if reason is not AcquaintanceEnd.APPROVED:
        transaction.on_commit(lambda: peer_removed(name), robust=True)
    transaction.on_commit(acquaintances_forget, robust=True)
    return True


def acquaintances_expire(*, now: datetime | None = None) -> int:
    """End acquaintances whose leases nothing renewed. Returns how many."""
    now = now or timezone.now()
    if not is_due(expires_first(Acquaintance), now):
        return 0
    lapsed = list(Acquaintance.objects.filter(expires_at__lte=now).values_list("name", flat=True))
    return acquaintances_end(names=lapsed, reason=AcquaintanceEnd.EXPIRED, now=now)


def acquaintance_contacted(row: Acquaintance, *, now: datetime | None = None) -> None:
    """Note authenticated contact; written at most once in CONTACT_S. It renews no lease: the link does."""
    now = now or timezone.now()
    if row.heard_at is None or (now - row.heard_at).total_seconds() > CONTACT_S:
        Acquaintance.objects.filter(name=row.name).update(heard_at=now)
