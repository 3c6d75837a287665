"""What is kept of a participation in an RP that has ended here: where clients find it now, and whom to tell.

The life of an end: an RP of ours is deleted or its lease ends, or a replica is left or lapses -> its row goes, and if others
participate, an end is kept in the same transaction -> peers are told, the nearest first, each passing it on
(replication/joining/announcements.py) -> whoever cannot be reached within KEPT_S learns it from leases that nobody renews.
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

KEPT_S = 86_400  # clients that were away for a day are told where to go
URLS_MAX = 16  # of other replicas, for clients
TRIES_S = (2, 5, 15, 60, 300)  # between two tries to tell peers; the last repeats
PURGE_BATCH = 1000

Reason = ReplicaEnd.Reason


def participation_end(row: RendezvousPoint, outbox: Outbox, reason: str) -> None:
    """Keep that our participation ends, if anybody else participates. Before the row is deleted, in its transaction.

    Args:
        reason: as the RP's `deleted` event says it: "deleted", "lease-expired", or of a replica "left", "ended", "refused".
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
        # An RP that is no more is found nowhere; one that only left here goes on elsewhere.
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
    """Keep an end, in place of an earlier one of the same RP."""
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


def end_tell(*, rp: str, peers: Iterable[str], now: datetime | None = None) -> None:
    """Have one of these peers told that we left: the nearest to the home first."""
    ReplicaEnd.objects.filter(rp=rp).update(pending=list(peers), next_try_at=now or timezone.now())


def ends_due(*, now: datetime | None = None, limit: int = 100) -> list[ReplicaEnd]:
    """Ends that peers are to be told of now, those that wait longest first."""
    now = now or timezone.now()
    rows = ReplicaEnd.objects.filter(next_try_at__lte=now, until__gt=now).exclude(pending=[])
    return list(rows.order_by("next_try_at")[:limit])


def end_told(*, rp: str, told: Iterable[str], now: datetime | None = None) -> None:
    """Note which peers have taken it; the others are tried again later."""
    now = now or timezone.now()
    row = ReplicaEnd.objects.filter(rp=rp).first()
    if row is None:
        return
    done = set(told)
    row.pending = [peer for peer in row.pending if peer not in done]
    row.next_try_at = now + timedelta(seconds=TRIES_S[min(row.tries, len(TRIES_S) - 1)])
    row.tries += 1
    row.save(update_fields=["pending", "next_try_at", "tries"])


def end_forget(rp: str) -> None:
    """We participate again."""
    ReplicaEnd.objects.filter(rp=rp).delete()


def ends_purge(*, now: datetime | None = None) -> int:
    """Forget ends that were kept long enough. Returns how many."""
    ids = list(ReplicaEnd.objects.filter(until__lte=now or timezone.now()).values_list("rp", flat=True)[:PURGE_BATCH])
    return ReplicaEnd.objects.filter(rp__in=ids).delete()[0]


def _url(domain: str) -> str:
    document = domain_document(domain)
    return document.url if document is not None else ""
