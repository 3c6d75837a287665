"""Ended participations in an RP: where clients find it now, and the domains to notify.

The life of an end: an RP of this domain is deleted or expires, or a replica is left or lapses -> its row is deleted,
and if others participate, an end is stored in the same transaction -> peers are notified, the nearest first, each
passing it on (replication/joining/announcements.py) -> a domain that cannot be reached within KEPT_S learns it from
leases that are not renewed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.utils import timezone

from eventing.conf import config
from eventing.outbox.services import Outbox
from eventing.peering.selectors.domain_documents import domain_document
from eventing.replication.models import ReplicaEnd
from eventing.replication.selectors.replicas import links_of_rp, participants
from eventing.replication.services.withdrawals import withdrawn_from
from eventing.rps.models import RendezvousPoint
from eventing.rps.services.descriptors import descriptor_sign
from eventing.sql.leases import is_due
from eventing.sql.remembered import remembered

KEPT_S = 86_400  # clients that return within a day are redirected
URLS_MAX = 16  # URLs of other replicas, for clients
TRIES_S = (2, 5, 15, 60, 300)  # seconds between two attempts to notify peers; the last repeats
PURGE_BATCH = 1000

Reason = ReplicaEnd.Reason


def participation_end(row: RendezvousPoint, outbox: Outbox, reason: str) -> None:
    """Store the end of a participation, if other domains participate. Before the row is deleted, in its transaction.

    Args:
        reason: as in the RP's `deleted` event: "deleted", "lease-expired", or of a replica "left", "ended", "refused".
    """
    now = outbox.now
    others = [one for one in participants(row, now) if one.domain != config().domain]
    peers = sorted({*links_of_rp(row.id), *withdrawn_from(row.id, now)})
    if not others and not peers:
        return
    if row.home:
        kept = Reason.DELETED if reason == "ended" else Reason.LEFT if reason == "left" else Reason.LAPSED
        statement = row.descriptor if reason == "ended" else None
    else:
        kept, statement = Reason.DELETED, descriptor_sign(row, now, ended=True)
    end_keep(
        rp=row.id,
        home=row.home or config().domain,
        name=row.name or "",
        reason=kept,
        # A deleted RP is found nowhere; one that was only left here continues elsewhere.
        urls=[] if kept == Reason.DELETED else [one.url or _url(one.domain) for one in others],
        statement=bytes(statement) if statement is not None else None,
        pending=peers if kept == Reason.DELETED else [],
        now=now,
    )


def end_keep(
    *,
    rp: str,
    home: str,
    name: str,
    reason: str,
    urls: Iterable[str],
    statement: bytes | None,
    pending: Iterable[str],
    now: datetime,
) -> None:
    """Store an end, in place of an earlier one of the same RP.

    Args:
        reason: of ReplicaEnd.Reason.
        urls: of other replicas, for clients; at most URLS_MAX are kept.
        statement: the home's last descriptor; None for a leave, which is signed when it is sent.
        pending: names of the peers to notify.
    """
    ReplicaEnd.objects.update_or_create(
        rp=rp,
        defaults={
            "home": home,
            "name": name,
            "reason": reason,
            "urls": [url for url in urls if url][:URLS_MAX],
            "statement": statement,
            "pending": list(pending),
            "tries": 0,
            "next_try_at": now,
            "ended_at": now,
            "until": now + timedelta(seconds=KEPT_S),
        },
    )


def end_enqueue(*, rp: str, peers: Iterable[str], now: datetime | None = None) -> None:
    """Have one of these peers notified of the leave: the nearest to the home first."""
    ReplicaEnd.objects.filter(rp=rp).update(pending=list(peers), next_try_at=now or timezone.now())


def ends_due(*, now: datetime | None = None, limit: int = 100) -> list[ReplicaEnd]:
    """Return ends that peers are to be notified of now, those that have waited longest first."""
    now = now or timezone.now()
    if not is_due(_first_due(), now):
        return []
    rows = ReplicaEnd.objects.filter(next_try_at__lte=now, until__gt=now).exclude(pending=[])
    return list(rows.order_by("next_try_at")[:limit])


@remembered
def _first_due() -> datetime | None:
    rows = ReplicaEnd.objects.exclude(pending=[]).order_by("next_try_at")
    return rows.values_list("next_try_at", flat=True).first()


def end_acknowledged(*, rp: str, acknowledged: Iterable[str], now: datetime | None = None) -> None:
    """Record which peers have acknowledged the end; the others are retried later."""
    now = now or timezone.now()
    row = ReplicaEnd.objects.filter(rp=rp).first()
    if row is None:
        return
    done = set(acknowledged)
    row.pending = [peer for peer in row.pending if peer not in done]
    row.next_try_at = now + timedelta(seconds=TRIES_S[min(row.tries, len(TRIES_S) - 1)])
    row.tries += 1
    row.save(update_fields=["pending", "next_try_at", "tries"])


def end_forget(rp: str) -> None:
    """Delete the end after a renewed participation."""
    ReplicaEnd.objects.filter(rp=rp).delete()


def ends_purge(*, now: datetime | None = None) -> int:
    """Delete ends older than KEPT_S. Returns how many."""
    ids = list(ReplicaEnd.objects.filter(until__lte=now or timezone.now()).values_list("rp", flat=True)[:PURGE_BATCH])
    return ReplicaEnd.objects.filter(rp__in=ids).delete()[0]


def _url(domain: str) -> str:
    document = domain_document(domain)
    return document.url if document is not None else ""
