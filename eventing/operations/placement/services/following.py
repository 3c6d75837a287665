"""Replicas that count, compared with the home: each must reach, again and again, the vector that the home had a while ago (rules/freshness.py).

A replica with which this domain has no link is not judged: its vector is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import groupby

from django.db.models import Q

from eventing.log.watermarks import links_read
from eventing.operations.placement.models import PlacedReplicaRow
from eventing.operations.placement.rules.freshness import BEHIND_S, FreshnessMark, following
from eventing.replication.joining.presenters import own_vectors
from eventing.replication.models import ReplicaLink

MARK_S = BEHIND_S / 4
"""Seconds after which a replica that keeps up is given another mark: so many writes are saved."""


def replicas_follow(now: datetime) -> None:
    """Mark the replicas that keep up with this home. Raises redis.RedisError, DatabaseError."""
    due = Q(marked_at=None) | Q(marked_at__lte=now - timedelta(seconds=MARK_S)) | Q(marked_at__gt=now)
    rows = PlacedReplicaRow.objects.filter(due, counted_at__isnull=False).order_by("domain", "id")
    changed: list[PlacedReplicaRow] = []
    for domain, of in groupby(rows, key=lambda row: row.domain):
        changed += _marked(domain, list(of), now)
    PlacedReplicaRow.objects.bulk_update(changed, ["vector", "marked_at"])


def _marked(domain: str, rows: list[PlacedReplicaRow], now: datetime) -> Iterable[PlacedReplicaRow]:
    rps = [row.rp for row in rows]
    live = ReplicaLink.objects.filter(peer=domain, rp__in=rps, state=ReplicaLink.State.LIVE)
    linked = dict.fromkeys(live.values_list("rp_id", flat=True))
    links, own = links_read(domain, rps), own_vectors(rps)
    for row in rows:
        at = now if row.marked_at is None else row.marked_at
        before = FreshnessMark(row.vector, at.timestamp())
        theirs = links[row.rp].theirs if row.rp in linked else row.vector
        mark = following(before, theirs, own[row.rp], now.timestamp())
        if mark is not before or row.marked_at is None:
            row.vector, row.marked_at = dict(mark.vector), now
            yield row
